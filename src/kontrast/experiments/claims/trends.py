"""How a measure changes along an axis, by least squares on each seed, and whether two measures go together.

With x the axis (its logarithm to base 2 if ``scale`` is "log", so that a step is a doubling) and y the measure,

    (1)  y ≈ α + β x                  slope β
    (2)  y ≈ α + β x + γ x²           curvature γ
    (3)  σ² = Σ_k r_k²/(K − p)        of one seed: from the residuals r of K points and p coefficients;
         σ √Σ_k w_k²                  is the standard error of a coefficient Σ_k w_k y_k

Each coefficient is Σ_k w_k y_k with weights of x alone, so seeds and places can be averaged, and a censored run (y_k is
a lower bound) bounds it from below where w_k ≥ 0.

The weights of γ are below 0 in the middle, so a censored run there bounds nothing by itself. If the censored runs are
the upper end of the axis and their true values do not fall towards it (more random labels are never fitted sooner),
their excesses δ_k over one common bound rise, and Σ w_k δ_k ≥ 0 as soon as every sum of w from a censored point to the
end is: then γ of the bounds is a lower bound of γ.

**About linear.** With the line and the quadratic on an axis of length R = max x − min x,

    (4)  rise = β R           β the slope of the line
    (5)  bend = γ R²/4        γ the curvature: how far the quadratic lies below its chord, in the middle
    (6)  |bend| ≤ θ · rise    "about linear"; y = x² from 0 has bend = rise/4, so θ = 1/8 is half of a square's bend

(6) is tested as equivalence is: θ·rise − bend and θ·rise + bend, both linear in y, must both lie above 0 by their 95 %
intervals over seeds, which also says that the measure rises. One of them below 0 decides against it. A ratio of each
seed would have no mean where a seed hardly rises.

**Rises, then falls.** If γ < 0 in (2), the top is at x* = −β/(2γ):

    (7)  x* < c   exactly where   β + 2γc < 0                the curve falls at c
    (8)  x* > c   exactly where   β + 2γc > 0                it still rises there
    (9)  {x: (β + 2γx)² ≤ t² (V_ββ + 4x V_βγ + 4x² V_γγ)}    the 95 % interval of x*   (Fieller 1954)

So the interval of a slope, which is linear in the measure, decides where the top is; the interval of a quotient is not
needed. V is the covariance of β and γ: over seeds, or, of one seed, from the residuals of the fit. A rise and fall that
is mirrored is one again; the place of its top tells the two apart, so a claim gives ``before`` if the paper says on
which side it lies.

**Correlation** of two measures over the grid:

    (10)  r = Pearson's correlation of the points;  z = artanh r is about normal with deviation 1/√(n − 3)   (Fisher)
    (11)  the 95 % interval is tanh(z ± 1.96/√(n − 3)); from four points on

A point is a place, its mean over seeds: runs that differ by the seed alone are not independent evidence of what the
place does, and counting each would make n too large.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kontrast.experiments.cell import Value
from kontrast.experiments.claims.readings import (
    FAILS,
    HOLDS,
    OPEN,
    Number,
    Place,
    Readings,
    SingleSeed,
    Where,
    at,
    average,
    by_part,
    label,
    lack,
    matches,
    open_finding,
    sign_over_seeds,
    weakest,
)
from kontrast.experiments.experiment import Claim, Finding, Row, is_censored
from kontrast.intervals import Interval, interval, student

Curve = Sequence[tuple[float, Number]]  # by x, rising
Curves = Mapping[Value, Sequence[Curve]]  # of each seed: one for each place on the other axes
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

    def judge(curves: Curves, part: str, lacking: str) -> Finding:
        numbers, single = of_each_seed(curves, _bounded_curvature), _from_residuals(curves, 2)
        return sign_over_seeds(name, numbers, 1, where=part, lacking=lacking, single=single)

    return _claim_of_curves(text, statistic, judge, measure, along, where, within, scale, fewest=3)


def more_convex(
    text: str, measure: str, along: str, a: Where, b: Where, within: Sequence[str] = (), scale: str = LINEAR
) -> Claim:
    """``measure`` is more convex where ``a`` than where ``b``: (2), the paired difference of curvatures is above 0."""
    statistic = (
        f"each seed's least-squares quadratics of {measure} against {axis_of(along, scale)}: curvature where "
        f"{label(a)} minus that where {label(b)}; 95 % Student-t interval over seeds above 0; {CENSORED}"
    )

    def one(rows: Sequence[Row], part: str) -> Finding:
        (first, lacks), (second, lacks_too) = (curves_of(rows, measure, along, side, scale) for side in (a, b))
        if few := too_few(first, along, 3) or too_few(second, along, 3):
            return open_finding(part, lacks or lacks_too or few)
        common = [seed for seed in first if seed in second]
        pairs = zip(
            of_each_seed({s: first[s] for s in common}, _bounded_curvature),
            of_each_seed({s: second[s] for s in common}, _bounded_curvature),
            strict=True,
        )
        numbers = [one + other.times(-1.0) for one, other in pairs]
        name = f"{curvature_name(along, scale)}, {label(a)} − {label(b)},"
        lacking = "; ".join(filter(None, (lacks, lacks_too)))
        single = _both(_from_residuals(first, 2), _from_residuals(second, 2))
        return sign_over_seeds(name, numbers, 1, where=part, lacking=lacking, single=single)

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

    def judge(curves: Curves, part: str, lacking: str) -> Finding:
        numbers, single = of_each_seed(curves, _slope_of), _from_residuals(curves, 1)
        return sign_over_seeds(name, numbers, sign, where=part, lacking=lacking, single=single)

    return _claim_of_curves(text, statistic, judge, measure, along, where, within, scale, fewest=2)


def _claim_of_curves(
    text: str,
    statistic: str,
    judge: Callable[[Curves, str, str], Finding],
    measure: str,
    along: str,
    where: Where,
    within: Sequence[str],
    scale: str,
    *,
    fewest: int,
) -> Claim:
    """A claim about the curves of each seed: ``judge(curves, part, lacking)``, of ``fewest`` points or more."""

    def one(rows: Sequence[Row], part: str) -> Finding:
        curves, lacking = curves_of(rows, measure, along, where, scale)
        if few := too_few(curves, along, fewest):
            return open_finding(part, lacking or few)
        return judge(curves, part, lacking)

    return Claim(text, statistic, by_part(one, within, along, *where), (measure,))


def axis_of(along: str, scale: str) -> str:
    """The axis in words, as the quadratic's or the line's x."""
    if scale not in (LOG, LINEAR):
        raise ValueError(f"scale={scale}: must be log or linear.")
    return f"log₂ {along}" if scale == LOG else along


def curvature_name(along: str, scale: str) -> str:
    """The curvature in words."""
    return f"curvature in {axis_of(along, scale)}"


def curves_of(
    rows: Sequence[Row], measure: str, along: str, where: Where, scale: str
) -> tuple[dict[Value, list[Curve]], str]:
    """Of each seed that has every cell: a curve for each place on the other axes; and what is lacking, in words."""
    readings = Readings(rows, measure, where)
    by_seed: dict[Value, list[Curve]] = {}
    for seed in readings.complete(readings.places):
        curves: dict[Place, list[tuple[float, Number]]] = {}
        for place, number in readings.seeds[seed].items():
            rest = tuple(p for p in place if p[0] != along)
            curves.setdefault(rest, []).append((_x(dict(place)[along], along, scale), number))
        by_seed[seed] = [sorted(curve, key=lambda point: point[0]) for curve in curves.values()]
    return by_seed, lack(readings) or ("" if by_seed else "no seed has every cell")


def _x(value: Value, along: str, scale: str) -> float:
    if isinstance(value, bool | str | None) or (scale == LOG and value <= 0):
        expected = "positive numbers (or scale='linear')" if scale == LOG else "numbers"
        raise ValueError(f"a trend along {along} meets {value!r}; expected {expected}: leave the others out by where=")
    return math.log2(value) if scale == LOG else float(value)


def too_few(curves: Curves, along: str, fewest_points: int) -> str:
    """Why nothing can be fitted, in words; empty where it can."""
    if not curves:
        return "no seed has every cell"
    fewest = min(len(curve) for of_seed in curves.values() for curve in of_seed)
    return f"{along} has {fewest} values; expected {fewest_points} or more" if fewest < fewest_points else ""


def of_each_seed(curves: Curves, weigh: Weigh) -> list[Number]:
    """A statistic of each seed: ``weigh`` of its curves, averaged."""
    return [average([weigh(curve) for curve in of_seed]) for of_seed in curves.values()]


def weights_of(curve: Curve, degree: int) -> np.ndarray:
    """[degree + 1, points]: the coefficients of 1, x, x² as weights of y."""
    x = np.array([point for point, _ in curve])
    middle, size = x.mean(), x.std()  # fitted in u = (x − middle)/size, where the columns are of one size
    inverse = np.linalg.pinv(np.vander((x - middle) / size, degree + 1, increasing=True))
    weights = np.zeros_like(inverse)
    for power in range(degree + 1):
        for k in range(power + 1):
            weights[k] += math.comb(power, k) * (-middle) ** (power - k) / size**power * inverse[power]
    weights[np.abs(weights) < 1e-12 * np.abs(weights).max(axis=1, keepdims=True)] = 0.0  # what is 0 has no sign
    return weights


def weighted_sum(curve: Curve, weights: np.ndarray) -> Number:
    """Σ wᵢyᵢ, with the sign of a bound where some of the y are censored; rounding counts as 0."""
    terms = [y.times(float(w)) for (_, y), w in zip(curve, weights, strict=True)]
    total, size = average(terms).times(len(terms)), sum(abs(term.value) for term in terms)
    return total if abs(total.value) > 1e-12 * size else Number(0.0, total.bound)  # else rounding would have a sign


def _from_residuals(curves: Curves, degree: int) -> SingleSeed | None:
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
    return SingleSeed(math.sqrt(squares / freedom * weight) / len(of_seed), freedom, "the residuals of the fit")


def _both(a: SingleSeed | None, b: SingleSeed | None) -> SingleSeed | None:
    """The error of a difference; it has the smaller degrees of freedom, so that the interval is not too short."""
    if a is None or b is None:
        return None
    return SingleSeed(math.hypot(a.error, b.error), min(a.freedom, b.freedom), a.source)


def _slope_of(curve: Curve) -> Number:
    return weighted_sum(curve, weights_of(curve, 1)[1])


def _curvature_of(curve: Curve) -> Number:
    return weighted_sum(curve, weights_of(curve, 2)[2])


def _bounded_curvature(curve: Curve) -> Number:
    """γ; a lower bound too where the censored runs are the upper end and have one bound."""
    curvature, w = _curvature_of(curve), weights_of(curve, 2)[2]
    first = next((k for k, (_, y) in enumerate(curve) if y.bound), len(curve))
    end = [y for _, y in curve[first:]]
    at_end = all(y.bound == "≥" for y in end) and len({y.value for y in end}) == 1
    if at_end and bool((np.cumsum(w[first:][::-1]) >= -1e-12 * np.abs(w).max()).all()):
        return Number(curvature.value, "≥")
    return curvature


# --------------------------------------------------------------------------------------------------------- about linear


SHARE = 1 / 8


def about_linear(
    text: str,
    measure: str,
    along: str,
    where: Where | None = None,
    within: Sequence[str] = (),
    *,
    share: float = SHARE,
    scale: str = "linear",
) -> Claim:
    """``measure`` rises about linearly along the axis: (6), with θ = ``share``, over seeds.

    >>> rows = [Row({"fraction": x / 4, "seed": s}, "", "done", {"steps": 100 + 80 * x + s * (x % 2)})
    ...     for x in range(5) for s in range(3)]
    >>> [found] = about_linear("linear", "steps", "fraction").test(rows)
    >>> found.verdict, found.says
    ('holds', 'rise 320, bend -0.571; 0.125·rise − bend = +40.6 ± 1.4 (n = 3), above 0; the smallest ...')
    >>> squares = [Row(r.at, "", "done", {"steps": 100 + 320 * r.at["fraction"] ** 2 + r.at["seed"]}) for r in rows]
    >>> about_linear("linear", "steps", "fraction").test(squares)[0].verdict
    'does not hold'
    """
    where = where or {}
    if not share > 0:
        raise ValueError(f"share={share:g}: must be above 0.")
    statistic = (
        f"each seed's least-squares line and quadratic of {measure} against {axis_of(along, scale)}{at(where)}: the "
        f"bend (a quarter of curvature × range²) is at most {share:g} of the rise (slope × range), either way; 95 % "
        "Student-t intervals over seeds of both differences above 0"
    )

    def judge(curves: Curves, part: str, lacking: str) -> Finding:
        def contrast(rise: float, bend: float) -> list[Number]:
            return of_each_seed(curves, lambda curve: _contrast(curve, rise, bend))

        findings = [
            sign_over_seeds(f"{share:g}·rise {mark} bend", contrast(share, sign), 1, where=part, lacking=lacking)
            for sign, mark in ((-1.0, "−"), (1.0, "+"))
        ]
        rise, bend = (interval(number.value for number in contrast(*which)) for which in ((1.0, 0.0), (0.0, 1.0)))
        says = f"rise {rise.mean:.3g}, bend {bend.mean:.3g}; " + "; ".join(finding.says for finding in findings)
        nearest = min(findings, key=lambda finding: finding.value if finding.value is not None else 0.0)
        return replace(nearest, verdict=weakest(finding.verdict for finding in findings), says=says)

    return _claim_of_curves(text, statistic, judge, measure, along, where, within, scale, fewest=3)


def _contrast(curve: Curve, share: float, sign: float) -> Number:
    """``share`` · (4) + ``sign`` · (5) of a seed's curve."""
    length = curve[-1][0] - curve[0][0]
    rise, bend = length * weights_of(curve, 1)[1], length**2 / 4 * weights_of(curve, 2)[2]
    return weighted_sum(curve, share * rise + sign * bend)


