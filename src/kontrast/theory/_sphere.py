"""A minimum over points on a sphere, found to the last digits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from kontrast.sphere import unit
from kontrast.theory._threads import one_thread

Objective = Callable[[Tensor], Tensor]  # points [N, D] → a scalar
ROUNDS = 6
SEARCH = {"max_iter": 40, "tolerance_grad": 1e-11, "tolerance_change": 1e-15, "line_search_fn": "strong_wolfe"}
POLISH = {"max_iter": 20, "tolerance_grad": 0.0, "tolerance_change": 0.0}


@one_thread()
def minimise_on_sphere(
    loss: Objective, num_points: int, dim: int, *, radius: float, starts: int, seed: int
) -> tuple[Tensor, float]:
    """The best of several random starts, ``[num_points, dim]``, and its `slope`. ``loss`` is to be of the order of 1.

    L-BFGS on ρ x/‖x‖. The loss does not see ‖x‖, which long steps let grow until the gradient in x is too small to
    follow, so x is put back on the unit sphere a few times.
    """
    generator = torch.Generator().manual_seed(seed)
    found = []
    for _ in range(starts):
        x = unit(torch.randn(num_points, dim, dtype=torch.float64, generator=generator))
        for _ in range(ROUNDS):
            x = _descend(loss, x, radius, **SEARCH)
        found.append(x)
    return _sharpen(loss, radius * min(found, key=lambda x: float(loss(radius * x))), radius)


def _sharpen(loss: Objective, points: Tensor, radius: float) -> tuple[Tensor, float]:
    """Where values agree to all digits a line search has nothing to go by; gradients still have.

    torch's L-BFGS learns no curvature from steps with ⟨step, change of gradient⟩ < 1e-10, hence the large factor.
    """
    steepness = slope(loss, points)
    for _ in range(ROUNDS):
        tried = radius * _descend(lambda z: 1e10 * loss(z), points, radius, **POLISH)
        found = slope(loss, tried)
        if found >= steepness or float(loss(tried) - loss(points)) > 1e-12:
            break
        points, steepness = tried, found
    return points, steepness


def _descend(loss: Objective, start: Tensor, radius: float, **options: Any) -> Tensor:
    """L-BFGS from there, as a point of the unit sphere."""
    x = unit(start).requires_grad_()
    optimiser = torch.optim.LBFGS([x], history_size=20, **options)

    def closure() -> Tensor:
        optimiser.zero_grad()
        value = loss(radius * unit(x))
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimiser.step(closure)  # type: ignore[no-untyped-call]
    return unit(x.detach())


def slope(loss: Objective, points: Tensor) -> float:
    """The largest gradient of a point along its sphere; 0 at a minimum."""
    z = points.detach().clone().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(z), z)
    outward = unit(points)
    along = gradient - (gradient * outward).sum(1, keepdim=True) * outward
    return float(along.norm(dim=1).max())
