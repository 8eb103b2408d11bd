"""Points that try to go below a bound: free on the sphere or in the ball, led by Adam, from starts good and bad."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from kontrast.simplex import vertices
from tests.geometry.samples import rows, sphere


def assert_not_below(value: float, bound: float, what: str = "") -> None:
    """Up to float64's rounding of a mean of logarithms, and of similarities that are divided by a temperature."""
    assert value >= bound - 1e-13 - 1e-9 * abs(bound), f"{what}: {value!r} is below the bound {bound!r}"


def descend(
    loss: Callable[..., Tensor],
    starts: Sequence[Tensor],
    check: Callable[[float], None],
    *,
    steps: int = 150,
    rate: float = 0.05,
) -> float:
    """Adam on all of the tensors; every value on the way is checked, the last returned."""
    free = [x.clone().requires_grad_() for x in starts]
    optimiser = torch.optim.Adam(free, lr=rate)
    value = 0.0
    for step in range(steps + 1):
        found = loss(*free)
        value = found.item()
        check(value)
        if step < steps:
            optimiser.zero_grad()
            found.backward()
            optimiser.step()
    return value


def in_ball(x: Tensor, radius: float) -> Tensor:
    """Rows longer than the radius drawn back to it."""
    return x * (radius / x.norm(dim=1, keepdim=True)).clamp(max=1.0)


def arrangements(labels: Tensor, dim: int) -> dict[str, Tensor]:
    """Unit rows for these labels: random ones, collapsed ones, and near-solutions with or without noise."""
    k, n = int(labels.max()) + 1, len(labels)
    poles = torch.where(torch.arange(k) % 2 == 0, 1.0, -1.0).double()[:, None] * sphere(1, dim, seed=3)
    found = {f"random {seed}": sphere(n, dim, seed=seed) for seed in range(3)}
    found |= {
        "all equal": sphere(1, dim).repeat(n, 1),
        "classes at random points": sphere(k, dim, seed=5)[labels],
        "classes at two poles": poles[labels],
        "samples at two poles": poles[torch.arange(n) % k],
        "first class opposite the others": torch.where(labels[:, None] == 0, poles[:1], -poles[:1]),
    }
    if dim >= k - 1:
        simplex = vertices(k, dim, seed=1, dtype=torch.float64)[labels]
        found["simplex"] = simplex
        found |= {f"simplex with noise {e}": simplex + e * rows(n, dim, seed=9) for e in (1e-6, 1e-3, 0.1)}
    return found
