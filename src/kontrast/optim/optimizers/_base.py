"""Parameters of optimisers: which ones, in which groups, and how they lie in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

FUSED = ("cpu", "cuda")
"""Devices on which every torch that we support has one kernel for the whole step."""


Groups = Iterable[dict[str, Any]]
"""Groups of parameters as torch has them, each with settings of its own: ``{"params": […], "lr": 0.01}``."""


def trainable(source: nn.Module | Iterable[nn.Parameter]) -> list[nn.Parameter]:
    """The parameters that require a gradient, each once, in their order; a ValueError if there is none."""
    every = list(source.parameters() if isinstance(source, nn.Module) else source)
    for p in every:
        if not isinstance(p, Tensor):
            raise ValueError(f"parameters: must be a module or its parameters; one of them is a {type(p).__name__}")
    result = list(dict.fromkeys(p for p in every if p.requires_grad))
    if not result:
        raise ValueError(f"parameters: must hold one that requires a gradient; none of the {len(every)} does")
    return result


def groups(
    source: nn.Module | Iterable[nn.Parameter] | Groups, *, apart: bool, **of_vectors: Any
) -> list[dict[str, Any]]:
    """All parameters in one group; with ``apart`` biases and norms in a second one, with the settings ``of_vectors``.

    Groups that are given stay groups, each divided in this way. Biases and norms are those with at most one dimension,
    as in solo-learn and timm.

    >>> [len(g["params"]) for g in groups(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)), apart=True)]
    [1, 3]
    """
    given: list[Any] = list(source.parameters() if isinstance(source, nn.Module) else source)
    if not given or not all(isinstance(part, dict) for part in given):
        given = [{"params": given}]
    trainable([p for group in given for p in group["params"]])
    divided: list[dict[str, Any]] = []
    for group in given:
        own = [p for p in dict.fromkeys(group["params"]) if p.requires_grad]
        if apart:
            vectors = {**group, "params": [p for p in own if p.ndim <= 1], **of_vectors}
            divided += [{**group, "params": [p for p in own if p.ndim > 1]}, vectors]
        else:
            divided.append({**group, "params": own})
    return [group for group in divided if group["params"]]


def can_fuse(of: list[dict[str, Any]]) -> bool:
    """Whether torch has one kernel for the whole step on these parameters."""
    return all(p.device.type in FUSED and p.is_floating_point() for g in of for p in g["params"])


def align_gradients(optimiser: Optimizer, *_: Any) -> None:
    """Give gradients the memory layout of their parameters; before each step of a fused optimiser.

    Torch's fused kernels read both in the order of memory and do not compare the layouts. After backward they are
    equal; a gradient set by hand, in the usual layout for a channels_last weight, has another, and every number would
    go to the wrong weight (on the CPU with torch 2.15).
    """
    for group in optimiser.param_groups:
        for p in group["params"]:
            g = p.grad
            if g is not None and g.stride() != p.stride() and _differ(p, g):
                p.grad = g.new_empty_strided(p.shape, p.stride()).copy_(g)


def _differ(p: Tensor, g: Tensor) -> bool:
    """Whether two layouts of one shape differ; the stride of a dimension of size 1 means nothing."""
    return any(n > 1 and a != b for n, a, b in zip(p.shape, p.stride(), g.stride(), strict=True))


def fuse(optimiser: Optimizer, fused: bool) -> None:
    """Let a fused optimiser call `align_gradients` before each step."""
    if fused:
        hook: Callable[..., None] = align_gradients
        optimiser.register_step_pre_hook(hook)
