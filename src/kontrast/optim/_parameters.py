"""Which parameters an optimiser gets, in which groups, and how they lie in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from kontrast.checks import number

FUSED = ("cpu", "cuda")
"""Devices on which every torch that we support has one kernel for the whole step."""


def learned(given: nn.Module | Iterable[nn.Parameter]) -> list[nn.Parameter]:
    """Those that require a gradient, each once, in their order; an error if there is none."""
    every = list(given.parameters() if isinstance(given, nn.Module) else given)
    for p in every:
        if not isinstance(p, Tensor):
            raise ValueError(f"an optimiser takes a module or its parameters; among these is a {type(p).__name__}")
    found = list(dict.fromkeys(p for p in every if p.requires_grad))
    if not found:
        raise ValueError(f"nothing to optimise: of {len(every)} parameters none requires a gradient")
    return found


def groups(given: nn.Module | Iterable[nn.Parameter], *, apart: bool, **of_vectors: Any) -> list[dict[str, Any]]:
    """All in one group; with ``apart`` biases and norms in a second one, which has the settings ``of_vectors``.

    Biases and norms are told by their shape, as solo-learn and timm do: they are what has at most one dimension.

    >>> [len(g["params"]) for g in groups(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)), apart=True)]
    [1, 3]
    """
    every = learned(given)
    if not apart:
        return [{"params": every}]
    matrices, vectors = [p for p in every if p.ndim > 1], [p for p in every if p.ndim <= 1]
    return [g for g in ({"params": matrices}, {"params": vectors, **of_vectors}) if g["params"]]


def can_fuse(of: list[dict[str, Any]]) -> bool:
    """Whether torch has one kernel for the whole step on these."""
    return all(p.device.type in FUSED and p.is_floating_point() for g in of for p in g["params"])


def align_gradients(optimiser: Optimizer, *_: Any) -> None:
    """Gradients laid out in memory as their parameters are: before each step of a fused optimiser.

    Torch's fused kernels read both in the order of memory and take the layouts for equal, without a look. Backward
    leaves them so; a gradient that was set by hand, in the usual layout beside a channels_last weight, is not, and
    every number would go to the wrong weight (on CPU, seen with torch 2.15).
    """
    for group in optimiser.param_groups:
        for p in group["params"]:
            g = p.grad
            if g is not None and g.stride() != p.stride() and _differ(p, g):
                p.grad = g.new_empty_strided(p.shape, p.stride()).copy_(g)


def _differ(p: Tensor, g: Tensor) -> bool:
    """Whether two layouts of one shape differ; the stride of a dimension of size 1 means nothing."""
    return any(n > 1 and a != b for n, a, b in zip(p.shape, p.stride(), g.stride(), strict=True))


def fraction(name: str, value: float) -> float:
    """A number from 0 to just below 1: momentum and Adam's betas."""
    value = number(name, value, least=0.0)
    if value >= 1:
        raise ValueError(f"{name} must be below 1, got {value!r}: it would never forget")
    return value


def fuse(made: Optimizer, fused: bool) -> None:
    """What a fused optimiser must do before each step."""
    if fused:
        hook: Callable[..., None] = align_gradients
        made.register_step_pre_hook(hook)