# ---------------------------------------------------------------------------------------------------- rises, then falls


RESIDUALS = "the residuals of the fit"


@dataclass(frozen=True)
class Quadratic:
    """β and γ of the mean curve, their covariance, and its degrees of freedom (0: there is none)."""

    each: np.ndarray  # [seeds, 2]: β and γ of each seed
    covariance: np.ndarray
    freedom: int

    @property
    def top(self) -> float:
        """The top x* of the mean curve."""
        beta, gamma = self.each.mean(axis=0)
        return float(-beta / (2 * gamma))

    def slope(self, x: float) -> tuple[float, float]:
        """β + 2γx, and the half-width of its 95 % interval."""
        weights = np.array([1.0, 2 * x])
        half = student(self.freedom) * math.sqrt(max(weights @ self.covariance @ weights, 0.0))
        return float(weights @ self.each.mean(axis=0)), half

    def top_interval(self) -> tuple[float, float]:
        """(9), for a curvature whose own interval is below 0: then the quadratic inequality has two ends."""
        beta, gamma = self.each.mean(axis=0)
        square = student(self.freedom) ** 2
        (bb, bg), (_, gg) = self.covariance
        a, b, c = 4 * (gamma**2 - square * gg), 4 * (beta * gamma - square * bg), beta**2 - square * bb
        root = math.sqrt(max(b * b - 4 * a * c, 0.0))
        return (-b - root) / (2 * a), (-b + root) / (2 * a)


