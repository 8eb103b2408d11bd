r"""The hyperspherical energy of weights: how strongly their directions repel each other.

Weights w_1 … w_K, of which only the directions ŵ = w/‖w‖ count, and a power s ≥ 0:

    (1)  E_s = 1/(K(K−1)) Σ_{i≠j} f_s(u_ij)               u_ij = ‖ŵ_i − ŵ_j‖² = 2 − 2⟨ŵ_i, ŵ_j⟩
    (2)  f_s(u) = u^{−s/2} for s > 0,   f_0(u) = −½ log u     ‖ŵ_i − ŵ_j‖^{−s}, and log 1/‖ŵ_i − ŵ_j‖

(Liu et al. 2018, "Learning towards Minimum Hyperspherical Energy", who use s = 0, 1 and 2; s = 1 is Thomson's problem
of electrons on a sphere.) f_s is convex and falls, and the mean of u_ij, (2K² − 2‖Σ_i ŵ_i‖²)/(K(K−1)), is at most
2K/(K−1), so by Jensen

    (3)  E_s ≥ f_s(2K/(K−1)),   equal iff ŵ is a regular simplex centred at the origin (there is one iff dim ≥ K − 1).

Deviates: directions nearer than `NEAREST` count as so near and do not repel each other, so that equal weights have a
finite value and no gradient; the paper's energy is infinite there. A weight of 0 has no direction: it counts as at
right angles to all others, and neither moves nor moves them.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from kontrast.checks import number
from kontrast.sphere import unit

NEAREST = 0.01  # in float32 u of (1) still has two good digits there
LARGEST_POWER = 10.0  # NEAREST^(−s), and what its gradient is made of, fit into float32
ENTRIES = 2_000_000  # of u at a time; more is computed in strips, and again in backward


def energy_power(power: float) -> float:
    """Check the power s of the energy.

    Args:
        power: A number from 0 to 10.

    Returns:
        The number as a float.

    Raises:
        ValueError: It lies outside its range.

    >>> energy_power(2)
    2.0
    """
    s = number("energy_power", power, least=0.0)
    if s > LARGEST_POWER:
        raise ValueError(f"energy_power must be at most {LARGEST_POWER:g}, got {s:g}")
    return s


def repulsion(squared_distance: Tensor, power: float) -> Tensor:
    """(2), elementwise.

    Args:
        squared_distance: u, of any shape.
        power: s.

    Returns:
        f_s(u), in the same shape.

    >>> repulsion(torch.tensor([4.0]), 2.0), repulsion(torch.tensor([4.0]), 0.0)  # 1/4, −log 2
    (tensor([0.2500]), tensor([-0.6931]))
    """
    u = squared_distance.clamp(min=NEAREST**2)
    return u.pow(-power / 2) if power else u.log() / -2


def smallest_energy(num_weights: int, power: float) -> float:
    """(3): the energy of a regular simplex of so many weights.

    Args:
        num_weights: K, at least 2.
        power: s.

    Returns:
        The smallest energy that K weights can have.

    >>> smallest_energy(2, 1.0)  # opposite, at distance 2
    0.5
    """
    u = 2 * num_weights / (num_weights - 1)
    return u ** (-power / 2) if power else -math.log(u) / 2


def energy(weight: Tensor, power: float) -> Tensor:
    """(1) of weights, in their own precision; K² numbers are never held at once if K is large.

    Args:
        weight: ``[K, dim]``, K at least 2.
        power: s.

    Returns:
        The energy, a scalar with a gradient.

    >>> energy(torch.tensor([[3.0, 0.0], [-0.5, 0.0]]), 1.0)  # opposite, whatever their lengths
    tensor(0.5000)
    """
    w = unit(weight)
    k = len(w)
    height = max(1, ENTRIES // k)
    if height >= k:
        return _of_strip(w, w, 0, power) / (k * (k - 1))
    strips = [
        checkpoint(_of_strip, w[first : first + height], w, first, power, use_reentrant=False, preserve_rng_state=False)
        for first in range(0, k, height)
    ]
    return torch.stack(strips).sum() / (k * (k - 1))


def _of_strip(some: Tensor, w: Tensor, first: int, power: float) -> Tensor:
    """Σ of (2) over the pairs of ``some``, the weights from ``first`` on, with all others."""
    u = 2 - 2 * some @ w.T
    itself = torch.zeros_like(u, dtype=torch.bool)
    itself.diagonal(first).fill_(True)
    return repulsion(u, power).masked_fill(itself, 0.0).sum()


def reference(weight: Tensor, power: float) -> Tensor:
    """(1) with the differences of all directions at once, ``[K, K, dim]``; for weights that are not 0."""
    w = weight / weight.norm(dim=1, keepdim=True)
    i, j = (~torch.eye(len(w), dtype=torch.bool, device=w.device)).nonzero().T
    u = (w[i] - w[j]).square().sum(1)  # (1)
    return repulsion(u, power).mean()
