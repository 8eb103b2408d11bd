r"""Means over seeds and their 95 % intervals.

With values y_1 … y_n of n seeds, ȳ their mean and s² = Σ (y_i − ȳ)²/(n − 1),

    (1)  ȳ ± t_{n−1, 0.975} s/√n        Student's 95 % interval of the mean; none for n = 1
    (2)  d_i = a_i − b_i                two methods on the same seeds: (1) of the differences
    (3)  (t_{n−1, 0.975} + t_{n−1, 0.8}) s/√n    the smallest effect that n seeds show in four cases of five

(2) removes what a seed does to both methods alike (which images, which first weights), so it is narrower than (1) of
each wherever the two vary together. It needs values of both methods on the same seeds.

The interval says what other seeds would change, not other test rows or other data. It assumes normal values, which a
few seeds cannot show; with two seeds the factor t is 12.7, and hardly any difference is resolved.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from scipy.special import stdtrit  # type: ignore[import-untyped]

CONFIDENCE = 0.95
POWER = 0.8


@dataclass(frozen=True)
class Interval:
    """The mean of some values and its 95 % interval.

    Args:
        mean: The mean.
        half: The half-width of the interval; None for a single value.
        n: How many values there are.

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
        """The lower end."""
        return None if self.half is None else self.mean - self.half

    @property
    def high(self) -> float | None:
        """The upper end."""
        return None if self.half is None else self.mean + self.half

    def __format__(self, spec: str) -> str:
        spread = "" if self.half is None else f" ± {self.half:{spec.removeprefix('+')}}"
        return f"{self.mean:{spec}}{spread} (n = {self.n})"

    def __str__(self) -> str:
        return format(self, f".{digits(self)}f")


def digits(x: Interval) -> int:
    """How many digits after the point are worth showing: two of the half-width, four of a mean without one.

    Args:
        x: The mean with its interval.

    Returns:
        0 to 8.

    >>> digits(Interval(83.4123, 0.521, 5)), digits(Interval(3.14159, None, 1)), digits(Interval(3000.0, 410.0, 3))
    (2, 3, 0)
    """
    size, count = (x.mean, 4) if x.half is None or x.half == 0 else (x.half, 2)
    return 2 if size == 0 else min(max(count - 1 - math.floor(math.log10(abs(size))), 0), 8)


def interval(values: Iterable[float]) -> Interval:
    """The mean of values and its interval (1).

    Args:
        values: One number for each seed.

    Returns:
        The interval; without a half-width for one seed.

    Raises:
        ValueError: There are no values, or one is not finite.

    >>> print(interval([82.9, 83.3, 83.4, 83.5, 83.9]))
    83.40 ± 0.45 (n = 5)
    >>> print(interval([83.4]))
    83.40 (n = 1)
    """
    y = [float(value) for value in values]
    if not y:
        raise ValueError("values=[]: must have at least one value. Use the values of finished runs.")
    if not all(math.isfinite(value) for value in y):
        raise ValueError(f"values={y}: must be finite numbers. Leave out the runs that have none.")
    n, mean = len(y), math.fsum(y) / len(y)
    if n == 1:
        return Interval(mean, None, 1)
    s = math.sqrt(math.fsum((value - mean) ** 2 for value in y) / (n - 1))
    return Interval(mean, student(n - 1) * s / math.sqrt(n), n)


def paired(a: Mapping[Any, float], b: Mapping[Any, float]) -> Interval:
    """The mean difference of two methods on the same seeds, and its interval (2).

    Args:
        a: Values by seed.
        b: Values by seed; seeds that only one of the two has are left out.

    Returns:
        The interval of the differences a − b.

    Raises:
        ValueError: They have no seed in common.

    >>> print(paired({0: 83.1, 1: 84.0, 2: 83.5}, {0: 82.6, 1: 83.4, 2: 83.1, 3: 90.0}))
    0.50 ± 0.25 (n = 3)
    """
    common = [seed for seed in a if seed in b]
    if not common:
        raise ValueError(f"seeds={sorted(a)} and {sorted(b)}: must have a seed in common. Run both on the same seeds.")
    return interval(a[seed] - b[seed] for seed in common)


def student(freedom: float) -> float:
    """The factor t of a 95 % interval; 1.96, as of a normal variable, for infinite degrees of freedom.

    Args:
        freedom: Degrees of freedom, n − 1 for n seeds.

    Returns:
        t.

    >>> round(student(2), 2), round(student(math.inf), 2)
    (4.3, 1.96)
    """
    return float(stdtrit(freedom, (1 + CONFIDENCE) / 2))


def smallest_visible(half: float, freedom: float) -> float:
    """The smallest visible effect (3).

    Args:
        half: The half-width of the 95 % interval.
        freedom: Its degrees of freedom, n − 1 for n seeds.

    Returns:
        The effect.

    >>> round(smallest_visible(0.5, 4), 2)
    0.67
    """
    return half * (1 + float(stdtrit(freedom, POWER)) / student(freedom))


def seeds_needed(effect: float, half: float, n: int) -> int | None:
    """How many seeds would make an effect visible (3), if they spread as these n do; None above 9,999.

    Args:
        effect: The size of the effect.
        half: The half-width of the interval over the n seeds.
        n: The number of seeds, at least 2.

    Returns:
        The number of seeds, or None.

    >>> seeds_needed(0.5, half=0.5, n=5), seeds_needed(0.1, half=0.5, n=5), seeds_needed(0.0, half=0.5, n=5)
    (8, 130, None)
    """
    s = half * math.sqrt(n) / student(n - 1)
    for count in range(max(n, 2), 10_000):
        factor = student(count - 1) + float(stdtrit(count - 1, POWER))
        if factor * s / math.sqrt(count) <= abs(effect):
            return count
    return None
