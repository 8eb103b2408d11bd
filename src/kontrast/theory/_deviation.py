r"""How far points and weights are from a regular simplex, in lengths of its radius ρ.

Vectors v_1 … v_K are a regular simplex of radius ρ centred at the origin iff (1) is all 0; classes with means μ_k are
collapsed onto it iff (2) is 0 as well, and weights w_k are aligned to them iff (3) is:

    (1)  origin ‖(1/K) Σ_k v_k‖/ρ,   norm max_k |‖v_k‖ − ρ|/ρ,   cosine max_{k≠l} |cos(v_k, v_l) + 1/(K−1)|
    (2)  collapse max_n ‖z_n − μ_{y_n}‖/ρ
    (3)  alignment max_k ‖w_k/‖w_k‖ − μ_k/‖μ_k‖‖

(Graf et al., S1–S3; with S2 equal distances are equal cosines.)
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kontrast.geometry import optimum, pairwise_cosines
from kontrast.sphere import unit


@dataclass(frozen=True)
class Deviation:
    """(1), (2): of points from classes collapsed onto a regular simplex; all 0 there."""

    origin: float
    norm: float
    cosine: float
    collapse: float

    @property
    def largest(self) -> float:
        """The largest of them."""
        return max(self.origin, self.norm, self.cosine, self.collapse)


@dataclass(frozen=True)
class WeightDeviation:
    """(1), (3): of weights from a regular simplex aligned to the class means; all 0 there."""

    origin: float
    norm: float
    cosine: float
    alignment: float

    @property
    def largest(self) -> float:
        """The largest of them."""
        return max(self.origin, self.norm, self.cosine, self.alignment)


def class_means(points: Tensor, labels: Tensor, num_classes: int | None = None) -> Tensor:
    """μ_1 … μ_K of points ``[N, D]`` with ``labels [N]`` in 0 … K − 1; nan for a class without points."""
    k = int(labels.max()) + 1 if num_classes is None else num_classes
    return torch.stack([points[labels == c].mean(0) for c in range(k)])


def deviation(points: Tensor, labels: Tensor, radius: float = 1.0) -> Deviation:
    """(1) of the class means and (2).

    >>> corners = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> deviation(corners, torch.tensor([0, 1]))  # a right angle instead of a straight one
    Deviation(origin=0.707..., norm=0.0, cosine=1.0, collapse=0.0)
    """
    means = class_means(points, labels)
    return Deviation(*simplex_conditions(means, radius), float((points - means[labels]).norm(dim=1).max()) / radius)


def weight_deviation(weights: Tensor, means: Tensor, radius: float | None = None) -> WeightDeviation:
    """(1) of the weights and (3); without a ``radius`` their own root mean square length.

    >>> line = torch.tensor([[1.0], [-1.0]])
    >>> weight_deviation(2 * line, line).largest
    0.0
    """
    length = float(weights.square().sum(1).mean().sqrt()) if radius is None else radius
    alignment = float((unit(weights) - unit(means)).norm(dim=1).max())
    return WeightDeviation(*simplex_conditions(weights, length), alignment)


def simplex_conditions(vectors: Tensor, radius: float = 1.0) -> tuple[float, float, float]:
    """(1): origin, norm, cosine."""
    return (
        float(vectors.mean(0).norm()) / radius,
        float((vectors.norm(dim=1) - radius).abs().max()) / radius,
        float((pairwise_cosines(vectors) - optimum(len(vectors))).abs().max()),
    )
