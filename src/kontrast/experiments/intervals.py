r"""Means over seeds and how sure they are.

With values y_1 … y_n of n seeds, ȳ their mean and s² = Σ (y_i − ȳ)²/(n − 1),

    (1)  ȳ ± t_{n−1, 0.975} s/√n        Student's 95 % interval of the mean; none for n = 1
    (2)  d_i = a_i − b_i                two methods on the same seeds: (1) of the differences
    (3)  (t_{n−1, 0.975} + t_{n−1, 0.8}) s/√n    the smallest effect that n seeds show in four cases of five

(2) leaves out what a seed does to both alike (which images, which first weights), so it is narrower than (1) of each
wherever the two go together; it needs the same seeds, and uses those that both have.

The interval says what other seeds would change, not other test rows or other data. It takes the values for normal,
which few seeds cannot show; with two the factor t is 12.7, and hardly anything is resolved.

A censored value is a lower bound: the run was stopped before what was waited for came ("did not fit within 3,000
steps"). A row says so with ``values["censored"] == 1.0``, of all its measures, or ``values["censored:NAME"] == 1.0``,
of one of them. ``values["error:NAME"]`` is the standard error of a single value (over test rows, or as a paper prints
it), for where there is one seed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scipy.special import stdtrit  # type: ignore[import-untyped]

from kontrast.experiments.cell import Value
from kontrast.experiments.experiment import Row

CONFIDENCE = 0.95
POWER = 0.8
CENSORED = "censored"
ERROR = "error"


@dataclass(frozen=True)
class Interval:
    """The mean of ``n`` values and the half-width of its 95 % interval, None for a single one.

    >>> f"{Interval(83.41, 0.52, 5):.1f}"
    '83.4 ± 0.5 (n = 5)'
    >>> f"{Interval(83.41, None, 1):.1f}"
    '83.4 (n = 1)'
    """

    mean: float
    half: float | None
    n: int

    @property
    def low(self) -> float | None:
        """Its lower end."""
        return None if self.half is None else self.mean - self.half

    @property
    def high(self) -> float | None:
        """Its upper end."""
        return None if self.half is None else self.mean + self.half

    def __format__(self, spec: str) -> str:
        spread = "" if self.half is None else f" ± {self.half:{spec.removeprefix('+')}}"
        return f"{self.mean:{spec}}{spread} (n = {self.n})"

    def __str__(self) -> str:
        return format(self, f".{digits(self)}f")


def digits(found: Interval) -> int:
    """How many digits after the point are worth showing: two of the half-width, four of a mean without one.

    >>> digits(Interval(83.4123, 0.521, 5)), digits(Interval(3.14159, None, 1)), digits(Interval(3000.0, 410.0, 3))
    (2, 3, 0)
    """
    size, shown = (found.mean, 4) if found.half is None or found.half == 0 else (found.half, 2)
    return 2 if size == 0 else min(max(shown - 1 - math.floor(math.log10(abs(size))), 0), 8)


def interval(values: Iterable[float]) -> Interval:
    """(1).

    >>> print(interval([82.9, 83.3, 83.4, 83.5, 83.9]))
    83.40 ± 0.45 (n = 5)
    >>> print(interval([83.4]))
    83.40 (n = 1)
    """
    y = [float(value) for value in values]
    if not y:
        raise ValueError("there are no values to take the mean of; expected at least one finished run")
    if not all(math.isfinite(value) for value in y):
        raise ValueError(f"the values are {y}; expected finite numbers. Leave out the runs that have none")
    n, mean = len(y), math.fsum(y) / len(y)
    if n == 1:
        return Interval(mean, None, 1)
    s = math.sqrt(math.fsum((value - mean) ** 2 for value in y) / (n - 1))
    return Interval(mean, student(n - 1) * s / math.sqrt(n), n)


def paired(a: Mapping[Any, float], b: Mapping[Any, float]) -> Interval:
    """(2), from values by seed; seeds that only one of them has are left out.

    >>> print(paired({0: 83.1, 1: 84.0, 2: 83.5}, {0: 82.6, 1: 83.4, 2: 83.1, 3: 90.0}))
    0.50 ± 0.25 (n = 3)
    """
    common = [seed for seed in a if seed in b]
    if not common:
        raise ValueError(f"the seeds are {sorted(a)} and {sorted(b)}; expected at least one that both have")
    return interval(a[seed] - b[seed] for seed in common)


def student(freedom: float) -> float:
    """The factor t of a 95 % interval; 1.96, a normal variable's, for infinite degrees of freedom.

    >>> round(student(2), 2), round(student(math.inf), 2)
    (4.3, 1.96)
    """
    return float(stdtrit(freedom, (1 + CONFIDENCE) / 2))


def smallest_visible(half: float, freedom: float) -> float:
    """(3), from the half-width of the 95 % interval and its degrees of freedom (n − 1 for n seeds).

    >>> round(smallest_visible(0.5, 4), 2)
    0.67
    """
    return half * (1 + float(stdtrit(freedom, POWER)) / student(freedom))


def seeds_needed(effect: float, half: float, n: int) -> int | None:
    """How many seeds would make an effect of this size visible (3), if they spread as these n do; None above 9,999.

    >>> seeds_needed(0.5, half=0.5, n=5), seeds_needed(0.1, half=0.5, n=5), seeds_needed(0.0, half=0.5, n=5)
    (8, 130, None)
    """
    s = half * math.sqrt(n) / student(n - 1)
    for count in range(max(n, 2), 10_000):
        reach = student(count - 1) + float(stdtrit(count - 1, POWER))
        if reach * s / math.sqrt(count) <= abs(effect):
            return count
    return None


def value_of(row: Row, measure: str) -> float | None:
    """A finished run's number; None where it is not done, has none, or it is not finite."""
    value = row.values.get(measure) if row.status == "done" else None
    return value if value is not None and math.isfinite(value) else None


