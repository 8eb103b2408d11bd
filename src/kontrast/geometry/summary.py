"""Every measure that features alone allow, or features and labels, each beside its theoretical value.

Measures per anchor (penalty entropy, neighbours, gradient response) are taken at a random sample of the rows, each
against all others; everything else is over all rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kontrast.geometry import bounds
from kontrast.geometry._features import as_rows, classes, measure
from kontrast.geometry.entropy import penalty_entropy
from kontrast.geometry.estimate import Estimate, mean
from kontrast.geometry.gradients import gradient_response
from kontrast.geometry.neural_collapse import neural_collapse
from kontrast.geometry.separation import local_separation
from kontrast.geometry.simplex import angular, optimum, simplex
from kontrast.geometry.spectrum import collapse, spectrum
from kontrast.geometry.tolerance import tolerance
from kontrast.geometry.uniformity import uniformity, uniformity_limit


@dataclass(frozen=True)
class Line:
    """One measure: its value, its standard error, and what theory has to say."""

    name: str
    value: float
    error: float | None = None
    theory: float | None = None
    meaning: str = ""  # what the theoretical value is


@dataclass(frozen=True)
class Features:
    """What is measured."""

    x: Tensor
    labels: Tensor | None
    weights: Tensor | None
    sample: Tensor  # rows that are anchors
    tau: float
    k1: float
    k2: float
    t: float


@measure
def summary(
    features: Any,
    labels: Any = None,
    weights: Any = None,
    *,
    temperature: float = 0.1,
    k1: float = 5000.0,
    k2: float = 1.0,
    t: float = 2.0,
    anchors: int = 5000,
    seed: int = 0,
    normalize: bool = True,
    progress: Callable[[str, int, int], None] | None = None,
) -> list[Line]:
    """All of them, one a line; ``progress(name, done, of)`` is told before each.

    ``temperature``, ``k1`` and ``k2`` are the loss's, ``t`` the uniformity's.

    >>> x = torch.randn(200, 16, generator=torch.Generator().manual_seed(0))
    >>> for line in summary(x)[:2]:
    ...     print(line.name, round(line.value, 1), round(line.theory, 1), line.meaning)
    uniformity, t = 2 -3.5 -3.5 uniform on the sphere
    effective rank 15.8 16.0 all directions alike
    """
    x = as_rows("features", features, normalize=normalize)
    n = len(x)
    given = Features(
        x=x,
        labels=None if labels is None else classes(labels, x).index,
        weights=weights,
        sample=torch.randperm(n, generator=torch.Generator().manual_seed(seed))[:anchors].sort().values.to(x.device),
        tau=temperature,
        k1=k1,
        k2=k2,
        t=t,
    )
    steps = [s for s in STEPS if labels is not None or s not in WITH_LABELS]
    found: list[Line] = []
    for i, step in enumerate(steps):
        if progress:
            progress(step.__name__.strip("_").replace("_", " "), i, len(steps))
        found += step(given)
    return found


def _uniformity(f: Features) -> Iterator[Line]:
    found = uniformity(f.x, f.t, with_error=True, normalize=False)
    limit = uniformity_limit(f.x.shape[1], f.t)
    yield _line(f"uniformity, t = {f.t:g}", found, limit, "uniform on the sphere")


def _spectrum(f: Features) -> Iterator[Line]:
    n, d = f.x.shape
    found, fallen = spectrum(f.x, normalize=False, with_error=True), collapse(f.x, normalize=False)
    yield _line("effective rank", found.estimates()["effective_rank"], float(min(n, d)), "all directions alike")
    yield _line("spread", fallen.spread, 1.0, "centred (0: all rows equal)")
    yield _line("dead directions", float(fallen.dead), 0.0, f"all {d} have variance")


def _penalty_entropy(f: Features) -> Iterator[Line]:
    anchors = f.x[f.sample]
    taus = sorted({0.07, 0.3, 1.0, f.tau})
    found = penalty_entropy(anchors, anchors, f.x, f.sample, temperature=taus, normalize=False)
    for tau, column in zip(taus, found.T, strict=True):
        yield _line(f"penalty entropy, τ = {tau:g}", mean(column), math.log(len(f.x) - 1), "all negatives alike")


def _neighbours(f: Features) -> Iterator[Line]:
    anchors = f.x[f.sample]
    found = local_separation(anchors, anchors, f.x, f.sample, normalize=False).nearest
    for k in sorted({1, found.shape[1]}):
        name = "nearest other" if k == 1 else f"{k}th nearest other"
        yield _line(f"cosine to the {name}", mean(found[:, k - 1]), 1.0, "all rows equal")


def _tolerance(f: Features) -> Iterator[Line]:
    yield _line("tolerance", tolerance(f.x, f.labels, with_error=True, normalize=False), 1.0, "each class one point")


def _simplex(f: Features) -> Iterator[Line]:
    found = simplex(f.x, f.labels, f.weights, normalize=False, with_error=True)
    of, best, best_angular = found.estimates(), found.optimum, optimum(found.num_classes, angular=True)
    where = "regular simplex" if found.reachable else f"regular simplex (needs {found.num_classes - 1} dimensions)"
    yield _line("S1, means off the origin", of["origin"], 0.0, where)
    yield _line("S2, lengths of means differ", of["norm"], 0.0, where)
    yield _line("S3, distances of means differ", of["distance"], 0.0, where)
    yield _line("cosine of two class means", of["across_means"], best, where)
    yield _line("cosine of two class means, angular", float(angular(found.cosines_means).mean()), best_angular, where)
    yield _line("cosine to the class mean", of["within"], 1.0, "each class one point")
    yield _line(
        "cosine to the class mean, angular", float(angular(found.cosines_within).mean()), 1.0, "each class one point"
    )
    if found.cosines_weights is not None and found.cosines_to_weight is not None:
        yield _line("S1 of the weights", of["weight_origin"].value, 0.0, where)
        yield _line("S2 of the weights", of["weight_norm"].value, 0.0, where)
        yield _line("S3 of the weights", of["weight_distance"].value, 0.0, where)
        yield _line("cosine of two weights", of["across_weights"].value, best, where)
        yield _line("cosine of two weights, angular", float(angular(found.cosines_weights).mean()), best_angular, where)
        yield _line("cosine to the class's weight", of["to_weight"], 1.0, "aligned with its class's weight")


def _neural_collapse(f: Features) -> Iterator[Line]:
    found = neural_collapse(f.x, f.labels, f.weights, normalize=False, with_error=True).estimates()
    names = {
        "nc1": "NC1, variance within / between",
        "nc2_norm": "NC2, lengths of means differ",
        "nc2_angle": "NC2, means off the angle",
        "nc2_norm_weights": "NC2, lengths of weights differ",
        "nc2_angle_weights": "NC2, weights off the angle",
        "nc3": "NC3, weights off the means",
        "nc4": "NC4, not the nearest mean",
    }
    for key, name in names.items():
        if key in found:
            yield _line(name, found[key], 0.0, "complete collapse")


def _gradient_response(f: Features) -> Iterator[Line]:
    assert f.labels is not None
    sample = f.x[f.sample], f.labels[f.sample]
    counts = torch.bincount(sample[1])
    present = int((counts > 0).sum())
    if int(counts.max()) < 2 or present < 2:
        return
    found = gradient_response(*sample, temperature=f.tau, k1=[0.0, f.k1], k2=[1.0, f.k2], normalize=False)
    for i, name in ((0, "SupCon"), (1, "TCL")):
        at = bounds.simplex_response(present, len(f.sample) / present, f.tau, k1=(0.0, f.k1)[i], k2=(1.0, f.k2)[i])
        where = f"regular simplex, τ = {f.tau:g}" + (f", k1 = {f.k1:g}, k2 = {f.k2:g}" if i else "")
        yield _line(f"{name}: pull of hardest positive", mean(found.positive[:, i, i]), at[0], where)
        yield _line(f"{name}: push of hardest negative", mean(found.negative[:, i, i]), at[1], where)


STEPS: tuple[Callable[[Features], Iterator[Line]], ...] = (
    _uniformity,
    _spectrum,
    _penalty_entropy,
    _neighbours,
    _tolerance,
    _simplex,
    _neural_collapse,
    _gradient_response,
)
WITH_LABELS = (_tolerance, _simplex, _neural_collapse, _gradient_response)


def _line(name: str, found: Estimate | float, theory: float | None = None, meaning: str = "") -> Line:
    value, error = found if isinstance(found, Estimate) else (found, math.nan)
    return Line(name, value, None if math.isnan(error) else error, theory, meaning)
