"""What the runs of a part of the grid have, and the verdict that a statistic of each seed leads to.

A part is made of the rows with one value on each axis of ``within``. An axis that a claim does not mention is averaged
within a seed, over all its values, the same for both sides of a comparison. A cell that is planned and has no value
(missing, running, failed, or done without this number) counts as lacking, and a seed that lacks a cell is left out
whole: the mean over its other cells would be another mean.

The interval of a statistic is Student's over seeds. One seed has no interval, unless something else gives its error
(`SingleSeed`): the residuals of a fitted curve, places of the grid as replicates, or the values' own standard errors.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kontrast.experiments.cell import Value
from kontrast.experiments.experiment import Finding, Row, error_of, is_censored, value_of
from kontrast.intervals import Interval, digits, interval, seeds_needed, smallest_visible, student
from kontrast.registry import nearest

Place = tuple[tuple[str, Value], ...]
Where = Mapping[str, Any]  # an axis and its value, or a tuple of values


@dataclass(frozen=True)
class Number:
    """A number, or a bound of one: ``bound`` is "≥" where it is not lower, "≤" where it is not higher, "?" else.

    What is linear in censored values is bounded by the same of their bounds, as long as they pull one way:

    >>> Number(3000.0, "≥") + Number(500.0).times(-1.0)
    Number(value=2500.0, bound='≥')
    >>> Number(3000.0, "≥") + Number(3000.0, "≥").times(-1.0)
    Number(value=0.0, bound='?')
    """

    value: float
    bound: str = ""

    def times(self, weight: float) -> Number:
        """The number times a weight; a weight below 0 turns its bound around."""
        bound = {"≥": "≤", "≤": "≥"}.get(self.bound, self.bound) if weight < 0 else self.bound
        return Number(weight * self.value, bound if weight else "")

    def __add__(self, other: Number) -> Number:
        bounds = {self.bound, other.bound} - {""}
        return Number(self.value + other.value, bounds.pop() if len(bounds) == 1 else "?" if bounds else "")


def average(numbers: Sequence[Number]) -> Number:
    """The mean of several numbers, or a bound of it."""
    return functools.reduce(Number.__add__, numbers).times(1 / len(numbers))


def label(where: Where) -> str:
    """A part of the grid in words.

    >>> label({"loss": "hard", "temperature": (0.1, 0.2)})
    'loss=hard, temperature=0.1|0.2'
    """
    return ", ".join(f"{axis}={'|'.join(map(str, _values(value)))}" for axis, value in where.items())


def at(where: Where) -> str:
    """A part of the grid as the end of a sentence."""
    return f" where {label(where)}" if where else ""


def matches(row: Row, where: Where) -> bool:
    """Whether a row belongs to a part of the grid."""
    _check_axes(row, where)
    return all(row.at[axis] in _values(value) for axis, value in where.items())


def _check_axes(row: Row, axes: Iterable[str]) -> None:
    """Raise for an axis that a row does not have."""
    for axis in axes:
        if axis not in row.at:
            have = [name for name in row.at if name != "seed"]
            raise ValueError(
                f"a claim speaks of the axis {axis!r}: must be an axis of the experiment{nearest(axis, have)} It has "
                f"{', '.join(have)}"
            )


def _values(value: Any) -> tuple[Value, ...]:
    return tuple(value) if isinstance(value, tuple | list | set | frozenset | range) else (value,)


def parts(rows: Sequence[Row], within: Sequence[str], *named_axes: str) -> dict[str, list[Row]]:
    """The rows by their values on the axes ``within``, which name the part; axes the rows do not have are an error."""
    for row in rows:
        _check_axes(row, (*within, *named_axes))
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(label({axis: row.at[axis] for axis in within}), []).append(row)
    return groups or {"": []}


def by_part(
    one: Callable[[Sequence[Row], str], Finding], within: Sequence[str], *named_axes: str
) -> Callable[[Sequence[Row]], list[Finding]]:
    """A claim's test: ``one(rows, part)`` of each part."""
    return lambda rows: [one(here, part) for part, here in parts(rows, within, *named_axes).items()]


class Readings:
    """What the runs of a part have of a measure: by seed, then by place (the axes but ``apart`` and the seed)."""

    def __init__(self, rows: Sequence[Row], measure: str, where: Where, apart: Sequence[str] = ()) -> None:
        self.where, self.measure = where, measure
        self.seeds: dict[Value, dict[Place, Number]] = {}
        self.errors: dict[tuple[Value, Place], float] = {}  # the values' own standard errors, where rows have them
        self.places: list[Place] = []
        self.lacking: Counter[str] = Counter()
        self.count = 0
        places: dict[tuple[Value, Place], Row] = {}
        for row in rows:
            if not matches(row, where):
                continue
            place = tuple((axis, value) for axis, value in row.at.items() if axis not in (*apart, "seed"))
            seed = row.at.get("seed")
            if (seed, place) in places:
                raise ValueError(
                    f"the runs {places[seed, place].folder!r} and {row.folder!r} stand at one place of {measure}; "
                    "expected one run a seed: name the axis that tells them apart"
                )
            places[seed, place] = row
            self.count += 1
            if place not in self.places:
                self.places.append(place)
            here = self.seeds.setdefault(seed, {})
            if (value := value_of(row, measure)) is None:
                self.lacking["without a number" if row.status == "done" else row.status] += 1
            else:
                here[place] = Number(value, "≥" if is_censored(row, measure) else "")
                if (error := error_of(row, measure)) is not None:
                    self.errors[seed, place] = error

    def complete(self, places: Collection[Place]) -> list[Value]:
        """The seeds that have a value at each of these places."""
        return [seed for seed, here in self.seeds.items() if all(place in here for place in places)]


