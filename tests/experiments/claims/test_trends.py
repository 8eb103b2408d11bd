"""Claims about slopes and curvatures, and what censored runs leave of them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from kontrast.experiments import claims
from kontrast.experiments.claims import FAILS, HOLDS, OPEN
from kontrast.experiments.claims.readings import Number
from kontrast.experiments.claims.trends import _bounded_curvature, curves_of, fit_quadratic
from kontrast.experiments.experiment import Row
from kontrast.intervals import interval
from tests.experiments.made_up import HARD, JITTER, LOSSES, ORDINARY, SHARES, TAUS, grid, only, shape


@pytest.mark.parametrize(("slope", "noise", "verdict"), [(1.0, 0.05, HOLDS), (-1.0, 0.05, FAILS), (0.1, 3.0, OPEN)])
def test_rises_and_falls(slope: float, noise: float, verdict: str) -> None:
    rows = grid(shape(lambda x: slope * x, noise), {"temperature": TAUS})
    found = only(claims.rises("", "y", "temperature"), rows)
    x = [math.log2(tau) for tau in TAUS]
    each = [np.polyfit(x, [r.values["y"] for r in rows if r.at["seed"] == s], 1)[0] for s in range(5)]
    assert (found.value, found.half) == pytest.approx((interval(each).mean, interval(each).half), rel=1e-9)
    assert found.verdict == verdict
    assert only(claims.falls("", "y", "temperature"), rows).verdict == {HOLDS: FAILS, FAILS: HOLDS}.get(verdict, OPEN)


def test_the_slope_may_be_against_the_axis_itself() -> None:
    rows = grid(lambda share, seed: 3 * share + JITTER[seed], {"share": SHARES})
    assert only(claims.rises("", "y", "share", scale="linear"), rows).value == pytest.approx(3.0, rel=1e-9)
    with pytest.raises(ValueError, match=r"meets 0\.0; expected positive numbers"):
        claims.rises("", "y", "share").test(rows)
    with pytest.raises(ValueError, match="scale=cubic: must be log or linear"):
        claims.rises("", "y", "share", scale="cubic")


PEAK = -2.5  # log₂ of 0.177


@pytest.mark.parametrize(
    ("curve", "noise", "verdict", "words"),
    [
        (lambda x: -((x - PEAK) ** 2), 0.1, HOLDS, "top is at temperature = 0.17"),
        (lambda x: (x - PEAK) ** 2, 0.1, FAILS, "above 0"),
        (lambda x: -((x - 3.0) ** 2), 0.1, FAILS, "still rises at the upper of them"),
        (lambda x: -((x + 9.0) ** 2), 0.1, FAILS, "falls from the lower end on"),
        (lambda x: -0.05 * (x - PEAK) ** 2, 3.0, OPEN, "the interval contains 0"),
    ],
)
def test_rises_then_falls(curve: Callable[[float], float], noise: float, verdict: str, words: str) -> None:
    rows = grid(shape(curve, noise), {"temperature": TAUS})
    found = only(claims.rises_then_falls("", "y", "temperature"), rows)
    x = [math.log2(tau) for tau in TAUS]
    each = [np.polyfit(x, [r.values["y"] for r in rows if r.at["seed"] == s], 2)[0] for s in range(5)]
    assert (found.value, found.half) == pytest.approx((interval(each).mean, interval(each).half), rel=1e-9)
    assert (found.verdict, words in found.says) == (verdict, True), found.says


def test_a_top_just_outside_is_not_resolved() -> None:
    # The top of the mean curve is a little above 0.8, and the seeds put it on both sides.
    def curve(temperature: float, seed: int) -> float:
        return -((math.log2(temperature) - math.log2(0.82) - JITTER[seed]) ** 2)

    found = only(claims.rises_then_falls("", "y", "temperature"), grid(curve, {"temperature": TAUS}))
    assert found.verdict == OPEN
    assert "top is beyond the upper of them is open" in found.says


@pytest.mark.parametrize(("before", "verdict"), [(0.4, HOLDS), (0.18, OPEN), (0.1, FAILS)])
def test_the_top_lies_before_a_limit(before: float, verdict: str) -> None:
    """The limit decides by the curve's slope there; the top is at 0.17."""
    rows = grid(shape(lambda x: -((x - PEAK) ** 2)), {"temperature": TAUS})
    found = only(claims.rises_then_falls("", "y", "temperature", before=before), rows)
    assert found.verdict == verdict, found.says
    assert f"claimed between 0.05 and {before:g}" in found.says


def test_fiellers_interval_covers_the_top() -> None:
    """In 95 of 100 samples of a noisy quadratic, as many as its name says (within three standard errors)."""
    draw, inside, count = np.random.default_rng(0), 0, 400
    for _ in range(count):
        noise = draw.normal(0, 0.3, (3, len(TAUS)))
        rows = grid(
            lambda temperature, seed, noise=noise: (
                -((math.log2(temperature) - PEAK) ** 2) + noise[seed, TAUS.index(temperature)]
            ),
            {"temperature": TAUS},
            3,
        )
        curves, _ = curves_of(rows, "y", "temperature", {}, "log")
        low, high = fit_quadratic(curves).top_interval()
        inside += low <= PEAK <= high
    assert abs(inside / count - 0.95) < 3 * math.sqrt(0.05 * 0.95 / count)


def test_a_trend_needs_enough_values() -> None:
    rows = grid(shape(lambda x: x), {"temperature": TAUS[:2]})
    assert "temperature has 2 values; expected 3" in only(claims.rises_then_falls("", "y", "temperature"), rows).says
    assert only(claims.rises("", "y", "temperature"), rows).verdict == HOLDS


