"""Every registered loss in every form it takes, found from signatures: a new file in losses/ is under test at once."""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from kontrast.energy import reference as dense_energy
from kontrast.losses import FAMILY, CrossEntropyLoss, Loss

N, D, K, CLASSES = 11, 6, 17, 4
EMBEDDINGS = ("query", "key", "negatives", "view1", "view2", "embeddings", "ref_emb", "online", "target", "queue")
FIXED = ("negatives", "ref_emb", "ref_labels", "queue")  # not one a anchor
NO_GRADIENT = {"ReSSLLoss": ("target", "queue"), "SCELoss": ("target", "queue")}

# Options that make another loss of it, by parameter name; the first is what the plain case uses.
OPTIONS: dict[str, tuple[Any, ...]] = {
    "form": ("out", "in"),
    "self_logit": ("masked", "zero"),
    "hard_negatives": (3, 1, 1000),
    "k1": (50.0, 0.0, 5000.0),
    "k2": (1.3, 1.0, 0.0),
    "contrastive_weight": (0.4, 0.0, 1.0),
    "weight": (None, 0.7),
    "weight_penalty": (0.3,),
    "energy_penalty": (0.2,),
    "energy_power": (2.0, 0.0, 1.5),
}


@dataclass(frozen=True)
class Case:
    """A loss class, its options, and the form of its inputs."""

    key: str
    form: str
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        extra = "".join(f",{k}={v}" for k, v in self.options.items() if v is not None)
        return f"{self.key}-{self.form}{extra}"

    @property
    def cls(self) -> type[Loss]:
        cls: type[Loss] = FAMILY[self.key]
        return cls

    def parameters(self) -> dict[str, inspect.Parameter]:
        return dict(inspect.signature(self.cls).parameters)

    def make(self, **options: Any) -> Loss:
        """The loss; where it has learned weights they are the same each time."""
        mine = {**self.options, **options}
        known = self.parameters()
        mine |= {k: v for k, v in (("num_classes", CLASSES), ("dim", D)) if k in known}
        torch.manual_seed(5)
        return self.cls(**{k: v for k, v in mine.items() if k in known})

    def inputs(self, *, seed: int = 0, n: int = N, dtype: torch.dtype = torch.float64) -> dict[str, Tensor]:
        """Random inputs of this form; rows are not normalised."""
        return build(self.key, self.form, seed=seed, n=n, dtype=dtype)

    def reference(self, loss: Loss, inputs: dict[str, Tensor]) -> Tensor:
        """The dense twin per anchor, with this loss's options."""
        module = sys.modules[self.cls.__module__]
        assert hasattr(module, "reference"), (
            f"{module.__file__} must have a function reference: the loss per anchor, in plain torch, with all "
            "similarities at once"
        )
        function: Callable[..., Tensor] = module.reference
        names = inspect.signature(function).parameters
        rows = {k: F.normalize(v, dim=-1) if k in EMBEDDINGS and loss.normalize else v for k, v in inputs.items()}
        own = {k: getattr(loss, k) for k in names if k not in inputs and hasattr(loss, k)}
        return function(**rows, **own)

    def differentiable(self, inputs: dict[str, Tensor]) -> list[str]:
        return [k for k in inputs if k in EMBEDDINGS and k not in NO_GRADIENT.get(self.cls.__name__, ())]


@contextlib.contextmanager
def at(*values: Any) -> Iterator[None]:
    """What fails inside says for which values: a test for each of thousands would take as long to start as to run."""
    try:
        yield
    except Exception as error:
        error.add_note(f"at {', '.join(map(str, values))}")
        raise


def penalties(loss: Loss) -> Tensor:
    """What a loss with weights adds to its mean and its sum, with all pairs of weights at once; else 0."""
    if not isinstance(loss, CrossEntropyLoss):
        return torch.zeros(())
    squared, repulsion = loss.weight.square().sum(), dense_energy(loss.weight, loss.energy_power)
    return loss.weight_penalty * squared + loss.energy_penalty * repulsion


def build(key: str, form: str, *, seed: int, n: int, dtype: torch.dtype) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)

    def rows(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)

    def labels(count: int) -> Tensor:
        return torch.randint(0, CLASSES, (count,), generator=generator)

    first = form.split("+")
    if "views" in first or "three" in first:
        inputs: dict[str, Tensor] = {"embeddings": rows(n, 3 if "three" in first else 2, D)}
    else:
        signature = inspect.signature(FAMILY[key].forward).parameters
        needed = [k for k, p in signature.items() if p.default is p.empty and k != "self"]
        inputs = {k: rows(n, D) for k in needed if k in EMBEDDINGS}
    if "labels" in first:
        inputs["labels"] = labels(n)
    if "negatives" in first:
        inputs["negatives"] = rows(K, D)
    if "own_index" in first:
        inputs["own_index"] = torch.randperm(K, generator=generator)[:n] if n <= K else labels(n)
    if "queue" in first:
        inputs["queue"] = rows(K, D)
    if "ref" in first:
        inputs |= {"ref_emb": rows(K, D), "ref_labels": labels(K)}
    if "mask" in first:
        inputs["positives"] = torch.rand(n, K if "ref" in first else n, generator=generator) < 0.4
        inputs.pop("ref_labels", None)
    return inputs


def forms(key: str) -> list[str]:
    """The forms of input a loss takes, from the names of its call."""
    names = inspect.signature(FAMILY[key].forward).parameters
    if "negatives" in names:
        return ["batch", "negatives", "negatives+own_index"]
    if "queue" in names:
        return ["batch", "queue"]
    if "positives" in names:
        return ["labels", "views", "views+labels", "three", "mask", "views+mask", "ref+labels", "ref+mask"]
    return ["labels"] if "labels" in names else ["batch"]


def every_case() -> Iterator[Case]:
    """Each form with the plain options, and the first form with every other option."""
    for key in FAMILY:
        known = inspect.signature(FAMILY[key]).parameters
        plain = {k: values[0] for k, values in OPTIONS.items() if k in known}
        if key == "simple-contrastive":
            plain["hard_negatives"] = None
        for form in forms(key):
            yield Case(key, form, plain)
            if "form" in known:
                yield Case(key, form, plain | {"form": "in"})
            if "negatives_in_batch" in known and "negatives" in form:
                yield Case(key, form, plain | {"negatives_in_batch": True})
        for name, values in OPTIONS.items():
            if name in known and name != "form":
                yield from (Case(key, forms(key)[0], plain | {name: v}) for v in values if v != plain[name])


CASES = list(every_case())
PLAIN = [c for c in CASES if c.form == forms(c.key)[0] and c.options.get("form", "out") == "out"]
