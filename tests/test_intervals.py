"""Intervals over seeds: the formula against tables and scipy, and that they cover what they should."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from kontrast.experiments.experiment import Row, is_censored, is_mark, value_of
from kontrast.intervals import Interval, digits, interval, paired

T_TABLE = {2: 12.706, 3: 4.303, 5: 2.776, 10: 2.262, 30: 2.045}  # two-sided 95 %, n − 1 degrees, as printed in tables


@pytest.mark.parametrize(("n", "t"), T_TABLE.items())
def test_half_width_is_the_tables_factor(n: int, t: float) -> None:
    values = [math.sin(7.0 * k) for k in range(n)]
    found = interval(values)
    expected = t * np.std(values, ddof=1) / math.sqrt(n)
    assert found.half == pytest.approx(expected, rel=0.0005 / t)  # the table's last digit
    assert found.mean == pytest.approx(np.mean(values), rel=1e-14, abs=1e-15)
    assert found.n == n


def test_it_is_scipys() -> None:
    values = [82.9, 83.3, 83.4, 83.5, 83.9]
    low, high = stats.t.interval(0.95, len(values) - 1, loc=np.mean(values), scale=stats.sem(values))
    found = interval(values)
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-12)  # the same formula in doubles


def test_it_covers_the_mean_in_95_of_100_cases() -> None:
    rng = np.random.default_rng(0)
    trials, n = 4000, 4
    covered = 0
    for values in rng.normal(1.0, 2.0, (trials, n)):
        found = interval(values)
        assert found.half is not None
        covered += abs(found.mean - 1.0) <= found.half
    # Three binomial deviations: 3 √(0.95 · 0.05/4000) = 0.0103. A normal factor (1.96) would cover 85 %.
    assert abs(covered / trials - 0.95) < 3 * math.sqrt(0.95 * 0.05 / trials)


def test_a_single_seed_has_none() -> None:
    assert interval([83.4]) == Interval(83.4, None, 1)
    assert (interval([83.4]).low, interval([83.4]).high) == (None, None)


def test_as_printed() -> None:
    assert f"{Interval(83.41, 0.52, 5):.1f}" == "83.4 ± 0.5 (n = 5)"
    assert f"{Interval(83.41, None, 1):.1f}" == "83.4 (n = 1)"
    assert f"{Interval(0.512, 0.031, 3):+.2f}" == "+0.51 ± 0.03 (n = 3)"
    assert str(Interval(1234.5, 210.0, 3)) == "1234 ± 210 (n = 3)"
    assert [digits(Interval(1.0, half, 2)) for half in (0.0, 0.00012, 5.0)] == [3, 5, 1]


def test_pairs_share_their_seeds() -> None:
    a, b = {0: 10.0, 1: 20.0, 2: 30.0, 7: 1e9}, {0: 9.5, 1: 19.4, 2: 29.6, 8: -1e9}
    found = paired(a, b)
    assert found == interval([0.5, 20 - 19.4, 30 - 29.6])
    assert found.half is not None
    assert found.half < 1 < interval([10.0, 20.0, 30.0]).half  # type: ignore[operator]  # what the seeds share is gone


def test_values_that_are_none() -> None:
    done = {"knn": 1.0, "nan": math.nan, "none": None}
    assert value_of(Row({}, "", "done", done), "knn") == 1.0
    assert [value_of(Row({}, "", "done", done), name) for name in ("nan", "none", "other")] == [None] * 3
    assert value_of(Row({}, "", "failed", done), "knn") is None


def test_censoring_is_of_the_row_or_of_a_measure() -> None:
    all_of_it, one = (
        Row({}, "", "done", {"steps": 9.0, "censored": 1.0}),
        Row({}, "", "done", {"censored:steps": 1.0, "censored": 0.0}),
    )
    assert is_censored(all_of_it, "steps")
    assert is_censored(all_of_it, "knn")
    assert is_censored(one, "steps")
    assert not is_censored(one, "knn")
    assert is_mark("censored")
    assert is_mark("censored:steps")
    assert not is_mark("steps")


def test_errors() -> None:
    with pytest.raises(ValueError, match="must have at least one value"):
        interval([])
    with pytest.raises(ValueError, match="must be finite numbers"):
        interval([1.0, math.nan])
    with pytest.raises(ValueError, match=r"seeds=\[0\] and \[1\]: must have a seed in common"):
        paired({0: 1.0}, {1: 1.0})
