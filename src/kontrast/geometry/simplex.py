r"""How near class means and classifier weights are to a regular simplex, and samples to their class.

ζ_1 … ζ_K are the class means (of unit rows), or the rows of a classifier's weight matrix; ρ = mean ‖ζ_k‖:

    (S1)  ‖Σ_k ζ_k‖/(Kρ)                        origin-centred: 0
    (S2)  std_k ‖ζ_k‖ / ρ                       of one length: 0
    (S3)  std_{k<l} ‖ζ_k − ζ_l‖ / mean          at one distance: 0

    (1)   cos(ζ_k, ζ_l) = −1/(K−1)              all pairs, at the simplex
    (2)   cos(x_i, ζ_{y_i}) = 1                 all samples, where classes collapse; also to the class's weight
    (3)   angular form: 1 − arccos(cos)/π       −1 … 1 becomes 0 … 1; at the simplex 1 − arccos(−1/(K−1))/π
    (4)   √(S1² + S2² + S3²)                    the deviation: 0 at the simplex and nowhere else

(Graf et al.) Ranges: S1 0 … 1; S2 and S3 from 0, above 1 only where most points are 0 or equal. Each of S1–S3 alone is
0 for points that form no simplex (S3 for any orthogonal frame, S1 for any centred points), so it is (4) that says how
near one is. All three are relative to a length of the points themselves and are added with one weight each.

Two things decide whether a simplex can be reached at all. K points need K − 1 dimensions. And features behind a ReLU
(or a mean of its outputs) are ≥ 0, so that ⟨ζ_k, ζ_l⟩ ≥ 0 where the simplex has −ρ²/(K−1). Then

    (5)   ‖Σ_k ζ_k‖² ≥ Σ_k ‖ζ_k‖² ≥ Kρ²,   so S1 ≥ 1/√K,

with equality for an orthogonal frame of one length, where S2 = S3 = 0: 1/√K is the least (4) of non-negative features,
0.316 for K = 10 and 0.1 for K = 100. It takes K dimensions.

Deviates: the slides speak of cosine similarity, the authors' notebook draws (3); both are given.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from kontrast.checks import whole_number
from kontrast.geometry._rows import Classes, as_rows, as_tensor, check_classes, check_weights, measure, warn_if_few
from kontrast.geometry.estimate import Record, jackknife
from kontrast.sphere import directions, sized


@dataclass(frozen=True, kw_only=True, eq=False)
class Simplex(Record):
    """Deviations from a regular simplex, means of the cosines, and the cosines themselves for drawing.

    Attributes:
        origin: (S1) of the class means.
        norm: (S2).
        distance: (S3).
        across_means: Mean of (1); compare with ``optimum``.
        spread_across_means: Standard deviation of (1); 0 at the simplex.
        within: Mean of (2); 1 where classes collapse.
        optimum: −1/(K−1).
        num_classes: K.
        nonnegative: Whether no feature is below 0, as behind a ReLU.
        reachable: Whether the features' sign and dimension (at least K − 1) allow a simplex.
        least: The least (4) that sign and dimension allow: 0, or (5); None in too few dimensions, where it is not
            known.
        cosines_means: Cosines of each pair of class means, ``[K(K−1)/2]``.
        cosines_within: Cosine of each sample to its class mean, ``[N]``.
        weight_origin: (S1) of the weights; this and all below are None without weights.
        weight_norm: (S2) of the weights.
        weight_distance: (S3) of the weights.
        across_weights: Mean of (1) of the weights.
        to_weight: Mean cosine of each sample to its class's weight.
        cosines_weights: Cosines of each pair of weights, ``[K(K−1)/2]``.
        cosines_to_weight: Cosine of each sample to its class's weight, ``[N]``.

    >>> simplex(torch.eye(4).repeat(5, 1), torch.arange(20) % 4).across_means  # an orthogonal frame
    0.0
    """

    origin: float
    norm: float
    distance: float
    across_means: float
    spread_across_means: float
    within: float
    optimum: float
    num_classes: int
    nonnegative: bool
    reachable: bool
    least: float | None
    cosines_means: Tensor
    cosines_within: Tensor
    weight_origin: float | None = None
    weight_norm: float | None = None
    weight_distance: float | None = None
    across_weights: float | None = None
    to_weight: float | None = None
    cosines_weights: Tensor | None = None
    cosines_to_weight: Tensor | None = None

    @property
    def deviation(self) -> float:
        """The deviation (4) of the class means from a regular simplex.

        >>> result = simplex(torch.eye(4).repeat(5, 1), torch.arange(20) % 4)  # an orthogonal frame
        >>> round(result.deviation, 6), round(result.distance, 6), result.reachable, result.least
        (0.5, 0.0, False, 0.5)
        """
        return math.hypot(self.origin, self.norm, self.distance)

    @property
    def obstacle(self) -> str:
        """The reason why no regular simplex can be reached; empty where one can.

        >>> simplex(torch.eye(4).repeat(5, 1), torch.arange(20) % 4).obstacle
        'features ≥ 0 reach √(S1² + S2² + S3²) = 0.5 at best'
        """
        if self.reachable:
            return ""
        if not self.nonnegative:
            return f"needs {self.num_classes - 1} dimensions"
        floor = f"reach √(S1² + S2² + S3²) = {self.num_classes**-0.5:.3g} at best"
        return f"features ≥ 0 {floor}" if self.least is not None else "features ≥ 0 in too few dimensions"

    @property
    def optimum_angular(self) -> float:
        """(3) at the simplex.

        >>> [round(optimum(k, angular=True), 4) for k in (4, 10, 100)]
        [0.3918, 0.4646, 0.4968]
        """
        return optimum(self.num_classes, angular=True)


@measure
def simplex(
    features: Any, labels: Any, weights: Any = None, *, normalize: bool = True, with_error: bool = False
) -> Simplex:
    """How near class means, weights and samples are to a regular simplex.

    Args:
        features: Rows ``[N, D]``.
        labels: Integer labels ``[N]`` of at least two classes.
        weights: A classifier's weights ``[K, D]``; row k belongs to the k-th smallest label.
        normalize: Whether rows of ``features`` are scaled to length one.
        with_error: Whether to fill ``errors`` by the jackknife.

    Returns:
        Deviations and cosines.

    Raises:
        ValueError: Shapes do not fit, rows hold NaN or infinity, or there is only one class.

    >>> from kontrast.simplex import vertices
    >>> result = simplex(vertices(4).repeat(10, 1), torch.arange(40) % 4)
    >>> [round(v, 4) for v in (result.across_means, result.optimum, result.within, result.distance)]
    [-0.3333, -0.3333, 1.0, 0.0]
    """
    x, _ = sized(as_rows("features", features, normalize=normalize, any_size=True))
    classes = check_classes(labels, x, least=2)
    w = None if weights is None else check_weights(weights, x, classes)
    warn_if_few(int(classes.counts.min()), 5, "samples in the smallest class that simplex is computed on")
    compute = functools.partial(_simplex, weights=w)
    result = compute(x, classes.index)
    if not with_error:
        return result
    errors = jackknife(compute, x, classes.index)
    exact = ("optimum", "num_classes", "least")
    return replace(result, errors={name: error for name, error in errors.items() if name not in exact})


def _simplex(x: Tensor, labels: Tensor, weights: Tensor | None) -> Simplex:
    classes = check_classes(labels, x)
    means = classes.means(x)
    k = len(classes)
    s1, s2, s3 = deviations(means)
    across, within = pairwise_cosines(means), _cosines_to_own(x, means, classes)
    extra: dict[str, Any] = {}
    if weights is not None:
        w1, w2, w3 = deviations(weights)
        between, to_weight = pairwise_cosines(weights), _cosines_to_own(x, weights, classes)
        extra = {
            "weight_origin": w1,
            "weight_norm": w2,
            "weight_distance": w3,
            "across_weights": float(between.mean()),
            "to_weight": float(to_weight.mean()),
            "cosines_weights": between,
            "cosines_to_weight": to_weight,
        }
    nonnegative, room = not bool((x < 0).any()), x.shape[1] >= k - 1  # K points need K − 1 dimensions
    least = 0.0 if room else None
    if nonnegative:
        least = k**-0.5 if x.shape[1] >= k else None  # (5)
    return Simplex(
        origin=s1,
        norm=s2,
        distance=s3,
        across_means=float(across.mean()),
        spread_across_means=float(across.std(correction=0)),
        within=float(within.mean()),
        optimum=optimum(k),
        num_classes=k,
        nonnegative=nonnegative,
        reachable=not nonnegative and room,
        least=least,
        cosines_means=across,
        cosines_within=within,
        **extra,
    )


def deviations(points: Tensor) -> tuple[float, float, float]:
    """(S1), (S2), (S3) of points.

    Args:
        points: Points ``[K, D]``, such as class means or weights.

    Returns:
        The three deviations; NaN where all points are 0.

    >>> from kontrast.simplex import vertices
    >>> [round(x, 6) for x in deviations(vertices(5, dtype=torch.float64))]
    [0.0, 0.0, 0.0]
    >>> [round(x, 4) for x in deviations(torch.tensor([[1.0, 0.0], [0.0, 1.0]]))]  # not centred, else regular
    [0.7071, 0.0, 0.0]
    """
    points, _ = sized(as_tensor(points).double())
    norms = torch.linalg.vector_norm(points, dim=1)
    rho = float(norms.mean())
    distances = torch.pdist(points)
    if rho == 0:
        return math.nan, math.nan, math.nan
    s1 = float(torch.linalg.vector_norm(points.mean(0))) / rho
    s2 = float(norms.std(correction=0)) / rho
    mean_distance = float(distances.mean())
    s3 = float(distances.std(correction=0)) / mean_distance if mean_distance else 0.0
    return s1, s2, s3


def pairwise_cosines(points: Tensor) -> Tensor:
    """The cosines (1) of all pairs of points.

    Args:
        points: Points ``[K, D]``.

    Returns:
        The cosines ``[K(K−1)/2]``.

    >>> pairwise_cosines(torch.tensor([[1.0, 0.0], [0.0, 2.0], [-3.0, 0.0]]))
    tensor([ 0., -1.,  0.])
    """
    z = directions(as_tensor(points))
    i, j = torch.triu_indices(len(z), len(z), 1, device=z.device)
    return (z @ z.T)[i, j]


def optimum(num_classes: int, *, angular: bool = False) -> float:
    """The cosine (1) of two vertices of a regular simplex.

    Args:
        num_classes: K, at least 2.
        angular: Whether to return its angular form (3).

    Returns:
        −1/(K−1), or its angular form.

    Raises:
        ValueError: ``num_classes`` is below 2.

    >>> optimum(5)
    -0.25
    """
    cosine = -1 / (whole_number("num_classes", num_classes, least=2) - 1)
    return 1 - math.acos(cosine) / math.pi if angular else cosine


def angular(cosines: Tensor) -> Tensor:
    """The angular form (3) of cosines, which the authors' notebook draws.

    Args:
        cosines: Cosines of any shape.

    Returns:
        Numbers from 0 (opposite) to 1 (equal), in the same shape.

    >>> angular(torch.tensor([-1.0, 0.0, 1.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    return 1 - as_tensor(cosines).clamp(-1, 1).arccos() / math.pi


def _cosines_to_own(x: Tensor, points: Tensor, classes: Classes) -> Tensor:
    """(2): the cosine of each row and its class's point."""
    towards = directions(points).to(x.dtype)
    return (directions(x) * towards[classes.index]).sum(1)
