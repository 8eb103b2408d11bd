r"""``train.micro_batch=auto``: as many images at once as half of the free memory holds.

    (1)  need(m) = s + N·v + m·a        bytes of a step on N images (of one process) in micro-batches of m
    (2)  auto    = N undivided, if need(N) ≤ F/2;  else the largest power of two m with need(m) ≤ F/2

a is the memory that one image keeps from its forward to its backward pass, v that of its views; both are measured as
the growth from two images to three (`kontrast.evaluate.activations`). s is 3 numbers a weight, its gradient and two of
the optimiser, and one more for averaged weights. F is the free memory; processes on one machine share it, and the
smallest m of all counts. The other half is for what is not measured: the loss, work space of the kernels, memory in
pieces too small to use.

The chosen m is written into the recipe, since batch norm sees micro-batches (`kontrast.train.gradients`): another m is
another run. run.json keeps the hash of the recipe that asked for ``auto``, so the same command finds its run again and
uses the m of that run, however much memory is free by then.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from kontrast import distributed
from kontrast.data import InOrder, Loader
from kontrast.evaluate.activations import peak_bytes
from kontrast.files import expanded
from kontrast.methods import ViewBatch
from kontrast.recipe import Recipe
from kontrast.runs import Run
from kontrast.train.gradients import Precision, unchanged_buffers
from kontrast.train.job import Job
from kontrast.train.memory import free_memory
from kontrast.train.progress import StderrConsole

AUTO = "auto"
PER_WEIGHT = 3  # numbers beside it: its gradient, and at most two of an optimiser
RATIO = 1000  # no encoder is known that keeps so many times the bytes of a view; 135 to 300 are usual


@dataclass(frozen=True)
class Need:
    """The terms of (1) in bytes; `measure` measures them."""

    state: int  # s
    views: int  # v
    activations: int  # a

    def of(self, images: int, at_once: int) -> int:
        """need(m) of a step on so many images.

        >>> Need(state=100, views=1, activations=10).of(images=8, at_once=4)
        148
        """
        return self.state + images * self.views + at_once * self.activations


def measure(job: Job) -> Need:
    """Measure (1) in a forward and backward pass of two and of three images; the method does not change.

    With batch norm across ranks every rank must call it.
    """
    rows = job.train.subset(torch.arange(min(3, len(job.train))))
    crop_seed = {"seed": job.recipe.seed, "crop": job.crop}
    batch = Loader(rows, InOrder(len(rows), len(rows)), **crop_seed).batch(0, 0)  # type: ignore[arg-type]
    batches: list[ViewBatch] = []
    views = peak_bytes(lambda: batches.append(job.augment(batch)))
    few = min(2, len(rows))
    peaks = {n: _peak_bytes(job, batches[0].views[:n]) for n in {few, len(rows)}}
    most = len(rows)
    each = (peaks[most] - peaks[few]) // (most - few) if most > few else peaks[most] // most
    weights = sum(p.nbytes for p in job.method.parameters() if p.requires_grad)
    averaged = 0 if job.recipe.train.average is None else sum(p.nbytes for p in job.method.online.parameters())
    return Need(PER_WEIGHT * weights + averaged, views // len(rows), max(0, each))


def _peak_bytes(job: Job, views: Tensor) -> int:
    """The most bytes alive at once in a forward and backward pass without the loss."""
    method, modes = job.method, [(part, part.training) for part in job.method.modules()]
    precision = Precision(job.recipe.train.precision, job.device)

    def step() -> None:
        with precision.autocast():
            z = method.embed(views)
        if z.requires_grad:  # not where only the loss learns
            z.backward(torch.ones_like(z))  # type: ignore[no-untyped-call]

    method.train()
    devices = [] if job.device.type == "cpu" else [job.device]
    try:
        with torch.random.fork_rng(devices, device_type=job.device.type), unchanged_buffers(*method.embedding_modules):
            return peak_bytes(step)
    finally:
        method.zero_grad(set_to_none=True)
        for part, training in modes:
            part.training = training


def choose_size(job: Job) -> Job:
    """Replace ``auto`` in the job's recipe by (2), and print a line about it. Every rank must call it."""
    need, free, images = measure(job), _free(job), images_per_process(job.recipe)
    budget = math.inf if free is None else free / 2
    size = distributed.least(images_at_once(need, images, budget, job.method.fewest_at_once))
    whole = size >= images
    recipe = with_micro_batch(job.recipe, None if whole else size)
    what = f"the whole batch of {images}" if whole else f"{size} of {images}"
    message = f"train.micro_batch=auto: {what} images at once; the batch needs about {_size(need.of(images, images))}"
    message += "" if free is None else f", {_size(free)} {'is' if free < 1.5 * 2**30 else 'are'} free"
    console = StderrConsole(quiet=distributed.rank() != 0 or not recipe.run.progress)
    console.print(f"{recipe.name}: {message}", highlight=False, markup=False, soft_wrap=True)
    return replace(job, recipe=recipe)