def is_censored(row: Row, measure: str) -> bool:
    """Whether the number is only a lower bound."""
    return 1.0 in (row.values.get(CENSORED), row.values.get(f"{CENSORED}:{measure}"))


def error_of(row: Row, measure: str) -> float | None:
    """The standard error of a finished run's number, where the row has it."""
    return row.values.get(f"{ERROR}:{measure}") if row.status == "done" else None


def is_mark(measure: str) -> bool:
    """Whether the name is that of a mark (censored, an error), not of a number to show."""
    return measure == CENSORED or measure.startswith((f"{CENSORED}:", f"{ERROR}:"))


def by_seed(rows: Sequence[Row], measure: str) -> dict[Value, float]:
    """Each seed's mean over its finished rows."""
    found: dict[Value, list[float]] = {}
    for row in rows:
        if (value := value_of(row, measure)) is not None:
            found.setdefault(row.at.get("seed"), []).append(value)
    return {seed: math.fsum(values) / len(values) for seed, values in found.items()}


def over_seeds(rows: Sequence[Row], measure: str, by: Sequence[str]) -> dict[tuple[Value, ...], Interval]:
    """(1) at each place: its values on the axes ``by``, in the rows' order. Other axes are averaged within a seed.

    A place without a finished run is left out.

    >>> rows = [Row({"loss": loss, "seed": seed}, "", "done", {"knn": knn})
    ...     for loss, seed, knn in (("tcl", 0, 80.0), ("tcl", 1, 82.0), ("supcon", 0, 79.0))]
    >>> {place: str(found) for place, found in over_seeds(rows, "knn", by=["loss"]).items()}
    {('tcl',): '81 ± 13 (n = 2)', ('supcon',): '79.00 (n = 1)'}
    """
    places: dict[tuple[Value, ...], list[Row]] = {}
    for row in rows:
        if unknown := [axis for axis in by if axis not in row.at]:
            raise ValueError(f"there is no axis {unknown[0]!r}; the rows have {', '.join(row.at)}")
        places.setdefault(tuple(row.at[axis] for axis in by), []).append(row)
    seeds = {place: by_seed(here, measure) for place, here in places.items()}
    return {place: interval(values.values()) for place, values in seeds.items() if values}
