"""Paired statistics: the bootstrap is that of rows, the test is exact, and the smallest difference is found four times
in five."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import binomtest
from torch import Tensor

from kontrast.adaptation.comparison import LEVEL, compare


def rows(won: int, lost: int, same: int) -> tuple[Tensor, Tensor]:
    """Rows of which so many are won, lost, and right both times."""
    before = torch.tensor([False] * won + [True] * lost + [True] * same)
    after = torch.tensor([True] * won + [False] * lost + [True] * same)
    return before, after


def test_the_interval_is_that_of_resampled_rows() -> None:
    before, after = rows(30, 12, 158)
    d = after.double().numpy() - before.double().numpy()
    draws = np.random.default_rng(1)
    means = np.array([d[draws.integers(0, 200, 200)].mean() for _ in range(10_000)])
    low, high = np.quantile(means, [0.025, 0.975])
    found = compare(before, after)
    # The quantiles of 10,000 draws vary by 0.001 (their density there is about 2); two sets of draws are compared.
    assert (found.low, found.high) == (pytest.approx(low, abs=0.006), pytest.approx(high, abs=0.006))
    assert found.difference == pytest.approx(d.mean())


@pytest.mark.parametrize(("won", "lost"), [(0, 0), (5, 0), (6, 0), (14, 5), (40, 41), (300, 250)])
def test_p_is_exact(won: int, lost: int) -> None:
    found = compare(*rows(won, lost, 50))
    expected = binomtest(won, won + lost, 0.5, alternative="greater").pvalue if won + lost else 1.0
    other = binomtest(lost, won + lost, 0.5, alternative="greater").pvalue if won + lost else 1.0
    assert (found.p, found.p_worse) == (pytest.approx(expected), pytest.approx(other))


def test_neither_statistic_decides_alone() -> None:
    four = compare(*rows(4, 0, 196))
    assert four.low > 0
    assert four.p > LEVEL
    assert not four.is_better
    six = compare(*rows(6, 0, 194))
    assert six.is_better
    assert compare(*rows(0, 6, 194)).is_worse
    assert not compare(*rows(0, 0, 200)).is_better


@pytest.mark.parametrize(("n", "q"), [(2000, 0.1), (400, 0.05), (200, 0.0)])
def test_the_smallest_difference_is_seen_four_times_in_five(n: int, q: float) -> None:
    draws = np.random.default_rng(0)
    delta = compare(*rows(round(q * n / 2), round(q * n / 2), n - 2 * round(q * n / 2))).smallest
    q = max(q, delta)
    seen = 0
    for won, lost, same in draws.multinomial(n, [(q + delta) / 2, (q - delta) / 2, 1 - q], size=400):
        seen += compare(*rows(won, lost, same)).is_better
    assert 0.7 < seen / 400 < 0.9  # ± 0.06 of 400 draws, and the normal approximation


def test_few_rows_show_nothing() -> None:
    assert compare(*rows(7, 0, 0)).smallest > 1
    assert compare(*rows(0, 0, 8)).smallest < 1


def test_rows_must_be_the_same() -> None:
    with pytest.raises(ValueError, match=r"before \[3\] and after \[2\]: must be bool \[n\] of the same n rows"):
        compare(torch.ones(3).bool(), torch.ones(2).bool())
