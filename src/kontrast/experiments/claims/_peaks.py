r"""Whether a measure rises, then falls along an axis, and on which side of a limit its top lies.

With x the axis (log₂ of it, or itself) and y ≈ α + β x + γ x² by least squares, γ < 0, the top is at x* = −β/(2γ):

    (1)  x* < c   exactly where   β + 2γc < 0                the curve falls at c
    (2)  x* > c   exactly where   β + 2γc > 0                it still rises there
    (3)  {x: (β + 2γx)² ≤ t² (V_ββ + 4x V_βγ + 4x² V_γγ)}    the 95 % interval of x*   (Fieller 1954)

So the place of the top is decided by the interval of a slope, which is linear in the measure; the interval of a
quotient is not needed. V is the covariance of β and γ: over seeds, or, of one seed, from the residuals of the fit.

A rise and fall that is mirrored is one again. What tells the two apart is where the top is, so a claim gives ``before``
wherever the paper says on which side it lies.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kontrast.experiments.cell import Value
from kontrast.experiments.claims._parts import Number, Where, at, by_part
from kontrast.experiments.claims._trends import LOG, Curve, axis_of, curvature_name, curves_of, too_few, weights_of
from kontrast.experiments.claims._verdict import FAILS, HOLDS, OPEN, Alone, opened, sign_over_seeds
from kontrast.experiments.experiment import Claim, Finding, Row
from kontrast.intervals import student

RESIDUALS = "the residuals of the fit"


@dataclass(frozen=True)
class Quadratic:
    """β and γ of the mean curve, their covariance, and its degrees of freedom (0: there is none)."""

    each: np.ndarray  # [seeds, 2]: β and γ of each seed
    covariance: np.ndarray
    freedom: int

    @property
    def top(self) -> float:
        """x*."""
        beta, gamma = self.each.mean(axis=0)
        return float(-beta / (2 * gamma))

    def slope(self, x: float) -> tuple[float, float]:
        """β + 2γx, and the half-width of its 95 % interval."""
        weights = np.array([1.0, 2 * x])
        half = student(self.freedom) * math.sqrt(max(weights @ self.covariance @ weights, 0.0))
        return float(weights @ self.each.mean(axis=0)), half

    def top_interval(self) -> tuple[float, float]:
        """(3), for a curvature whose own interval is below 0: then the quadratic inequality has two ends."""
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

    def one(rows: Sequence[Row], part: str) -> Finding:
        curves, lacking = curves_of(rows, measure, along, where, scale)
        if few := too_few(curves, along, 3):
            return opened(part, lacking or few)
        if any(y.bound for of_seed in curves.values() for curve in of_seed for _, y in curve):
            return opened(part, "some runs are censored, and a bound of the values is none of where they are highest")
        fit = fitted(curves)
        gammas = [Number(float(gamma)) for gamma in fit.each[:, 1]]
        found = sign_over_seeds(name, gammas, -1, where=part, lacking=lacking, alone=_alone(fit))
        if found.verdict != HOLDS:
            return found
        every = [x for of_seed in curves.values() for curve in of_seed for x, _ in curve]
        high = max(every) if before is None else math.log2(before) if scale == LOG else before
        return _with_top(found, fit, along, scale, min(every), high)

    return Claim(text, statistic, by_part(one, within, along, *where), (measure,))


def fitted(curves: Mapping[Value, list[Curve]]) -> Quadratic:
    """β and γ of each seed, averaged over its curves, and their covariance."""
    each = np.array([_coefficients(of_seed) for of_seed in curves.values()])
    if len(each) > 1:
        return Quadratic(each, np.cov(each, rowvar=False) / len(each), len(each) - 1)
    (of_seed,) = curves.values()
    squares, freedom, spread = 0.0, 0, np.zeros((2, 2))
    for curve in of_seed:
        x, y = np.array([x for x, _ in curve]), np.array([y.value for _, y in curve])
        weights = weights_of(curve, 2)
        rest = y - np.vander(x, 3, increasing=True) @ (weights @ y)
        squares, freedom = squares + float(rest @ rest), freedom + len(x) - 3
        spread += weights[1:] @ weights[1:].T
    covariance = squares / max(freedom, 1) * spread / len(of_seed) ** 2
    return Quadratic(each, covariance, freedom)


def _coefficients(of_seed: Sequence[Curve]) -> np.ndarray:
    """β and γ, averaged over a seed's curves; what is rounding is 0, else it would have a sign."""
    found = []
    for curve in of_seed:
        terms = weights_of(curve, 2)[1:] * np.array([y.value for _, y in curve])
        total = terms.sum(axis=1)
        found.append(np.where(np.abs(total) > 1e-12 * np.abs(terms).sum(axis=1), total, 0.0))
    return np.asarray(np.mean(found, axis=0))


def _alone(fit: Quadratic) -> Alone | None:
    """The error of one seed's curvature."""
    if len(fit.each) > 1 or not fit.freedom:
        return None
    return Alone(math.sqrt(fit.covariance[1, 1]), fit.freedom, RESIDUALS)


def _with_top(found: Finding, fit: Quadratic, along: str, scale: str, low: float, high: float) -> Finding:
    """The second half of "rises, then falls", for a curvature below 0."""
    ends = (fit.top, *fit.top_interval(), low, high)
    shown = (f"{2**x if scale == LOG else x:.3g}" for x in ends)
    says = "{}; the top is at {} = {}, 95 % interval {} to {}; claimed between {} and {}".format(
        found.says, along, *shown
    )
    (rise, rise_half), (fall, fall_half) = fit.slope(low), fit.slope(high)
    if rise - rise_half > 0 and fall + fall_half < 0:  # (2) and (1)
        return replace(found, says=says)
    if rise + rise_half < 0:
        return replace(found, verdict=FAILS, says=f"{says}: it falls from the lower end on")
    if fall - fall_half > 0:
        return replace(found, verdict=FAILS, says=f"{says}: it still rises at the upper of them")
    which = "lower" if rise - rise_half <= 0 else "upper"
    return replace(found, verdict=OPEN, says=f"{says}: whether its top is beyond the {which} of them is open")
