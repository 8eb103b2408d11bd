r"""What a recipe and its data imply before a step is trained: batches, queues, learning rates, temperatures.

Batches. Each sampler knows them for its own draws (`kontrast.data.loader`):

    (1)  the chance that a batch has no row of a class
    (2)  the share of rows without another row of their class in the batch
    (3)  how many others of its class a row has in the batch, mean over rows

Temperatures, by how they weigh two negatives: r(s)/r(s') = e^{(s−s')/τ}  (Wang & Liu eq. 5):

    (4)  sharpness(τ) = e^{0.1/τ}      between two negatives whose cosines differ by 0.1
    (5)  reach(τ)     = e^{2/τ}        between the nearest and the farthest negative that are possible

At τ = 0.1 they are 2.7 and 5·10⁸; at 0.02 (4) is 148; at 1 (5) is 7.4.

Learning rates are compared at a batch of 256 by the linear rule lr·256/b (`optim.scale_rate`). Each optimiser says
itself which rates are usual (``usual_rates``), and whether they scale with the batch (``scales_with_batch``). Where the
head has a rate of its own (``optim.head_lr``), the higher of the two counts, and it alone if the encoder is frozen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kontrast.data import SAMPLERS
from kontrast.doctor.rule import Missing, Record
from kontrast.optim import OPTIMIZERS
from kontrast.optim.scaling import scale_rate

BASE = 256
LARGEST_EXPONENT = 700.0  # e^709 is the end of float64
COLD = 0.022  # a lower temperature is a problem (`temperature_low`)


# ------------------------------------------------------------------------------------------------------------- batches


def absent(sizes: Sequence[int], size: int, batch: int, sampler: str) -> float:
    """The chance that a batch has no row of a class of ``size`` rows (1).

    >>> round(absent([5, 5], 5, 2, "shuffled"), 4), absent([5, 5], 5, 2, "with-replacement")  # 5/10 · 4/9, (1/2)²
    (0.2222, 0.25)
    """
    return _require(SAMPLERS[sampler].chance_of_absence(sizes, size, batch), sampler)


def lone(sizes: Sequence[int], batch: int, sampler: str) -> float:
    """(2): the share of anchors without another row of their class.

    >>> round(lone([5, 5], 2, "shuffled"), 4)  # of the nine others five are of the other class
    0.5556
    """
    return _require(SAMPLERS[sampler].chance_of_no_positive(sizes, batch), sampler)


def others(sizes: Sequence[int], batch: int, sampler: str) -> float:
    """The expected number of other rows of its class beside an anchor (3).

    >>> others([5, 5], 10, "shuffled"), others([5, 5], 10, "class-balanced")
    (4.0, 4.0)
    """
    return _require(SAMPLERS[sampler].expected_positives(sizes, batch), sampler)


def _require(value: float | None, sampler: str) -> float:
    if value is None:
        raise Missing(f"the sampler {sampler} does not say what its batches hold of each class")
    return value


def compares_classes(record: Record) -> bool:
    """Whether the positives are the rows of a class (SupCon, TCL, SC); cross-entropy has no positives."""
    return record.method.needs_labels and record.temperature is not None


# -------------------------------------------------------------------------------------------------------------- queues


@dataclass(frozen=True)
class Queue:
    """The queue of a momentum method; ``keys`` join it in each step."""

    length: int
    batch: int
    keys: int
    momentum: float

    @property
    def age(self) -> float:
        """The age of the oldest key, in steps."""
        return self.length / self.keys

    @property
    def drift(self) -> float:
        """(1 − momentum) · age: how far the target moves while a key waits; at 1 it is replaced to 1 − 1/e."""
        return self.age * (1 - self.momentum)


def queue_of(record: Record) -> Queue | None:
    """The recipe's queue; None for methods without one."""
    options, batch = record.options, record.recipe.train.batch_size
    if "queue" not in options:
        return None
    keys = batch * (2 if options.get("symmetric") else 1)
    return Queue(int(options["queue"]), batch, keys, float(options["momentum"]))


# ------------------------------------------------------------------------------------------------------ learning rates


def scales_with_batch(optimizer: str) -> bool:
    """Whether the learning rate grows with the batch; not if the step does not grow with the gradient."""
    return bool(getattr(OPTIMIZERS[optimizer], "scales_with_batch", True))


