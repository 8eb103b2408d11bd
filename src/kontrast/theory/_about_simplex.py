"""Random inputs for checks of what is minimal at a simplex: the simplex itself, points about it, points far from it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from kontrast import simplex
from kontrast.sphere import unit
from kontrast.theory._similarities import largest

NOISES = (10.0, 1.0, 0.1, 0.01, 1e-3)  # from nearly independent of the simplex to nearly on it


def seed(generator: torch.Generator) -> int:
    """A seed for what takes one."""
    return int(torch.randint(2**31, (1,), generator=generator))


def normal(generator: torch.Generator, *shape: int) -> Tensor:
    """Independent standard normal numbers."""
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


def turned(num_classes: int, dim: int, generator: torch.Generator) -> Tensor:
    """A unit simplex in a random position, ``[num_classes, dim]``."""
    return simplex.vertices(num_classes, dim, seed=seed(generator), dtype=torch.float64)


def shaken(points: Tensor, noise: float, generator: torch.Generator) -> Tensor:
    """Unit points, moved about by ``noise`` times their length and put back on the sphere."""
    return unit(points + noise * unit(normal(generator, *points.shape)))


def worst(errors: Sequence[float]) -> float:
    """The largest absolute value; infinity if any is not a number."""
    return largest(torch.tensor(errors, dtype=torch.float64))


def worst_violation(slacks: Sequence[float]) -> float:
    """Of inequalities slack ≥ 0: how far the smallest slack is below 0."""
    return worst([min(slack, 0.0) if slack == slack else slack for slack in slacks])
