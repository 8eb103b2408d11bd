"""From a statistic of each seed to a verdict: what its 95 % interval over seeds says about its sign."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from kontrast.experiments.claims._parts import Number
from kontrast.experiments.experiment import Finding
from kontrast.experiments.intervals import Interval, digits, interval

HOLDS, FAILS, OPEN = "holds", "does not hold", "not resolved at this scale"


def opened(where: str, why: str, found: Interval | None = None) -> Finding:
    """Not resolved, and why."""
    value, half, n = (None, None, 0) if found is None else (found.mean, found.half, found.n)
    return Finding(OPEN, why, where, value, half, n)


def sign_over_seeds(
    name: str, numbers: Sequence[Number], claimed: int, *, where: str = "", lacking: str = "", about: float = 0.0
) -> Finding:
    """Whether the statistic lies above (``claimed`` = 1) or below (−1) the value ``about``, by its interval over seeds.

    What is bounded from below can be shown to lie above, never to lie below; and the reverse.

    >>> sign_over_seeds("tcl − supcon", [Number(0.5), Number(0.6), Number(0.4)], 1)
    Finding(verdict='holds', says='tcl − supcon = +0.50 ± 0.25 (n = 3), above 0', where='', value=0.5, half=..., n=3)
    >>> sign_over_seeds("tcl − supcon", [Number(0.5)], 1).says
    'tcl − supcon = +0.5000 (n = 1): one seed has no interval'
    """
    if not numbers:
        return opened(where, lacking or "no seed has every cell")
    found = interval(number.value for number in numbers)
    bound = functools.reduce(Number.__add__, numbers).bound
    relation = {"": "=", "?": "=", "≥": "≥", "≤": "≤"}[bound]
    sign = "" if about else "+"
    says = f"{name} {relation} {found:{sign}.{digits(found)}f}"
    count = sum(bool(number.bound) for number in numbers)
    says += f" ({count} of {found.n} seeds with censored runs, taken at their bounds)" if count else ""
    if lacking:
        return opened(where, f"{says}: {lacking}", found)
    if found.half is None:
        return opened(where, f"{says}: one seed has no interval", found)
    if bound == "?":
        return opened(where, f"{says}: the censored runs pull both ways, so this bounds nothing", found)
    side = 1 if found.mean - found.half > about else -1 if found.mean + found.half < about else 0
    if not side:
        return opened(where, f"{says}: the interval holds {about:g}", found)
    if bound == ("≤" if side > 0 else "≥"):
        return opened(where, f"{says}: a bound from {'above' if side > 0 else 'below'} leaves its sign open", found)
    verdict = HOLDS if side == claimed else FAILS
    return Finding(
        verdict, f"{says}, {'above' if side > 0 else 'below'} {about:g}", where, found.mean, found.half, found.n
    )