def rises_then_falls(
    text: str,
    measure: str,
    along: str,
    where: Where | None = None,
    within: Sequence[str] = (),
    scale: str = LOG,
    *,
    before: float | None = None,
) -> Claim:
    """``measure`` rises from the axis's lower end and falls from ``before`` on (default: at the upper end).

    It holds where the curvature is below 0, the slope at the lower end above 0 and the slope at ``before`` below 0,
    each by its interval; it does not hold where one of the three is on the other side by its interval.

    >>> rows = [Row({"temperature": t, "seed": s}, "", "done", {"knn": 80 - (t - 3) ** 2 + 0.1 * s * t})
    ...     for t in (1, 2, 3, 4, 5, 6) for s in range(3)]
    >>> claim = rises_then_falls("best at a low τ", "knn", "temperature", scale="linear", before=4.0)
    >>> print(claim.test(rows)[0].says.partition("; the top ")[2])
    is at temperature = 3.05, 95 % interval 2.93 to 3.17; claimed between 1 and 4
    """
    where, name = where or {}, curvature_name(along, scale)
    limit = f"at {along} = {before:g}" if before is not None else "at the upper end"
    statistic = (
        f"each seed's least-squares quadratic of {measure} against {axis_of(along, scale)}{at(where)}; 95 % Student-t "
        f"intervals over seeds: the curvature below 0, the curve's slope at the lower end above 0 and {limit} below 0 "
        "(so its top lies between)"
    )

    def judge(curves: Curves, part: str, lacking: str) -> Finding:
        every = [point for of_seed in curves.values() for curve in of_seed for point in curve]
        if any(y.bound for _, y in every):
            return open_finding(
                part, "some runs are censored, and a bound of the values is none of where they are highest"
            )
        fit = fit_quadratic(curves)
        gammas = [Number(float(gamma)) for gamma in fit.each[:, 1]]
        finding = sign_over_seeds(name, gammas, -1, where=part, lacking=lacking, single=_single_seed(fit))
        if finding.verdict != HOLDS:
            return finding
        low, high = min(x for x, _ in every), max(x for x, _ in every)
        if before is not None:
            high = math.log2(before) if scale == LOG else before
        return _with_top(finding, fit, along, scale, low, high)

    return _claim_of_curves(text, statistic, judge, measure, along, where, within, scale, fewest=3)