def rate_of(record: Record) -> tuple[str, float]:
    """The key and the value of the highest rate of the recipe that something learns at."""
    recipe = record.recipe
    lr, head = float(recipe.optim.options["lr"]), recipe.optim.options.get("head_lr")
    if head is not None and (head > lr or recipe.train.freeze == "all"):
        return "optim.head_lr", float(head)
    return "optim.lr", lr


def rate_at_base(record: Record) -> float:
    """The recipe's learning rate (`rate_of`), scaled to a batch of 256 if rates scale with the batch."""
    recipe = record.recipe
    _, lr = rate_of(record)
    return scale_rate(lr, BASE, base=recipe.train.batch_size) if scales_with_batch(recipe.optim.name) else lr


def least_rate(record: Record) -> float:
    """The least usual rate, scaled to the recipe's batch."""
    name, batch = record.recipe.optim.name, record.recipe.train.batch_size
    low = usual_rates(name)[0]
    return scale_rate(low, batch, base=BASE) if scales_with_batch(name) else low


def usual_rates(optimizer: str) -> tuple[float, float]:
    """The usual rates of an optimiser, at a batch of 256 if they scale with it."""
    rates: tuple[float, float] | None = getattr(OPTIMIZERS[optimizer], "usual_rates", None)
    if rates is None:
        raise Missing(f"{optimizer} has no usual rates to compare with")
    return rates


def describe_rate(record: Record) -> str:
    """The rate beside the usual ones."""
    name = record.recipe.optim.name
    low, high = usual_rates(name)
    (key, lr), batch = rate_of(record), record.recipe.train.batch_size
    word = key.removeprefix("optim.")
    if not scales_with_batch(name):
        return f"{name} with {word} {lr:g}; commonly {low:.2g} to {high:.2g}"
    base = f"{rate_at_base(record):.3g} at {BASE}"
    return f"{name} with {word} {lr:g} at a batch of {batch}, {base}; recipes have {low:.2g} to {high:.2g}"


# -------------------------------------------------------------------------------------------------------- temperatures


def sharpness(tau: float) -> float:
    """How much more a negative weighs that is nearer by 0.1 (4).

    >>> round(sharpness(0.1), 4), round(sharpness(0.02), 1)
    (2.7183, 148.4)
    """
    return math.exp(min(0.1 / tau, LARGEST_EXPONENT))


def reach(tau: float) -> float:
    """How much more the nearest possible negative weighs than the farthest (5).

    >>> round(reach(1.0), 2)
    7.39
    """
    return math.exp(min(2 / tau, LARGEST_EXPONENT))


def temperature_of(record: Record) -> float | None:
    """The loss's temperature; None where the loss has none, `Missing` for features without one."""
    if record.temperature is None and record.patient == "features":
        raise Missing("the temperature of the loss behind the features is unknown: pass it (--temperature 0.1)")
    return record.temperature


def shares_penalty(record: Record) -> bool:
    """Whether the loss has the negatives that the entropy monitor looks at: all others, without their labels."""
    if record.patient == "features":
        return True
    return not record.method.needs_labels and not record.method.keeps_nearest_negatives(record.options)


# -------------------------------------------------------------------------------------------------------------- advice


def advise_more_spread(record: Record) -> str:
    """What keeps embeddings apart, named by settings that the recipe's own method has."""
    options = record.options
    advice = advise_weaker_pull(record)
    if "target_temperature" in options:
        half = options["temperature"] / 2
        if options["target_temperature"] > half:
            advice.append(f"a target sharper than the online network (method.target_temperature={half:g})")
        if options.get("contrastive_weight") == 0:
            advice.append("negatives (method.contrastive_weight=0.5)")
    if record.temperature is not None and record.temperature < COLD:
        advice.append("a higher temperature (method.temperature=0.1)")
    advice.append(f"a lower rate (optim.lr={record.recipe.optim.options['lr'] / 10:.2g})")
    if record.method.needs_labels:
        advice.append("labels of two classes or more in every batch")
    if record.recipe.head.name == "none":
        advice.append("a head between encoder and loss (head=tcl)")
    return f"{', '.join(advice)}; check whether the head's output is constant"


def advise_weaker_pull(record: Record) -> list[str]:
    """TCL's k1 may pull positives so hard that a collapse costs nearly nothing; empty for other methods."""
    k1 = record.options.get("k1")
    return [f"a weaker pull (method.k1={k1 / 10:g}; 0 is SupCon)"] if k1 else []
