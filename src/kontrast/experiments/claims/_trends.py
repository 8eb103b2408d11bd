r"""How a measure goes along an axis: slopes and curvatures by least squares, one of each seed.

With x the axis (its logarithm to base 2 where ``scale`` is "log", so that a step is a doubling) and y the measure,

    (1)  y ≈ α + β x                  slope β
    (2)  y ≈ α + β x + γ x²           curvature γ
    (3)  σ² = Σ_k r_k²/(K − p)        of one seed: from the residuals r of K points and p coefficients;
         σ √Σ_k w_k²                  is the standard error of a coefficient Σ_k w_k y_k

Each coefficient is Σ_k w_k y_k with weights of x alone, so that seeds and places can be averaged, and a censored run
(y_k is a lower bound) bounds it from below where w_k ≥ 0.

The weights of γ are below 0 in the middle, so a censored run there bounds nothing by itself. If the censored runs are
the upper end of the axis and what they would have given does not fall towards it (more random labels are never fitted
sooner), their excesses δ_k over one common bound rise, and Σ w_k δ_k ≥ 0 as soon as every sum of w from a censored
point to the end is: then γ of the bounds is a lower bound of γ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from kontrast.experiments.cell import Value
from kontrast.experiments.claims._parts import Number, Place, Readings, Where, at, average, by_part, lack, named
from kontrast.experiments.claims._verdict import Alone, opened, sign_over_seeds
from kontrast.experiments.experiment import Claim, Finding, Row

Curve = Sequence[tuple[float, Number]]  # by x, rising
Weigh = Callable[[Curve], Number]
LOG, LINEAR = "log", "linear"


def rises(
    text: str, measure: str, along: str, where: Where | None = None, within: Sequence[str] = (), scale: str = LOG
) -> Claim:
    """``measure`` rises along the axis: (1), its slope over seeds is above 0.

    >>> rows = [Row({"temperature": t, "seed": s}, "", "done", {"tolerance": t + 0.01 * s * t})
    ...     for t in (0.1, 0.2, 0.4) for s in range(3)]
    >>> rises("tolerance rises with τ", "tolerance", "temperature").test(rows)[0].says
    'slope per doubling of temperature = +0.1515 ± 0.0037 (n = 3), above 0; the smallest visible effect is 0.0046'
    """
    return _slope(text, measure, along, where or {}, within, scale, 1)


def falls(
    text: str, measure: str, along: str, where: Where | None = None, within: Sequence[str] = (), scale: str = LOG
) -> Claim:
    """``measure`` falls along the axis: (1), its slope over seeds is below 0."""
    return _slope(text, measure, along, where or {}, within, scale, -1)


def convex(
    text: str, measure: str, along: str, where: Where | None = None, within: Sequence[str] = (), scale: str = LINEAR
) -> Claim:
    """``measure`` is convex along the axis: (2), its curvature over seeds is above 0. Censored runs: see the top."""
    where, name = where or {}, curvature_name(along, scale)
    statistic = (
        f"each seed's least-squares quadratic of {measure} against {axis_of(along, scale)}{at(where)}; 95 % Student-t "
        f"interval of the curvature over seeds above 0; {CENSORED}"
    )

    def one(rows: Sequence[Row], part: str) -> Finding:
        curves, lacking = curves_of(rows, measure, along, where, scale)
        if few := too_few(curves, along, 3):
            return opened(part, lacking or few)
        alone = _from_residuals(curves, 2)
        return sign_over_seeds(
            name, of_each_seed(curves, _bounded_curvature), 1, where=part, lacking=lacking, alone=alone
        )

    return Claim(text, statistic, by_part(one, within, along, *where), (measure,))


def more_convex(
    text: str, measure: str, along: str, a: Where, b: Where, within: Sequence[str] = (), scale: str = LINEAR
) -> Claim:
    """``measure`` is more convex where ``a`` than where ``b``: (2), the paired difference of curvatures is above 0."""
    statistic = (
        f"each seed's least-squares quadratics of {measure} against {axis_of(along, scale)}: curvature where "
        f"{named(a)} minus that where {named(b)}; 95 % Student-t interval over seeds above 0; {CENSORED}"
    )

    def one(rows: Sequence[Row], part: str) -> Finding:
        (first, lacks), (second, lacks_too) = (curves_of(rows, measure, along, side, scale) for side in (a, b))
        if few := too_few(first, along, 3) or too_few(second, along, 3):
            return opened(part, lacks or lacks_too or few)
        common = [seed for seed in first if seed in second]
        pairs = zip(
            of_each_seed({s: first[s] for s in common}, _bounded_curvature),
            of_each_seed({s: second[s] for s in common}, _bounded_curvature),
            strict=True,
        )
        numbers = [one + other.times(-1.0) for one, other in pairs]
        name = f"{curvature_name(along, scale)}, {named(a)} − {named(b)},"
        lacking = "; ".join(filter(None, (lacks, lacks_too)))
        alone = _both(_from_residuals(first, 2), _from_residuals(second, 2))
        return sign_over_seeds(name, numbers, 1, where=part, lacking=lacking, alone=alone)

    return Claim(text, statistic, by_part(one, within, along, *a, *b), (measure,))


CENSORED = (
    "censored runs are taken at their bounds, which can only understate it if they are the upper end and their values "
    "do not fall towards it"
)


def _slope(text: str, measure: str, along: str, where: Where, within: Sequence[str], scale: str, sign: int) -> Claim:
    statistic = (
        f"each seed's least-squares slope of {measure} against {axis_of(along, scale)}{at(where)}; 95 % Student-t "
        f"interval over seeds {'above' if sign > 0 else 'below'} 0"
    )
    name = f"slope per {'doubling of ' if scale == LOG else 'unit of '}{along}"

    def one(rows: Sequence[Row], part: str) -> Finding:
        curves, lacking = curves_of(rows, measure, along, where, scale)
        if few := too_few(curves, along, 2):
            return opened(part, lacking or few)
        alone = _from_residuals(curves, 1)
        return sign_over_seeds(name, of_each_seed(curves, _slope_of), sign, where=part, lacking=lacking, alone=alone)

    return Claim(text, statistic, by_part(one, within, along, *where), (measure,))


def axis_of(along: str, scale: str) -> str:
    """The axis in words, as the quadratic's or the line's x."""
    if scale not in (LOG, LINEAR):
        raise ValueError(f"the scale is {scale!r}; expected 'log' or 'linear'")
    return f"log₂ {along}" if scale == LOG else along


def curvature_name(along: str, scale: str) -> str:
    """The curvature in words."""
    return f"curvature in {axis_of(along, scale)}"


def curves_of(
    rows: Sequence[Row], measure: str, along: str, where: Where, scale: str
) -> tuple[dict[Value, list[Curve]], str]:
    """Of each seed that has every cell: a curve for each place on the other axes; and what is lacking, in words."""
    read = Readings(rows, measure, where)
    found: dict[Value, list[Curve]] = {}
    for seed in read.complete(read.places):
        curves: dict[Place, list[tuple[float, Number]]] = {}
        for place, number in read.seeds[seed].items():
            rest = tuple(p for p in place if p[0] != along)
            curves.setdefault(rest, []).append((_x(dict(place)[along], along, scale), number))
        found[seed] = [sorted(curve, key=lambda point: point[0]) for curve in curves.values()]
    return found, lack(read) or ("" if found else "no seed has every cell")


def _x(value: Value, along: str, scale: str) -> float:
    if isinstance(value, bool | str | None) or (scale == LOG and value <= 0):
        needed = "positive numbers (or scale='linear')" if scale == LOG else "numbers"
        raise ValueError(f"a trend along {along} meets {value!r}; expected {needed}: leave the others out by where=")
    return math.log2(value) if scale == LOG else float(value)


def too_few(curves: Mapping[Value, list[Curve]], along: str, needed: int) -> str:
    """Why nothing can be fitted, in words; empty where it can."""
    if not curves:
        return "no seed has every cell"
    fewest = min(len(curve) for of_seed in curves.values() for curve in of_seed)
    return f"{along} has {fewest} values; expected {needed} or more" if fewest < needed else ""


def of_each_seed(curves: Mapping[Value, list[Curve]], weigh: Weigh) -> list[Number]:
    """A statistic of each seed: ``weigh`` of its curves, averaged."""
    return [average([weigh(curve) for curve in of_seed]) for of_seed in curves.values()]


def weights_of(curve: Curve, degree: int) -> np.ndarray:
    """[degree + 1, points]: the coefficients of 1, x, x² as weights of y."""
    x = np.array([point for point, _ in curve])
    middle, size = x.mean(), x.std()  # fitted in u = (x − middle)/size, where the columns are of one size
    fitted = np.linalg.pinv(np.vander((x - middle) / size, degree + 1, increasing=True))
    weights = np.zeros_like(fitted)
    for power in range(degree + 1):
        for k in range(power + 1):
            weights[k] += math.comb(power, k) * (-middle) ** (power - k) / size**power * fitted[power]
    weights[np.abs(weights) < 1e-12 * np.abs(weights).max(axis=1, keepdims=True)] = 0.0  # what is 0 has no sign
    return weights


def weighted_sum(curve: Curve, weights: np.ndarray) -> Number:
    """Σ wᵢyᵢ, with the sign of a bound where some of the y are censored; rounding counts as 0."""
    terms = [y.times(float(w)) for (_, y), w in zip(curve, weights, strict=True)]
    found, size = average(terms).times(len(terms)), sum(abs(term.value) for term in terms)
    return found if abs(found.value) > 1e-12 * size else Number(0.0, found.bound)  # else rounding would have a sign


def _from_residuals(curves: Mapping[Value, list[Curve]], degree: int) -> Alone | None:
    """(3) of the highest coefficient, where there is one seed and more points than coefficients.

    Of several curves (places on other axes), whose coefficients are averaged, the residuals are pooled.
    """
    if len(curves) != 1:
        return None
    (of_seed,) = curves.values()
    squares, freedom, weight = 0.0, 0, 0.0
    for curve in of_seed:
        if any(y.bound for _, y in curve):
            return None
        y, w = np.array([y.value for _, y in curve]), weights_of(curve, degree)
        x = np.array([x for x, _ in curve])
        rest = y - np.vander(x, degree + 1, increasing=True) @ (w @ y)
        squares, freedom, weight = squares + float(rest @ rest), freedom + len(x) - degree - 1, weight + w[-1] @ w[-1]
    if freedom < 1:
        return None
    return Alone(math.sqrt(squares / freedom * weight) / len(of_seed), freedom, "the residuals of the fit")


def _both(a: Alone | None, b: Alone | None) -> Alone | None:
    """Of a difference of two; the smaller degrees of freedom, so that the interval is not too short."""
    if a is None or b is None:
        return None
    return Alone(math.hypot(a.error, b.error), min(a.freedom, b.freedom), a.source)


def _slope_of(curve: Curve) -> Number:
    return weighted_sum(curve, weights_of(curve, 1)[1])


def _curvature_of(curve: Curve) -> Number:
    return weighted_sum(curve, weights_of(curve, 2)[2])


def _bounded_curvature(curve: Curve) -> Number:
    """γ; a lower bound too where the censored runs are the upper end and have one bound."""
    found, w = _curvature_of(curve), weights_of(curve, 2)[2]
    first = next((k for k, (_, y) in enumerate(curve) if y.bound), len(curve))
    end = [y for _, y in curve[first:]]
    at_end = all(y.bound == "≥" for y in end) and len({y.value for y in end}) == 1
    if at_end and bool((np.cumsum(w[first:][::-1]) >= -1e-12 * np.abs(w).max()).all()):
        return Number(found.value, "≥")
    return found