@pytest.mark.parametrize(("bend", "noise", "verdict"), [(2.0, 1.0, HOLDS), (-2.0, 1.0, FAILS), (0.1, 9.0, OPEN)])
def test_convex_and_more_convex(bend: float, noise: float, verdict: str) -> None:
    def steps(share: float, seed: int, loss: str = "hard") -> float:
        return 100 + 50 * share + (bend + noise * JITTER[seed]) * share**2 * (loss == "hard")

    assert only(claims.convex("", "y", "share"), grid(steps, {"share": SHARES})).verdict == verdict
    both = grid(steps, {**LOSSES, "share": SHARES})
    found = only(claims.more_convex("", "y", "share", HARD, ORDINARY), both)
    assert found.verdict == verdict
    assert found.value == pytest.approx(bend + noise * np.mean(JITTER), rel=1e-9)


def fitted(cap: float, *, lowest: float = 0.0, seeds: int = 3) -> list[Row]:
    """Times to fit that grow as the square of the share, cut at ``cap`` (or, below ``lowest``, also cut)."""

    def time(share: float, seed: int) -> float:
        return 1000 * share**2 + 10 * JITTER[seed] * share + 5 * JITTER[seed] * share**2 + 100

    return grid(
        lambda share, seed: min(time(share, seed), cap),
        {"share": SHARES},
        seeds,
        censored=lambda share, seed: float(time(share, seed) > cap or share < lowest),
    )


def test_censored_runs_at_the_upper_end_understate_convexity() -> None:
    whole, cut = fitted(1e9), fitted(850.0)  # 0.9 and 1.0 never fit
    assert sum(row.values["censored"] == 1.0 for row in cut) == 6
    true, bound = (only(claims.convex("", "y", "share"), rows) for rows in (whole, cut))
    assert true.verdict == bound.verdict == HOLDS
    assert true.value is not None
    assert bound.value is not None
    assert bound.value < true.value
    assert "≥" in bound.says
    assert "3 of 3 seeds with censored runs" in bound.says


@pytest.mark.parametrize("first", range(1, 11))
def test_the_bound_holds_whatever_the_censored_runs_would_have_given(first: int) -> None:
    # Shares from ``first`` on are cut at 100. Any rising values above it must have a curvature of at least the bound's.
    rng = np.random.default_rng(first)
    begin = np.sort(rng.uniform(0, 100, first))
    cut = np.concatenate([begin, np.full(11 - first, 100.0)])
    curve = [(x, Number(y, "≥" if k >= first else "")) for k, (x, y) in enumerate(zip(SHARES, cut, strict=True))]
    bound = _bounded_curvature(curve)
    assert bound.value == pytest.approx(np.polyfit(SHARES, cut, 2)[0], rel=1e-9)
    excess = np.cumsum(rng.exponential(size=(200, 11 - first)) * (rng.uniform(size=(200, 11 - first)) < 0.5), axis=1)
    true = [np.polyfit(SHARES, np.concatenate([begin, 100 + 50 * rise]), 2)[0] for rise in excess]
    if first > 5:  # above the middle
        assert bound.bound == "≥"
        assert min(true) >= bound.value - 1e-9 * abs(bound.value)
    else:
        assert bound.bound == "?"
        assert min(true) < bound.value, "here it is none"


def test_censored_runs_that_hide_the_shape_leave_it_open() -> None:
    # Cut at 250, everything from 0.4 on: a plateau, whose curvature is below 0. A lower bound cannot show that.
    cut = only(claims.convex("", "y", "share"), fitted(250.0))
    assert cut.verdict == OPEN
    assert cut.value is not None
    assert cut.value < 0
    # Censored in the middle of the range or at the lower end alone: not the upper end.
    low = only(claims.convex("", "y", "share"), fitted(1e9, lowest=0.5))
    assert low.verdict == OPEN
    assert "bounds nothing" in low.says


def test_a_censored_run_bounds_a_difference_one_way() -> None:
    def rows(which: str) -> list[Row]:
        return grid(
            lambda loss, seed: 3000.0 if loss == which else 500 + 10 * JITTER[seed],
            LOSSES,
            censored=lambda loss, seed: float(loss == which),
        )

    assert only(claims.higher("", "y", HARD, ORDINARY), rows("hard")).verdict == HOLDS
    assert only(claims.higher("", "y", HARD, ORDINARY), rows("ordinary")).verdict == FAILS
    both = [Row(r.at, r.folder, "done", {**r.values, "censored": 1.0}) for r in rows("hard")]
    assert only(claims.higher("", "y", HARD, ORDINARY), both).verdict == OPEN
    # 3000 is "at least 3000": that it lies below 4000 ± … is not known.
    high = grid(
        lambda loss, seed: 3000.0 if loss == "hard" else 4000 + 10 * JITTER[seed],
        LOSSES,
        censored=lambda loss, seed: float(loss == "hard"),
    )
    assert only(claims.higher("", "y", HARD, ORDINARY), high).verdict == OPEN
    varied = claims.varies_less("", "y", "temperature", HARD, ORDINARY)
    taus = grid(lambda loss, temperature, seed: temperature * (1 + (loss == "hard")), {**LOSSES, "temperature": TAUS})
    marked = [Row(r.at, r.folder, "done", {**r.values, "censored": 1.0}) for r in taus]
    assert (only(varied, taus).verdict, only(varied, marked).verdict) == (FAILS, OPEN)
