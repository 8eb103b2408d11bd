"""Every measure that the features (and labels) allow, each beside its theoretical value.

Measures per anchor (penalty entropy, neighbours, gradient response) take a random sample of the rows as anchors, each
against all others; everything else is over all rows. Their errors take into account that anchors share negatives
(`anchor_mean`). A measure that these features or labels do not allow has the value NaN, and says why.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kontrast.checks import number, whole_number
from kontrast.geometry import bounds
from kontrast.geometry._rows import as_rows, check_classes, measure
from kontrast.geometry.entropy import penalty_entropy
from kontrast.geometry.estimate import Estimate, anchor_mean
from kontrast.geometry.gradients import gradient_response
from kontrast.geometry.neural_collapse import neural_collapse
from kontrast.geometry.separation import local_separation
from kontrast.geometry.simplex import angular, simplex
from kontrast.geometry.spectrum import collapse, spectrum
from kontrast.geometry.tolerance import tolerance
from kontrast.geometry.uniformity import uniformity, uniformity_limit


@dataclass(frozen=True)
class Line:
    """One measure of a summary.

    Attributes:
        name: The name of the measure.
        value: Its value; NaN if it could not be measured.
        error: Its standard error, if known.
        theory: Its theoretical value, if there is one.
        meaning: When the theoretical value is reached.

    >>> Line("uniformity", -3.8, 0.01, -3.9, "uniform on the sphere").theory
    -3.9
    """

    name: str
    value: float
    error: float | None = None
    theory: float | None = None
    meaning: str = ""  # what the theoretical value is


@dataclass(frozen=True)
class Features:
    """The inputs of every measure of a summary."""

    x: Tensor
    labels: Tensor | None
    weights: Tensor | None
    sample: Tensor  # rows that are anchors
    unit: bool  # whether rows have length one, as the theory of some measures wants them
    tau: float
    k1: float
    k2: float
    t: float

    def if_unit(self, theory: float) -> float | None:
        """A theoretical value that holds for unit rows only."""
        return theory if self.unit else None


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
    """All measures of features, one a line.

    Args:
        features: Rows ``[N, D]``.
        labels: Integer labels ``[N]``, if there are any.
        weights: A classifier's weights ``[K, D]``; they need labels.
        temperature: The loss's temperature τ.
        k1: TCL's k1.
        k2: TCL's k2.
        t: The t of uniformity.
        anchors: How many rows are sampled as anchors.
        seed: The seed of that sample.
        normalize: Whether rows are scaled to length one.
        progress: Called as ``progress(name, done, total)`` before each measure.

    Returns:
        The lines.

    Raises:
        ValueError: There is only one row, rows hold NaN or infinity, weights come without labels, or a number lies
            outside its range.

    >>> x = torch.randn(200, 16, generator=torch.Generator().manual_seed(0))
    >>> for line in summary(x)[:2]:
    ...     print(line.name, round(line.value, 1), round(line.theory, 1), line.meaning)
    uniformity, t = 2 -3.5 -3.5 uniform on the sphere
    effective rank 15.8 16.0 all directions alike
    """
    x = as_rows("features", features, normalize=normalize)
    n, anchors = len(x), whole_number("anchors", anchors, least=1)
    if weights is not None and labels is None:
        raise ValueError("weights say what a classifier makes of classes: pass labels too")
    if n < 2:
        raise ValueError(f"features has {n} row: geometry compares rows")
    inputs = Features(
        x=x,
        labels=None if labels is None else check_classes(labels, x).index,
        weights=weights,
        sample=torch.randperm(n, generator=torch.Generator().manual_seed(seed))[:anchors].sort().values.to(x.device),
        unit=normalize,
        tau=number("temperature", temperature, above=0.0),
        k1=k1,
        k2=k2,
        t=t,
    )
    steps = STEPS if labels is None else STEPS + STEPS_WITH_LABELS
    lines: list[Line] = []
    for i, step in enumerate(steps):
        name = step.__name__.strip("_").replace("_", " ")
        if progress:
            progress(name, i, len(steps))
        try:
            lines += step(inputs)
        except ValueError as error:
            lines.append(Line(name, math.nan, meaning=f"not measured: {error}"))
    return lines


def _uniformity(f: Features) -> Iterator[Line]:
    value = uniformity(f.x, f.t, with_error=True, normalize=False)
    limit = uniformity_limit(f.x.shape[1], f.t)
    yield _line(f"uniformity, t = {f.t:g}", value, f.if_unit(limit), "uniform on the sphere")


def _spectrum(f: Features) -> Iterator[Line]:
    n, d = f.x.shape
    result, state = spectrum(f.x, normalize=False, with_error=True), collapse(f.x, normalize=False)
    yield _line("effective rank", result.estimates()["effective_rank"], float(min(n, d)), "all directions alike")
    yield _line("spread", state.spread, 1.0, "centred (0: all rows equal)")
    verdict = {"none": "no collapse", "complete": "complete collapse", "dimensional": "dimensional collapse"}
    yield _line("dead directions", float(state.dead), 0.0, f"of {min(d, n - 1)}; here: {verdict[state.kind]}")


def _penalty_entropy(f: Features) -> Iterator[Line]:
    anchors = f.x[f.sample]
    taus = sorted({0.07, 0.3, 1.0, f.tau})
    entropies = penalty_entropy(anchors, anchors, f.x, f.sample, temperature=taus, normalize=False)

    def among(rows: Tensor) -> Tensor:
        return penalty_entropy(f.x[rows], f.x[rows], temperature=taus, normalize=False)

    for tau, estimate in zip(taus, anchor_mean(entropies, among, len(f.x)), strict=True):
        yield _line(f"penalty entropy, τ = {tau:g}", estimate, math.log(len(f.x) - 1), "all negatives alike")


def _neighbours(f: Features) -> Iterator[Line]:
    anchors = f.x[f.sample]
    nearest = local_separation(anchors, anchors, f.x, f.sample, normalize=False).nearest
    # Errors come from leaving rows out: with few rows, the rest has one neighbour less.
    ranks = sorted({1, min(nearest.shape[1], max(1, len(f.x) - 2))})
    columns = [k - 1 for k in ranks]

    def among(rows: Tensor) -> Tensor:
        return local_separation(f.x[rows], f.x[rows], nearest=ranks[-1], normalize=False).nearest[:, columns]

    what = "cosine to" if f.unit else "inner product with"
    for k, estimate in zip(ranks, anchor_mean(nearest[:, columns], among, len(f.x)), strict=True):
        name = "nearest other" if k == 1 else f"{k}th nearest other"
        yield _line(f"{what} the {name}", estimate, f.if_unit(1.0), "all rows equal")


def _tolerance(f: Features) -> Iterator[Line]:
    value = tolerance(f.x, f.labels, with_error=True, normalize=False)
    yield _line("tolerance" if f.unit else "tolerance, inner product", value, f.if_unit(1.0), "each class one point")


def _simplex(f: Features) -> Iterator[Line]:
    result = simplex(f.x, f.labels, f.weights, normalize=False, with_error=True)
    estimates, best, best_angular = result.estimates(), result.optimum, result.optimum_angular
    where = "regular simplex" + (f" ({result.obstacle})" if result.obstacle else "")
    yield _line("S1, means off the origin", estimates["origin"], 0.0, where)
    yield _line("S2, lengths of means differ", estimates["norm"], 0.0, where)
    yield _line("S3, distances of means differ", estimates["distance"], 0.0, where)
    yield _line("S1–S3 together, √(S1² + S2² + S3²)", result.deviation, 0.0, where)
    yield _line("cosine of two class means", estimates["across_means"], best, where)
    yield _line("cosine of two class means, angular", _mean_angular(result.cosines_means), best_angular, where)
    point = "each class one point"
    yield _line("cosine to the class mean", estimates["within"], 1.0, point)
    yield _line("cosine to the class mean, angular", _mean_angular(result.cosines_within), 1.0, point)
    if result.cosines_weights is not None and result.cosines_to_weight is not None:
        yield _line("S1 of the weights", estimates["weight_origin"].value, 0.0, where)
        yield _line("S2 of the weights", estimates["weight_norm"].value, 0.0, where)
        yield _line("S3 of the weights", estimates["weight_distance"].value, 0.0, where)
        yield _line("cosine of two weights", estimates["across_weights"].value, best, where)
        yield _line("cosine of two weights, angular", _mean_angular(result.cosines_weights), best_angular, where)
        where = "aligned with its class's weight"
        yield _line("cosine to the class's weight", estimates["to_weight"], 1.0, where)
        yield _line("cosine to the class's weight, angular", _mean_angular(result.cosines_to_weight), 1.0, where)


def _mean_angular(cosines: Tensor) -> float:
    return float(angular(cosines).mean())


def _neural_collapse(f: Features) -> Iterator[Line]:
    estimates = neural_collapse(f.x, f.labels, f.weights, normalize=False, with_error=True).estimates()
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
        if key in estimates:
            yield _line(name, estimates[key], 0.0, "complete collapse")


def _gradient_response(f: Features) -> Iterator[Line]:
    assert f.labels is not None
    labels, num_classes = f.labels, int(f.labels.max()) + 1
    if num_classes < 2:
        raise ValueError("labels hold 1 class: without negatives there is no push")

    def responses(x: Tensor, of: Tensor, anchors: Tensor | None = None) -> Tensor:
        """SupCon's pull and push, then TCL's, ``[anchors, 4]``."""
        at = gradient_response(
            x, of, temperature=f.tau, k1=[0.0, f.k1], k2=[1.0, f.k2], anchors=anchors, normalize=False
        )
        return torch.stack([part[:, i, i] for i in (0, 1) for part in (at.positive, at.negative)], dim=1)

    at_sample = responses(f.x, labels, f.sample)
    estimates = iter(anchor_mean(at_sample, lambda rows: responses(f.x[rows], labels[rows]), len(f.x)))
    for name, k1, k2 in (("SupCon", 0.0, 1.0), ("TCL", f.k1, f.k2)):
        pull, push = bounds.simplex_response(num_classes, len(f.x) / num_classes, f.tau, k1=k1, k2=k2)
        where = f"regular simplex, τ = {f.tau:g}" + (f", k1 = {k1:g}, k2 = {k2:g}" if name == "TCL" else "")
        yield _line(f"{name}: pull of hardest positive", next(estimates), f.if_unit(pull), where)
        yield _line(f"{name}: push of hardest negative", next(estimates), f.if_unit(push), where)


STEPS: tuple[Callable[[Features], Iterator[Line]], ...] = (
    _uniformity,
    _spectrum,
    _penalty_entropy,
    _neighbours,
)
STEPS_WITH_LABELS: tuple[Callable[[Features], Iterator[Line]], ...] = (
    _tolerance,
    _simplex,
    _neural_collapse,
    _gradient_response,
)


def _line(name: str, value: Estimate | float, theory: float | None = None, meaning: str = "") -> Line:
    value, error = value if isinstance(value, Estimate) else (value, math.nan)
    if not math.isfinite(value):
        meaning = "not defined for these rows: they, or their class means, are equal"
    return Line(name, value, None if math.isnan(error) else error, theory, meaning if theory is not None else "")