def fit_quadratic(curves: Curves) -> Quadratic:
    """β and γ of each seed, averaged over its curves, and their covariance."""
    each = np.array([_coefficients(of_seed) for of_seed in curves.values()])
    if len(each) > 1:
        return Quadratic(each, np.cov(each, rowvar=False) / len(each), len(each) - 1)
    (of_seed,) = curves.values()
    squares, freedom, products = 0.0, 0, np.zeros((2, 2))
    for curve in of_seed:
        x, y = np.array([x for x, _ in curve]), np.array([y.value for _, y in curve])
        weights = weights_of(curve, 2)
        rest = y - np.vander(x, 3, increasing=True) @ (weights @ y)
        squares, freedom = squares + float(rest @ rest), freedom + len(x) - 3
        products += weights[1:] @ weights[1:].T
    covariance = squares / max(freedom, 1) * products / len(of_seed) ** 2
    return Quadratic(each, covariance, freedom)


def _coefficients(of_seed: Sequence[Curve]) -> np.ndarray:
    """β and γ, averaged over a seed's curves; what is rounding is 0, else it would have a sign."""
    each = []
    for curve in of_seed:
        terms = weights_of(curve, 2)[1:] * np.array([y.value for _, y in curve])
        total = terms.sum(axis=1)
        each.append(np.where(np.abs(total) > 1e-12 * np.abs(terms).sum(axis=1), total, 0.0))
    return np.asarray(np.mean(each, axis=0))


