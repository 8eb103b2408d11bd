r"""Neural collapse: the four measures of the last phase of training.

μ_c class means, μ_G the mean of the class means, Σ_W and Σ_B the covariance within and between classes, M the rows
μ_c − μ_G, W the classifier's weights:

    (NC1)  tr(Σ_W Σ_B⁺)/K                                   variability within classes vanishes
    (NC2)  std_c ‖m_c‖ / mean_c ‖m_c‖,                      means of one length,
           mean_{c≠c'} |cos(m_c, m_c') + 1/(K−1)|           at the simplex's angles; the same for W
    (NC3)  ‖W/‖W‖_F − M/‖M‖_F‖²_F                            weights and means aligned
    (NC4)  share of samples whose nearest class mean is not the classifier's choice

(Papyan, Han & Donoho; the phenomenon Graf et al. relate their theorems to.) All are ≥ 0 and 0 at complete collapse;
NC3 ≤ 4, NC4 ≤ 1. Where all class means are equal NC1 is infinite, and NC2 and NC3 are not defined (NaN).

Deviates: the paper takes the features as the network gives them; here rows are normalised unless ``normalize=False``,
as in every measure: pass that for networks trained with cross-entropy. Weights are compared without bias. Σ_B's
pseudo-inverse keeps its K − 1 directions above 1e−10 of the largest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from kontrast.geometry._rows import Classes, as_rows, check_classes, check_weights, measure, parts, warn_if_few
from kontrast.geometry.estimate import Record, jackknife
from kontrast.geometry.simplex import optimum, pairwise_cosines
from kontrast.sphere import sized


@dataclass(frozen=True, kw_only=True, eq=False)
class NeuralCollapse(Record):
    """The measures NC1–NC4; those that need a classifier are None without one.

    Attributes:
        nc1: Variance within classes over variance between them.
        nc2_norm: Relative spread of the lengths of the class means.
        nc2_angle: Distance of their cosines from the simplex's.
        nc2_norm_weights: ``nc2_norm`` of the classifier's weights.
        nc2_angle_weights: ``nc2_angle`` of the classifier's weights.
        nc3: Distance between the scaled weights and the scaled means.
        nc4: Share of samples whose nearest class mean is not the classifier's choice.

    >>> from kontrast.simplex import vertices
    >>> neural_collapse(vertices(4).repeat(10, 1), torch.arange(40) % 4).nc4 is None
    True
    """

    nc1: float
    nc2_norm: float
    nc2_angle: float
    nc2_norm_weights: float | None = None
    nc2_angle_weights: float | None = None
    nc3: float | None = None
    nc4: float | None = None


@measure
def neural_collapse(
    features: Any, labels: Any, weights: Any = None, *, normalize: bool = True, with_error: bool = False
) -> NeuralCollapse:
    """Neural collapse of labelled features, and of a classifier if there is one.

    Args:
        features: Rows ``[N, D]``.
        labels: Integer labels ``[N]`` of at least two classes.
        weights: The classifier's weights ``[K, D]``; row k belongs to the k-th smallest label.
        normalize: Whether rows of ``features`` are scaled to length one.
        with_error: Whether to fill ``errors`` by the jackknife.

    Returns:
        The four measures.

    Raises:
        ValueError: Shapes do not fit, rows hold NaN or infinity, or there is only one class.

    >>> from kontrast.simplex import vertices
    >>> nc = neural_collapse(vertices(4).repeat(10, 1), torch.arange(40) % 4, 3 * vertices(4))
    >>> [round(x, 6) for x in (nc.nc1, nc.nc2_angle, nc.nc3, nc.nc4)]
    [0.0, 0.0, 0.0, 0.0]
    """
    x, _ = sized(as_rows("features", features, normalize=normalize, any_size=True))
    classes = check_classes(labels, x, least=2)
    w = None if weights is None else check_weights(weights, x, classes)
    warn_if_few(int(classes.counts.min()), 5, "samples in the smallest class that neural collapse is computed on")
    compute = partial(_neural_collapse, weights=w)
    result = compute(x, classes.index)
    return replace(result, errors=jackknife(compute, x, classes.index)) if with_error else result


def _neural_collapse(x: Tensor, labels: Tensor, weights: Tensor | None) -> NeuralCollapse:
    classes = check_classes(labels, x)
    means = classes.means(x)
    m = means - means.mean(0)
    if float(m.norm()) <= 1e-12 * len(m) ** 0.5 * float(means.norm(dim=1).max()):  # equal but for rounding
        m = torch.zeros_like(m)
    extra: dict[str, Any] = {}
    if weights is not None:
        extra["nc2_norm_weights"], extra["nc2_angle_weights"] = _nc2(weights)
        extra["nc3"] = float((weights / weights.norm() - m / m.norm()).square().sum())  # NaN for equal means
        extra["nc4"] = _nc4(x, means, weights)
    norm, angle = _nc2(m)
    return NeuralCollapse(nc1=_nc1(x, classes, means, m), nc2_norm=norm, nc2_angle=angle, **extra)


def _nc1(x: Tensor, classes: Classes, means: Tensor, m: Tensor) -> float:
    """NC1 in the span of M, which is all that Σ_B⁺ sees: M = U S Vᵀ, so Σ_B⁺ = K V S⁻² Vᵀ."""
    _, s, v = torch.linalg.svd(m, full_matrices=False)
    keep = s > s.max() * 1e-5  # of Σ_B's eigenvalues, 1e−10
    if not bool(keep.any()) or float(s.max()) == 0:
        return float("inf")
    s, v = s[keep], v[keep]
    within = torch.zeros(len(s), dtype=torch.float64, device=x.device)
    for r, part in parts(x):
        within += ((part - means[classes.index[r]]) @ v.T).square().sum(0)
    k = len(classes)
    return float((within / len(x) * k / s.square()).sum()) / k


def _nc2(points: Tensor) -> tuple[float, float]:
    norms = points.norm(dim=1)
    if float(norms.max()) == 0:
        return math.nan, math.nan
    return (
        float(norms.std(correction=0) / norms.mean()),
        float((pairwise_cosines(points) - optimum(len(points))).abs().mean()),
    )


def _nc4(x: Tensor, means: Tensor, weights: Tensor) -> float:
    num_different = 0
    half_square = means.square().sum(1) / 2
    for _, part in parts(x):
        nearest = (part @ means.T - half_square).argmax(1)
        num_different += int((nearest != (part @ weights.T).argmax(1)).sum())
    return num_different / len(x)
