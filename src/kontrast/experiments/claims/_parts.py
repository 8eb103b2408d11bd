"""Which cells a claim speaks of: a part of the grid for each value of ``within``, and what its runs have.

An axis that a claim does not mention is averaged: within a seed, over all its values, the same for both sides of a
comparison. A cell that is planned and has no value (missing, running, failed, or done without this number) is counted
as lacking, and the seed that lacks it is left out whole, for a mean over other cells would not be the same mean.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kontrast.experiments.cell import Value
from kontrast.experiments.experiment import Finding, Row, error_of, is_censored, value_of

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
        """Its multiple."""
        turned = {"≥": "≤", "≤": "≥"}.get(self.bound, self.bound) if weight < 0 else self.bound
        return Number(weight * self.value, turned if weight else "")

    def __add__(self, other: Number) -> Number:
        bounds = {self.bound, other.bound} - {""}
        return Number(self.value + other.value, bounds.pop() if len(bounds) == 1 else "?" if bounds else "")


def average(numbers: Sequence[Number]) -> Number:
    """Their mean."""
    return functools.reduce(Number.__add__, numbers).times(1 / len(numbers))


def named(where: Where) -> str:
    """In words.

    >>> named({"loss": "hard", "temperature": (0.1, 0.2)})
    'loss=hard, temperature=0.1|0.2'
    """
    return ", ".join(f"{axis}={'|'.join(map(str, _wanted(value)))}" for axis, value in where.items())


def at(where: Where) -> str:
    """Where it is, as the end of a sentence."""
    return f" where {named(where)}" if where else ""


def matches(row: Row, where: Where) -> bool:
    """Whether the row stands there."""
    return all(row.at[axis] in _wanted(value) for axis, value in where.items())


def _wanted(value: Any) -> tuple[Value, ...]:
    return tuple(value) if isinstance(value, tuple | list | set | frozenset | range) else (value,)


def parts(rows: Sequence[Row], within: Sequence[str], *named_axes: str) -> dict[str, list[Row]]:
    """The rows by their values on the axes ``within``, which name the part; axes the rows do not have are an error."""
    for row in rows:
        if unknown := [axis for axis in (*within, *named_axes) if axis not in row.at]:
            raise ValueError(
                f"a claim speaks of the axis {unknown[0]!r}, the cell {dict(row.at)} has none; expected one of its axes"
            )
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(named({axis: row.at[axis] for axis in within}), []).append(row)
    return found or {"": []}


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
        seen: dict[tuple[Value, Place], Row] = {}
        for row in rows:
            if not matches(row, where):
                continue
            place = tuple((axis, value) for axis, value in row.at.items() if axis not in (*apart, "seed"))
            seed = row.at.get("seed")
            if (seed, place) in seen:
                raise ValueError(
                    f"the runs {seen[seed, place].folder!r} and {row.folder!r} stand at one place of {measure}; "
                    "expected one run a seed: name the axis that tells them apart"
                )
            seen[seed, place] = row
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
    """What is missing, in words; empty where nothing is.

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