def lack(*readings: Readings) -> str:
    """How many cells have no value, and why, in words; empty if all have one.

    >>> lack(Readings([Row({"seed": 0}, "a", "failed"), Row({"seed": 1}, "b", "done", {"knn": 1.0})], "knn", {}))
    '1 of 2 cells have no value (1 failed)'
    """
    for r in readings:
        if not r.count:
            return f"no cells{at(r.where)}"
    total: Counter[str] = sum((r.lacking for r in readings), Counter())
    if not total:
        return ""
    why = ", ".join(f"{count} {status}" for status, count in sorted(total.items()))
    return f"{sum(total.values())} of {sum(r.count for r in readings)} cells have no value ({why})"


# ------------------------------------------------------------------------------------------------------------- verdicts


HOLDS, FAILS, OPEN = "holds", "does not hold", "not resolved at this scale"
SEEDS = "seeds"


def weakest(verdicts: Iterable[str]) -> str:
    """The verdict of several together: one that does not hold decides, then one that is open."""
    return min(verdicts, key=(FAILS, OPEN, HOLDS).index)


@dataclass(frozen=True)
class SingleSeed:
    """The standard error of what one seed gives, its degrees of freedom, and what it is taken from.

    >>> round(SingleSeed(0.1, 10, "the residuals of the fit").half, 3)
    0.223
    """

    error: float
    freedom: float
    source: str

    @property
    def half(self) -> float:
        """Half-width of the 95 % interval."""
        return student(self.freedom) * self.error


def open_finding(where: str, why: str, statistic: Interval | None = None) -> Finding:
    """A finding without a verdict, and why there is none."""
    value, half, n = (None, None, 0) if statistic is None else (statistic.mean, statistic.half, statistic.n)
    return Finding(OPEN, why, where, value, half, n)


def sign_over_seeds(
    name: str,
    numbers: Sequence[Number],
    claimed: int,
    *,
    where: str = "",
    lacking: str = "",
    about: float = 0.0,
    single: SingleSeed | None = None,
) -> Finding:
    """Whether the statistic lies above (``claimed`` = 1) or below (−1) the value ``about``, by its interval.

    What is bounded from below can be shown to lie above, never to lie below; and the reverse. ``single`` is its error
    where there is one seed.

    >>> print(sign_over_seeds("tcl − supcon", [Number(0.5), Number(0.6), Number(0.4)], 1).says)
    tcl − supcon = +0.50 ± 0.25 (n = 3), above 0; the smallest visible effect is 0.31
    >>> print(sign_over_seeds("tcl − supcon", [Number(0.5)], 1).says)
    tcl − supcon = +0.5000 (n = 1): one seed has no interval
    >>> print(sign_over_seeds("tcl − supcon", [Number(0.5)], 1, single=SingleSeed(0.1, float("inf"), "test rows")).says)
    tcl − supcon = +0.50 ± 0.20 (n = 1, error from test rows), above 0; the smallest visible effect is 0.28
    """
    if not numbers:
        return open_finding(where, lacking or "no seed has every cell")
    mean = interval(number.value for number in numbers)
    source, freedom = SEEDS, float(mean.n - 1)
    if mean.half is None and single is not None:
        mean, source, freedom = Interval(mean.mean, single.half, 1), single.source, single.freedom
    bound = functools.reduce(Number.__add__, numbers).bound
    count = sum(bool(number.bound) for number in numbers)
    visible = None if mean.half is None else smallest_visible(mean.half, freedom)
    relation = {"": "=", "?": "=", "≥": "≥", "≤": "≤"}[bound]
    words = format(mean, f"{'' if about else '+'}.{digits(mean)}f")
    words = words if source == SEEDS else f"{words[:-1]}, error from {source})"
    says = f"{name} {relation} {words}"
    says += f" ({count} of {mean.n} seeds with censored runs, taken at their bounds)" if count else ""
    verdict, why = _verdict(mean, claimed, lacking, about, bound, source, visible)
    error = "" if mean.half is None else source
    return Finding(verdict, says + why, where, mean.mean, mean.half, mean.n, error, visible)


def _verdict(
    mean: Interval, claimed: int, lacking: str, about: float, bound: str, source: str, visible: float | None
) -> tuple[str, str]:
    """The verdict, and the end of its sentence."""
    if lacking:
        return OPEN, f": {lacking}"
    if mean.half is None or visible is None:
        return OPEN, ": one seed has no interval"
    if bound == "?":
        return OPEN, ": the censored runs pull both ways, so this bounds nothing"
    side = 1 if mean.mean - mean.half > about else -1 if mean.mean + mean.half < about else 0
    if not side:
        return OPEN, f": the interval contains {about:g}; {_power(mean, about, source, visible)}"
    if bound == ("≤" if side > 0 else "≥"):
        return OPEN, f": a bound from {'above' if side > 0 else 'below'} leaves its sign open"
    words = f", {'above' if side > 0 else 'below'} {about:g}; {_describe_visible(visible)}"
    return HOLDS if side == claimed else FAILS, words


def _describe_visible(visible: float) -> str:
    return f"the smallest visible effect is {visible:.2g}"


def _power(mean: Interval, about: float, source: str, visible: float) -> str:
    """The smallest effect that would have been seen, and how many seeds one as small as this needs."""
    words = _describe_visible(visible)
    if source != SEEDS or mean.half is None:
        return words
    count = seeds_needed(mean.mean - about, mean.half, mean.n)
    return f"{words}, one of this size needs {'more than 9,999' if count is None else f'about {count:,}'} seeds"
