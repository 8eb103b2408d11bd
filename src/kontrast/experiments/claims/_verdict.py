"""From a statistic of each seed to a verdict: what its 95 % interval says about its sign.

The interval is Student's over seeds. A statistic of one seed has none, unless something else tells its error (`Alone`):
the residuals of the curve that was fitted, places of the grid as replicates, or the values' own standard errors.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from kontrast.experiments.claims._parts import Number
from kontrast.experiments.experiment import Finding
from kontrast.intervals import Interval, digits, interval, seeds_needed, smallest_visible, student

HOLDS, FAILS, OPEN = "holds", "does not hold", "not resolved at this scale"
SEEDS = "seeds"


@dataclass(frozen=True)
class Alone:
    """The standard error of what one seed gives, its degrees of freedom, and what it is taken from.

    >>> round(Alone(0.1, 10, "the residuals of the fit").half, 3)
    0.223
    """

    error: float
    freedom: float
    source: str

    @property
    def half(self) -> float:
        """Half-width of the 95 % interval."""
        return student(self.freedom) * self.error


def opened(where: str, why: str, found: Interval | None = None) -> Finding:
    """Not resolved, and why."""
    value, half, n = (None, None, 0) if found is None else (found.mean, found.half, found.n)
    return Finding(OPEN, why, where, value, half, n)


def sign_over_seeds(
    name: str,
    numbers: Sequence[Number],
    claimed: int,
    *,
    where: str = "",
    lacking: str = "",
    about: float = 0.0,
    alone: Alone | None = None,
) -> Finding:
    """Whether the statistic lies above (``claimed`` = 1) or below (−1) the value ``about``, by its interval.

    What is bounded from below can be shown to lie above, never to lie below; and the reverse. ``alone`` is its error
    where there is one seed.

    >>> print(sign_over_seeds("tcl − supcon", [Number(0.5), Number(0.6), Number(0.4)], 1).says)
    tcl − supcon = +0.50 ± 0.25 (n = 3), above 0; the smallest visible effect is 0.31
    >>> print(sign_over_seeds("tcl − supcon", [Number(0.5)], 1).says)
    tcl − supcon = +0.5000 (n = 1): one seed has no interval
    >>> print(sign_over_seeds("tcl − supcon", [Number(0.5)], 1, alone=Alone(0.1, float("inf"), "test rows")).says)
    tcl − supcon = +0.50 ± 0.20 (n = 1, error from test rows), above 0; the smallest visible effect is 0.28
    """
    if not numbers:
        return opened(where, lacking or "no seed has every cell")
    found = interval(number.value for number in numbers)
    source, freedom = SEEDS, float(found.n - 1)
    if found.half is None and alone is not None:
        found, source, freedom = Interval(found.mean, alone.half, 1), alone.source, alone.freedom
    bound = functools.reduce(Number.__add__, numbers).bound
    count = sum(bool(number.bound) for number in numbers)
    visible = None if found.half is None else smallest_visible(found.half, freedom)
    relation = {"": "=", "?": "=", "≥": "≥", "≤": "≤"}[bound]
    shown = format(found, f"{'' if about else '+'}.{digits(found)}f")
    shown = shown if source == SEEDS else f"{shown[:-1]}, error from {source})"
    says = f"{name} {relation} {shown}"
    says += f" ({count} of {found.n} seeds with censored runs, taken at their bounds)" if count else ""
    verdict, why = _judged(found, claimed, lacking, about, bound, source, visible)
    error = "" if found.half is None else source
    return Finding(verdict, says + why, where, found.mean, found.half, found.n, error, visible)


def _judged(
    found: Interval, claimed: int, lacking: str, about: float, bound: str, source: str, visible: float | None
) -> tuple[str, str]:
    """The verdict, and the end of its sentence."""
    if lacking:
        return OPEN, f": {lacking}"
    if found.half is None or visible is None:
        return OPEN, ": one seed has no interval"
    if bound == "?":
        return OPEN, ": the censored runs pull both ways, so this bounds nothing"
    side = 1 if found.mean - found.half > about else -1 if found.mean + found.half < about else 0
    if not side:
        return OPEN, f": the interval holds {about:g}; {_power(found, about, source, visible)}"
    if bound == ("≤" if side > 0 else "≥"):
        return OPEN, f": a bound from {'above' if side > 0 else 'below'} leaves its sign open"
    words = f", {'above' if side > 0 else 'below'} {about:g}; {_seen(visible)}"
    return HOLDS if side == claimed else FAILS, words


def _seen(visible: float) -> str:
    return f"the smallest visible effect is {visible:.2g}"


def _power(found: Interval, about: float, source: str, visible: float) -> str:
    """The smallest effect that would have been seen, and how many seeds one as small as this needs."""
    said = _seen(visible)
    if source != SEEDS or found.half is None:
        return said
    count = seeds_needed(found.mean - about, found.half, found.n)
    return f"{said}, one of this size needs {'more than 9,999' if count is None else f'about {count:,}'} seeds"