def images_at_once(need: Need, images: int, budget: float, fewest: int) -> int:
    """(2): how many of a step's images fit the budget in bytes, a power of two, or all of them.

    No micro-batch has fewer images than the method needs: ``fewest``.

    >>> need = Need(state=0, views=1, activations=99)
    >>> [images_at_once(need, 256, budget, fewest=2) for budget in (25_600, 25_599, 1_000, 0)]
    [256, 128, 4, 2]
    """
    if need.of(images, images) <= budget:
        return images
    fits = (budget - need.of(images, 0)) / max(1, need.activations)
    size = 1 << math.floor(math.log2(max(1.0, fits)))
    while size < images and images // math.ceil(images / size) < fewest:
        size *= 2
    return min(size, images)


def warn_if_too_large(job: Job) -> None:
    """Warn if a step of this recipe needs more memory than is free. Every rank must call it."""
    free, images, micro = _free(job), images_per_process(job.recipe), job.recipe.train.micro_batch
    largest = 4 * math.prod(job.input_shape) * len(job.views) * images * RATIO
    # Measuring takes a moment, and most runs are far from any limit.
    if distributed.least(int(free is None or largest < free)):
        return
    need = measure(job).of(images, images if micro is None else min(int(micro), images))
    if free is None or need <= free or distributed.rank() != 0:
        return
    hint = (
        f"say train.micro_batch={AUTO} to embed the batch in parts that fit (the loss still sees all of it)"
        if micro is None
        else f"take a smaller train.micro_batch than {micro}, or {AUTO}"
    )
    warnings.warn(
        f"a training step on {images} images needs about {_size(need)} of memory, and {_size(free)} are free: {hint}, "
        "or take smaller images (data.size) or a smaller train.batch_size",
        stacklevel=2,
    )


# ------------------------------------------------------------------------------------------------ the recipe


def images_per_process(recipe: Recipe) -> int:
    """Images of a batch for one process."""
    return math.ceil(recipe.train.batch_size / distributed.world_size())


def with_micro_batch(recipe: Recipe, value: int | str | None) -> Recipe:
    """The recipe with this ``train.micro_batch``."""
    return recipe.model_copy(update={"train": recipe.train.model_copy(update={"micro_batch": value})})


def request_record(recipe: Recipe, actual: Recipe) -> dict[str, Any]:
    """The entry of run.json for a recipe with ``auto`` and the recipe that is trained; empty without ``auto``."""
    if recipe.train.micro_batch != AUTO:
        return {}
    return {"micro_batch": {"asked": AUTO, "hash": recipe.hash, "value": actual.train.micro_batch}}


def with_size_of_run(recipe: Recipe) -> Recipe:
    """Replace ``auto`` in a resolved recipe by the value of the run that it began; without such a run, change nothing.

    >>> recipe = Recipe.of({"method": "supcon", "train": {"epochs": 1, "micro_batch": 8}})
    >>> with_size_of_run(recipe) is recipe
    True
    """
    if recipe.train.micro_batch != AUTO:
        return recipe
    runs = []
    for path in expanded(recipe.run.out).glob(f"{_literal(recipe.name)}-????????"):
        try:
            state = Run(path).state
        except (OSError, ValueError):  # a damaged file: reported when the run is opened
            continue
        about = state.micro_batch or {}
        if about.get("asked") != AUTO or about.get("hash") != recipe.hash:
            continue
        value = about.get("value")
        if value is None or (type(value) is int and value >= 1):
            candidate = with_micro_batch(recipe, value)
            if Run.of(candidate).path.name == path.name:
                runs.append((state.updated or "", candidate))
    return max(runs, key=lambda pair: pair[0])[1] if runs else recipe


def refuse_auto(recipe: Recipe, who: str) -> None:
    """Raise ValueError for ``auto`` where a run's folder must be known before its data are read.

    >>> refuse_auto(Recipe.of({"method": "supcon", "train": {"epochs": 1, "micro_batch": "auto"}}), "kontrast tune")
    Traceback (most recent call last):
        ...
    ValueError: train.micro_batch=auto: kontrast tune needs a number, the same for all of its runs. Use 64, say
    """
    if recipe.train.micro_batch == AUTO:
        raise ValueError(f"train.micro_batch={AUTO}: {who} needs a number, the same for all of its runs. Use 64, say")


def _free(job: Job) -> int | None:
    """Free memory of one process: those on one machine share what a CPU has."""
    free = free_memory(job.device)
    return free if free is None or job.device.type == "cuda" else free // distributed.processes_here()


def _literal(name: str) -> str:
    """A glob pattern that matches this name alone."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)


def _size(count: float) -> str:
    return f"{count / 2**30:.1f} GB" if count >= 2**30 else f"{count / 2**20:.0f} MB"