def _single_seed(fit: Quadratic) -> SingleSeed | None:
    """The error of one seed's curvature."""
    if len(fit.each) > 1 or not fit.freedom:
        return None
    return SingleSeed(math.sqrt(fit.covariance[1, 1]), fit.freedom, RESIDUALS)


def _with_top(finding: Finding, fit: Quadratic, along: str, scale: str, low: float, high: float) -> Finding:
    """The second half of "rises, then falls", for a curvature below 0."""
    ends = (fit.top, *fit.top_interval(), low, high)
    words = (f"{2**x if scale == LOG else x:.3g}" for x in ends)
    says = "{}; the top is at {} = {}, 95 % interval {} to {}; claimed between {} and {}".format(
        finding.says, along, *words
    )
    (rise, rise_half), (fall, fall_half) = fit.slope(low), fit.slope(high)
    if rise - rise_half > 0 and fall + fall_half < 0:  # (8) and (7)
        return replace(finding, says=says)
    if rise + rise_half < 0:
        return replace(finding, verdict=FAILS, says=f"{says}: it falls from the lower end on")
    if fall - fall_half > 0:
        return replace(finding, verdict=FAILS, says=f"{says}: it still rises at the upper of them")
    which = "lower" if rise - rise_half <= 0 else "upper"
    return replace(finding, verdict=OPEN, says=f"{says}: whether its top is beyond the {which} of them is open")


