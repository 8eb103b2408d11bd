r"""Whether two measures go together over the grid.

    (1)  r = Pearson's correlation of the points;  z = artanh r is about normal with deviation 1/√(n − 3)   (Fisher)
    (2)  the 95 % interval is tanh(z ± 1.96/√(n − 3)); from four points on
    (3)  of ranks (Spearman): the same with 1.06/(n − 3) for 1/(n − 3)   (Fieller, Hartley and Pearson, 1957)

A point is a place, its mean over seeds: runs that differ by the seed alone are not independent witnesses of what the
place does, and counting each would make n too large. ``each="run"`` counts each all the same, and says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from kontrast.experiments.cell import Value
from kontrast.experiments.claims._parts import Readings, Where, at, by_part, lack, matches
from kontrast.experiments.claims._verdict import FAILS, HOLDS, opened
from kontrast.experiments.experiment import Claim, Finding, Row, is_censored
from kontrast.intervals import Interval

LEAST = 4
NORMAL = 1.959963984540054  # 97.5 % of a normal variable are below


def correlated(
    text: str,
    x: str,
    y: str,
    sign: int,
    where: Where | None = None,
    within: Sequence[str] = (),
    *,
    each: str = "place",
    ranks: bool = False,
) -> Claim:
    """The measures rise together (``sign=1``) or against each other (−1): (2) lies on that side of 0.

    >>> rows = [Row({"method": m, "seed": 0}, "", "done", {"distance": m, "error": m + (m == 2)}) for m in range(6)]
    >>> correlated("closer to the simplex, less error", "distance", "error", 1).test(rows)[0].says
    'r = +0.98, 95 % interval +0.79 to +1.00 (n = 6 places), above 0'
    """
    where = where or {}
    if each not in ("place", "run"):
        raise ValueError(f"a point is each {each!r}; expected 'place' or 'run'")
    if sign not in (1, -1):
        raise ValueError(f"the sign is {sign!r}; expected 1 (together) or -1 (against each other)")
    kind = "Spearman's" if ranks else "Pearson's"
    points = "places (means over seeds)" if each == "place" else "runs (of one place by several seeds too)"
    statistic = (
        f"{kind} correlation of {x} and {y} over {points}{at(where)}; its 95 % "
        f"Fisher-z interval {'above' if sign > 0 else 'below'} 0"
    )

    def one(rows: Sequence[Row], part: str) -> Finding:
        reads = [Readings(rows, measure, where) for measure in (x, y)]
        lacking = "; ".join(dict.fromkeys(filter(None, map(lack, reads))))
        found = _points(rows, reads, x, y, each)
        if len(found) < LEAST:
            return opened(part, lacking or f"{len(found)} {each}s; expected {LEAST} or more")
        if any(is_censored(row, m) for row in rows for m in (x, y) if matches(row, where)):
            return opened(part, "some runs are censored, and a bound of the values is none of their correlation")
        a, b = np.array(found).T
        a, b = (_ranked(a), _ranked(b)) if ranks else (a, b)
        if not (a.std() > 1e-12 * np.abs(a).max() and b.std() > 1e-12 * np.abs(b).max()):
            return opened(part, "one of the measures does not vary")
        return _judged(float(np.corrcoef(a, b)[0, 1]), len(found), each, ranks, sign, part, lacking)

    return Claim(text, statistic, by_part(one, within, *where), (x, y))


def fisher(r: float, n: int, *, ranks: bool = False) -> tuple[float, float]:
    """(2), or (3) for ranks.

    >>> low, high = fisher(0.5, 28)
    >>> round(low, 3), round(high, 3)
    (0.156, 0.736)
    """
    if n < LEAST:
        raise ValueError(f"there are {n} points; expected {LEAST} or more")
    z = math.atanh(min(max(r, -1 + 1e-15), 1 - 1e-15))
    half = NORMAL * math.sqrt((1.06 if ranks else 1.0) / (n - 3))
    return math.tanh(z - half), math.tanh(z + half)


def _points(rows: Sequence[Row], reads: Sequence[Readings], x: str, y: str, each: str) -> list[tuple[float, float]]:
    """Pairs that have both numbers, from the same seeds."""
    found: list[tuple[float, float]] = []
    for place in reads[0].places:
        seeds: list[Value] = [s for s in reads[0].seeds if all(place in r.seeds.get(s, {}) for r in reads)]
        pairs = [(reads[0].seeds[s][place].value, reads[1].seeds[s][place].value) for s in seeds]
        if each == "run":
            found += pairs
        elif pairs:
            found.append((math.fsum(p[0] for p in pairs) / len(pairs), math.fsum(p[1] for p in pairs) / len(pairs)))
    return found


def _ranked(values: np.ndarray) -> np.ndarray:
    """Ranks, ties sharing their mean."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[inverse])


def _judged(r: float, n: int, each: str, ranks: bool, sign: int, part: str, lacking: str) -> Finding:
    low, high = fisher(r, n, ranks=ranks)
    says = f"{'rank ' if ranks else ''}r = {r:+.2f}, 95 % interval {low:+.2f} to {high:+.2f} (n = {n} {each}s)"
    found = Interval(r, (high - low) / 2, n)  # the interval is not symmetric; the words have its ends
    if lacking:
        return opened(part, f"{says}: {lacking}", found)
    side = 1 if low > 0 else -1 if high < 0 else 0
    if not side:
        return opened(part, f"{says}: the interval holds 0", found)
    verdict = HOLDS if side == sign else FAILS
    return Finding(verdict, f"{says}, {'above' if side > 0 else 'below'} 0", part, r, found.half, n)
