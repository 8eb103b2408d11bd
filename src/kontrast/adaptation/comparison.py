r"""Two encoders on the same rows: is the second one better, and what could these rows have shown?

With right_i and right'_i in {0, 1} for row i by the first and by the second encoder, and n rows,

    (1)  d_i = right'_i − right_i,      d = (won − lost)/n,      won = #{d_i = 1},  lost = #{d_i = −1}
    (2)  95 % interval of d: the 2.5th and the 97.5th percentile of d over `DRAWS` bootstrap samples of n rows; a sample
         of rows with values 1, −1, 0 is a draw of the counts from Multinomial(n; won/n, lost/n, 1 − (won + lost)/n)
    (3)  P = Pr(X ≥ won),   X ~ Binomial(won + lost, 1/2)                       exact McNemar test, one-sided
    (4)  better: the interval (2) is above 0, and P ≤ 2.5 %;   worse: the same with the encoders exchanged
    (5)  smallest visible difference: (z_{0.975} + z_{0.8}) √(q/n),   q = max(won + lost, `FEWEST`)/n

Rows that both encoders have right, or both wrong, add nothing, which is why paired rows show smaller differences than
two test sets would. (4) asks for both because either alone is wrong somewhere: of 200 rows with 4 won and none lost the
bootstrap interval is above 0 (a sample has none of the four with 2 %), and chance alone gives four of four with 6 %;
(3) does not give an interval. (5) is the difference that (3) shows in four cases of five, by the normal approximation
with the variance of no difference. Of fewer than six rows that differ no split is significant (½⁵ > 2.5 %), so at least
`FEWEST` are assumed: a difference that makes 8 rows differ, all one way, has six or more of them in four cases of five.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtrc  # type: ignore[import-untyped]
from torch import Tensor

from kontrast.intervals import CONFIDENCE, smallest_visible, student
from kontrast.train.start import paired_difference

DRAWS = 10_000
FEWEST = 8
LEVEL = (1 - CONFIDENCE) / 2  # of the one-sided test


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A second encoder against a first one, on the same rows.

    Attributes:
        before: The share of rows that the first encoder has right.
        after: The share that the second one has right.
        won: Rows that only the second has right.
        lost: Rows that only the first has right.
        rows: n.
        seed: Of the bootstrap.
    """

    before: float
    after: float
    won: int
    lost: int
    rows: int
    seed: int = 0

    @functools.cached_property
    def interval(self) -> tuple[float, float]:
        """(2): its ends."""
        n, won, lost = self.rows, self.won, self.lost
        draws = np.random.default_rng(self.seed).multinomial(n, [won / n, lost / n, (n - won - lost) / n], size=DRAWS)
        low, high = np.quantile((draws[:, 0] - draws[:, 1]) / n, [LEVEL, 1 - LEVEL])
        return float(low), float(high)

    @property
    def low(self) -> float:
        """The lower end of the interval (2)."""
        return self.interval[0]

    @property
    def high(self) -> float:
        """The upper end of the interval (2)."""
        return self.interval[1]

    @property
    def p(self) -> float:
        """(3)."""
        return _tail(self.won, self.won + self.lost)

    @property
    def p_worse(self) -> float:
        """(3) with the encoders exchanged."""
        return _tail(self.lost, self.won + self.lost)

    @property
    def difference(self) -> float:
        """(1): the second's share minus the first's."""
        return (self.won - self.lost) / self.rows

    @property
    def half(self) -> float:
        """Half the width of the interval (2)."""
        return (self.high - self.low) / 2

    @property
    def smallest(self) -> float:
        """(5); above 1 if these rows cannot show any difference."""
        q = max(self.won + self.lost, FEWEST) / self.rows
        return smallest_visible(student(math.inf) * math.sqrt(q / self.rows), math.inf)

    @property
    def is_better(self) -> bool:
        """(4): whether the second encoder is better."""
        return self.p <= LEVEL and self.low > 0

    @property
    def is_worse(self) -> bool:
        """(4): whether the second encoder is worse."""
        return self.p_worse <= LEVEL and self.high < 0


def compare(before: Tensor, after: Tensor, *, seed: int = 0) -> Comparison:
    """Compare two encoders by the rows that each has right.

    Args:
        before: Whether the first encoder is right, bool ``[n]``, n at least 1.
        after: Whether the second is, on the same rows.
        seed: Of the bootstrap.

    Returns:
        The comparison.

    Raises:
        ValueError: No rows, or another number of them.

    >>> import torch
    >>> before, after = torch.arange(200) % 2 == 0, torch.arange(200) % 5 < 4
    >>> found = compare(before, after)
    >>> found.won, found.lost, found.difference, found.is_better
    (80, 20, 0.3, True)
    >>> compare(before[:6], after[:6]).smallest > 1  # six rows show nothing
    True
    """
    if before.shape != after.shape or before.ndim != 1 or not len(before):
        raise ValueError(
            f"before {list(before.shape)} and after {list(after.shape)}: must be bool [n] of the same n rows, n ≥ 1"
        )
    counts = paired_difference(before, after)
    return Comparison(
        before=float(before.double().mean()),
        after=float(after.double().mean()),
        won=counts["won"],
        lost=counts["lost"],
        rows=len(before),
        seed=seed,
    )


def _tail(count: int, total: int) -> float:
    """(3): the chance of at least so many of the total."""
    return 1.0 if count == 0 else float(bdtrc(count - 1, total, 0.5))