# ---------------------------------------------------------------------------------------------------------- correlation


LEAST = 4
NORMAL = 1.959963984540054  # 97.5 % of a normal variable are below


def correlated(
    text: str,
    x: str,
    y: str,
    sign: int,
    where: Where | None = None,
    within: Sequence[str] = (),
) -> Claim:
    """The measures rise together (``sign=1``) or against each other (−1): (11) lies on that side of 0.

    >>> rows = [Row({"method": m, "seed": 0}, "", "done", {"distance": m, "error": m + (m == 2)}) for m in range(6)]
    >>> correlated("closer to the simplex, less error", "distance", "error", 1).test(rows)[0].says
    'r = +0.98, 95 % interval +0.79 to +1.00 (n = 6 places), above 0'
    """
    where = where or {}
    if sign not in (1, -1):
        raise ValueError(f"sign={sign}: must be 1 (together) or -1 (against each other).")
    statistic = (
        f"Pearson's correlation of {x} and {y} over places (means over seeds){at(where)}; its 95 % "
        f"Fisher-z interval {'above' if sign > 0 else 'below'} 0"
    )

    def one(rows: Sequence[Row], part: str) -> Finding:
        readings = [Readings(rows, measure, where) for measure in (x, y)]
        lacking = "; ".join(dict.fromkeys(filter(None, map(lack, readings))))
        points = _points(readings)
        if len(points) < LEAST:
            return open_finding(part, lacking or f"{len(points)} places; expected {LEAST} or more")
        if any(is_censored(row, m) for row in rows for m in (x, y) if matches(row, where)):
            return open_finding(part, "some runs are censored, and a bound of the values is none of their correlation")
        a, b = np.array(points).T
        if not (a.std() > 1e-12 * np.abs(a).max() and b.std() > 1e-12 * np.abs(b).max()):
            return open_finding(part, "one of the measures does not vary")
        return _verdict(float(np.corrcoef(a, b)[0, 1]), len(points), sign, part, lacking)

    return Claim(text, statistic, by_part(one, within, *where), (x, y))


def fisher(r: float, n: int) -> tuple[float, float]:
    """The interval (11).

    >>> low, high = fisher(0.5, 28)
    >>> round(low, 3), round(high, 3)
    (0.156, 0.736)
    """
    if n < LEAST:
        raise ValueError(f"n={n}: must be {LEAST} or more points.")
    z = math.atanh(min(max(r, -1 + 1e-15), 1 - 1e-15))
    half = NORMAL * math.sqrt(1.0 / (n - 3))
    return math.tanh(z - half), math.tanh(z + half)


def _points(readings: Sequence[Readings]) -> list[tuple[float, float]]:
    """A pair of means for each place, over the seeds that have both numbers."""
    means = []
    for place in readings[0].places:
        seeds = [seed for seed in readings[0].seeds if all(place in r.seeds.get(seed, {}) for r in readings)]
        if seeds:
            x, y = (math.fsum(r.seeds[seed][place].value for seed in seeds) / len(seeds) for r in readings)
            means.append((x, y))
    return means


def _verdict(r: float, n: int, sign: int, part: str, lacking: str) -> Finding:
    low, high = fisher(r, n)
    says = f"r = {r:+.2f}, 95 % interval {low:+.2f} to {high:+.2f} (n = {n} places)"
    statistic = Interval(r, (high - low) / 2, n)  # the interval is not symmetric; the words have its ends
    if lacking:
        return open_finding(part, f"{says}: {lacking}", statistic)
    side = 1 if low > 0 else -1 if high < 0 else 0
    if not side:
        return open_finding(part, f"{says}: the interval contains 0", statistic)
    verdict = HOLDS if side == sign else FAILS
    return Finding(verdict, f"{says}, {'above' if side > 0 else 'below'} 0", part, r, statistic.half, n)
