"""Claims on hand-made rows whose verdicts are known: each kind comes to each of the three. Trends have a file."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats

from kontrast.experiments import claims
from kontrast.experiments.claims import FAILS, HOLDS, OPEN
from kontrast.experiments.claims.trends import fisher
from kontrast.experiments.experiment import Finding, Row
from kontrast.intervals import interval, paired
from tests.experiments.made_up import HARD, JITTER, LOSSES, ORDINARY, TAUS, by_loss, grid, only, shape


@pytest.mark.parametrize(("gain", "noise", "verdict"), [(0.5, 0.1, HOLDS), (-0.5, 0.1, FAILS), (0.1, 2.0, OPEN)])
def test_higher_and_lower(gain: float, noise: float, verdict: str) -> None:
    rows = by_loss(0.0, gain, noise)
    found = only(claims.higher("", "y", HARD, ORDINARY), rows)
    a, b = ({r.at["seed"]: r.values["y"] for r in rows if r.at["loss"] == loss} for loss in ("hard", "ordinary"))
    expected = paired(a, b)  # type: ignore[arg-type]
    assert found.verdict == verdict
    assert (found.value, found.half, found.n) == pytest.approx((expected.mean, expected.half, 5), rel=1e-9)
    assert only(claims.lower("", "y", ORDINARY, HARD), rows).verdict == verdict
    assert only(claims.lower("", "y", HARD, ORDINARY), rows).verdict == {HOLDS: FAILS, FAILS: HOLDS}.get(verdict, OPEN)


def test_pairing_finds_what_the_seeds_hide() -> None:
    rows = by_loss(0.0, 0.5, noise=0.1)
    spread = interval(r.values["y"] for r in rows if r.at["loss"] == "hard").half  # type: ignore[misc]
    found = only(claims.higher("", "y", HARD, ORDINARY), rows)
    assert spread is not None
    assert found.value is not None
    assert spread > found.value, "unpaired intervals would overlap"
    assert found.verdict == HOLDS


def test_a_claim_has_a_finding_for_each_part() -> None:
    rows = grid(
        lambda data, loss, seed: (
            0.1 * JITTER[seed] + {"b": 1.0, "a": -1.0}[data] * (loss == "hard") * (1 + JITTER[seed])
        ),
        {"data": ("b", "a"), **LOSSES},
    )
    found = claims.higher("", "y", HARD, ORDINARY, within=("data",)).test(rows)
    assert [(f.where, f.verdict) for f in found] == [("data=b", HOLDS), ("data=a", FAILS)]


def test_axes_not_mentioned_are_averaged_within_a_seed() -> None:
    rows = grid(
        lambda data, loss, seed: JITTER[seed] + (3.0 if data == "b" else 1.0) * (loss == "hard"),
        {"data": ("b", "a"), **LOSSES},
    )
    found = only(claims.higher("", "y", HARD, ORDINARY), rows)
    assert (found.value, found.half, found.n) == pytest.approx((2.0, 0.0, 5), abs=1e-12)  # doubles near 1


def test_an_axis_that_does_not_apply_is_averaged_on_the_other_side() -> None:
    axes = {"temperature": (0.1, 0.2), "target": (0.03, 0.05)}
    rows = [
        Row({"method": "sce", **r.at}, "", "done", r.values)
        for r in grid(lambda temperature, target, seed: 10 * temperature + 100 * target + seed, axes)
    ]
    rows += [
        Row({"method": "moco", "temperature": tau, "target": None, "seed": seed}, "", "done", {"y": 10 * tau + seed})
        for tau in (0.1, 0.2)
        for seed in range(5)
    ]
    moco = {"method": "moco"}
    found = only(claims.higher("", "y", {"method": "sce"}, moco), rows)
    assert (found.value, found.n) == pytest.approx((4.0, 5), rel=1e-9)
    found = only(claims.higher("", "y", {"method": "sce", "target": 0.05}, moco), rows)
    assert (found.value, found.n) == pytest.approx((5.0, 5), rel=1e-9)


def test_missing_cells_leave_a_claim_open_and_are_counted() -> None:
    rows = by_loss(0.0, 0.5)
    rows[0] = Row(rows[0].at, "x", "failed", error="RuntimeError: no")
    rows[1] = Row(rows[1].at, "x", "missing")
    rows[2] = Row(rows[2].at, "x", "done", {"y": None})
    found = only(claims.higher("", "y", HARD, ORDINARY), rows)
    assert found.verdict == OPEN
    assert found.n == 2, "the seeds that both have"
    assert found.says.endswith("3 of 10 cells have no value (1 failed, 1 missing, 1 without a number)")
    nothing = only(claims.higher("", "y", HARD, ORDINARY), [Row(r.at, "x", "missing") for r in rows])
    assert (nothing.verdict, nothing.n, nothing.value) == (OPEN, 0, None)
    assert only(claims.higher("", "y", HARD, ORDINARY), [r for r in rows if r.at["loss"] == "hard"]).says == (
        "no cells where loss=ordinary"
    )
    assert only(claims.higher("", "y", HARD, ORDINARY), []).verdict == OPEN


def test_one_seed_without_another_error_resolves_nothing() -> None:
    for claim, axes in (
        (claims.rises("", "y", "temperature"), {"temperature": TAUS[:2]}),  # a line through two points
        (claims.convex("", "y", "temperature"), {"temperature": TAUS[:3]}),
        (claims.stays("", "y", -1e9), {"temperature": TAUS}),
    ):
        found = only(claim, grid(shape(lambda x: 5 * x), axes, seeds=1))
        assert found.verdict == OPEN
        assert "one seed has no interval" in found.says
        assert (found.half, found.visible, found.error) == (None, None, "")


def test_one_seed_of_a_curve_takes_its_error_from_the_residuals() -> None:
    """Of a line: what scipy.stats.linregress gives."""
    noise = [0.3, -0.4, 0.1, 0.2, -0.5, 0.4, -0.1, 0.0, 0.2, -0.2, 0.3, -0.3]
    rows = [Row({"temperature": t, "seed": 0}, "", "done", {"y": math.log2(t) + noise[k]}) for k, t in enumerate(TAUS)]
    found = only(claims.rises("", "y", "temperature"), rows)
    line = stats.linregress([math.log2(t) for t in TAUS], [row.values["y"] for row in rows])
    half = stats.t.ppf(0.975, len(TAUS) - 2) * line.stderr
    assert (found.value, found.half) == pytest.approx((line.slope, half), rel=1e-9)
    assert (found.verdict, found.error, found.n) == (HOLDS, "the residuals of the fit", 1)
    # Two such curves are averaged, and their residuals pooled.
    both = [Row({**row.at, "data": d}, "", "done", row.values) for row in rows for d in ("a", "b")]
    pooled = only(claims.rises("", "y", "temperature"), both)
    expected = stats.t.ppf(0.975, 2 * (len(TAUS) - 2)) * line.stderr / math.sqrt(2)
    assert (pooled.value, pooled.half) == pytest.approx((line.slope, expected), rel=1e-9)


def test_one_seed_of_a_difference_takes_the_values_own_errors_or_places_as_replicates() -> None:
    def row(data: str, loss: str, y: float, **error: float) -> Row:
        return Row({"data": data, "loss": loss, "seed": 0}, "", "done", {"y": y, **error})

    plain = [row(d, loss, y) for d, gain in (("a", 1.0), ("b", 1.2), ("c", 0.8)) for loss, y in
             (("hard", 50 + gain), ("ordinary", 50.0))]  # fmt: skip
    found = only(claims.higher("", "y", HARD, ORDINARY), plain)
    half = stats.t.ppf(0.975, 2) * 0.2 / math.sqrt(3)
    assert (found.value, found.half) == pytest.approx((1.0, half), rel=1e-9)
    assert (found.verdict, found.error) == (HOLDS, "3 places as replicates")
    first = [row("a", "hard", 51.0, **{"error:y": 0.3}), row("a", "ordinary", 50.0, **{"error:y": 0.4})]
    found = only(claims.higher("", "y", HARD, ORDINARY), first)
    assert (found.half, found.error) == (pytest.approx(1.959964 * 0.5, rel=1e-6), "the values' own errors")
    assert found.verdict == HOLDS
    alone = only(claims.higher("", "y", HARD, ORDINARY), plain[:2])
    assert (alone.verdict, alone.half) == (OPEN, None)


def test_pooled_is_one_finding_more() -> None:
    rows = [
        Row({"data": d, "loss": loss, "temperature": t, "seed": 0}, "", "done", {"y": t + gain * (loss == "hard")})
        for d, gain in (("a", 1.0), ("b", 1.2), ("c", 0.8))
        for loss in ("hard", "ordinary")
        for t in (0.1, 0.2)
    ]
    *parts, together = claims.higher("", "y", HARD, ORDINARY, within=("data",), pooled=True).test(rows)
    assert [part.where for part in parts] == ["data=a", "data=b", "data=c"]
    assert together.where == "all 3 together"
    assert together.error == "3 places as replicates"  # the data sets, not the six cells
    assert together.half == pytest.approx(stats.t.ppf(0.975, 2) * 0.2 / math.sqrt(3), rel=1e-9)
    one = claims.higher("", "y", HARD, ORDINARY, within=("data",), pooled=True).test(rows[:4])
    assert len(one) == 1


@pytest.mark.parametrize(("gain", "noise", "verdict"), [(-0.2, 0.1, HOLDS), (-2.0, 0.1, FAILS), (-0.4, 1.0, OPEN)])
def test_not_below_is_non_inferiority(gain: float, noise: float, verdict: str) -> None:
    found = only(claims.not_below("", "y", HARD, ORDINARY, 0.5), by_loss(0.0, gain, noise))
    assert found.verdict == verdict
    with pytest.raises(ValueError, match="must be above 0"):
        claims.not_below("", "y", HARD, ORDINARY, 0.0)


def test_what_is_not_resolved_says_what_could_have_been_seen() -> None:
    found = only(claims.higher("", "y", HARD, ORDINARY), by_loss(0.0, 0.1, noise=2.0))
    assert found.half is not None
    assert found.visible == pytest.approx(found.half * (1 + stats.t.ppf(0.8, 4) / stats.t.ppf(0.975, 4)), rel=1e-9)
    assert "the smallest visible effect is" in found.says
    assert "one of this size needs" in found.says


@pytest.mark.parametrize(("hard", "noise", "verdict"), [(0.1, 0.0, HOLDS), (3.0, 0.0, FAILS), (1.0, 1.0, OPEN)])
def test_varies_less(hard: float, noise: float, verdict: str) -> None:
    def value(loss: str, temperature: float, seed: int) -> float:
        size = (hard + noise * JITTER[seed]) if loss == "hard" else 1.0 + 0.01 * JITTER[seed]
        return size * math.log2(temperature) + 50 * JITTER[seed]

    rows = grid(value, {**LOSSES, "temperature": TAUS})
    found = only(claims.varies_less("", "y", "temperature", HARD, ORDINARY), rows)
    assert found.verdict == verdict
    scale = np.std([math.log2(tau) for tau in TAUS])
    assert found.value == pytest.approx(scale * (hard - 1.0), abs=0.02)  # the jitter's mean, 0.01, times scale


@pytest.mark.parametrize(("slope", "verdict"), [(1.0, HOLDS), (-1.0, FAILS), (0.0, OPEN)])
def test_correlated(slope: float, verdict: str) -> None:
    noise = np.random.default_rng(3).normal(size=8)
    rows = grid(
        lambda place, seed: slope * place + noise[place] + JITTER[seed],
        {"place": range(8)},
        x=lambda place, seed: place,
    )
    found = only(claims.correlated("", "x", "y", 1), rows)
    y = slope * np.arange(8) + noise
    test = stats.pearsonr(np.arange(8), y)
    assert (found.verdict, found.n) == (verdict, 8)
    assert found.value == pytest.approx(test.statistic, rel=1e-9)
    assert only(claims.correlated("", "x", "y", -1), rows).verdict == {HOLDS: FAILS, FAILS: HOLDS}.get(verdict, OPEN)


def test_fishers_interval_is_scipys() -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 20))
    found = stats.pearsonr(x, y).confidence_interval(0.95)
    assert fisher(np.corrcoef(x, y)[0, 1], 20) == pytest.approx((found.low, found.high), rel=1e-9)


def test_correlation_says_what_it_cannot() -> None:
    claim = claims.correlated("", "x", "y", 1)
    few = grid(lambda place, seed: place, {"place": range(3)}, x=lambda place, seed: place)
    assert "3 places; expected 4" in only(claim, few).says
    flat = grid(lambda place, seed: 1.0, {"place": range(5)}, x=lambda place, seed: place)
    assert "does not vary" in only(claim, flat).says
    cut = [Row(r.at, r.folder, "done", {**r.values, "censored:y": 1.0}) for r in flat]
    assert "censored" in only(claim, cut).says
    gone = [
        *grid(lambda place, seed: place, {"place": range(6)}, x=lambda place, seed: place),
        Row({"place": 9, "seed": 0}, "", "failed"),
    ]
    found = only(claim, gone)
    assert (found.verdict, found.n, "1 failed" in found.says) == (OPEN, 6, True)
    with pytest.raises(ValueError, match="must be 1"):
        claims.correlated("", "x", "y", 0)


def test_near() -> None:
    rows = grid(lambda classes, seed: -1 / (classes - 1) + 1e-5 * seed, {"classes": (3, 10)})
    target = lambda at: -1 / (at["classes"] - 1)  # noqa: E731
    found = only(claims.near("", "y", target, 1e-4), rows)
    assert (found.verdict, found.n, found.half) == (HOLDS, 10, None)
    assert found.value == pytest.approx(4e-5, rel=1e-9)
    worse = [
        *rows,
        Row({"classes": 3, "seed": 9}, "", "done", {"y": 0.0}),
        Row({"classes": 3, "seed": 10}, "", "failed"),
    ]
    assert only(claims.near("", "y", target, 1e-4), worse).verdict == FAILS, "one counterexample is enough"
    assert only(claims.near("", "y", target, 1e-4), [*rows, worse[-1]]).verdict == OPEN
    assert only(claims.near("", "y", -0.5, 1e-4, {"classes": 3}), rows).verdict == HOLDS
    assert only(claims.near("", "y", -0.5, 1e-4, {"classes": 4}), rows).says == "no cells where classes=4"
    cut = Row({"classes": 3, "seed": 9}, "run-1", "done", {"y": 0.0, "censored": 1.0})
    assert only(claims.near("", "y", 0.0, 1.0), [cut]).verdict == OPEN


@pytest.mark.parametrize(
    ("values", "collapse", "stay"),
    [
        ((0.01, 0.02, 0.0, 0.01, 0.01), HOLDS, FAILS),
        ((2.6, 2.5, 2.7, 2.6, 2.6), FAILS, HOLDS),
        ((0.01, 2.5, 0.0, 2.6, 0.01), OPEN, OPEN),  # by the seed
    ],
)
def test_collapses_and_stays(values: Sequence[float], collapse: str, stay: str) -> None:
    rows = grid(lambda loss, seed: values[seed], {"loss": ("ressl", "sce")})
    found = only(claims.collapses("", "y", 0.2, {"loss": "ressl"}), rows)
    assert (found.verdict, found.value) == (collapse, pytest.approx(np.mean(values)))
    assert f"{sum(v < 0.2 for v in values)} of 5 seeds below" in found.says
    assert only(claims.stays("", "y", 0.2, {"loss": "ressl"}), rows).verdict == stay


def test_every_cell_of_a_seed_must_collapse() -> None:
    rows = grid(lambda temperature, seed: 0.01 * (1 + seed) + 5 * (temperature == 0.8), {"temperature": TAUS})
    assert only(claims.collapses("", "y", 0.2), rows).verdict == FAILS
    assert only(claims.collapses("", "y", 0.2, {"temperature": TAUS[:4]}), rows).verdict == HOLDS
    assert only(claims.stays("", "y", 0.2), rows).verdict == FAILS


@pytest.mark.parametrize(("gain", "verdict"), [(0.1, HOLDS), (2.0, FAILS), (0.5, OPEN), (-3.0, HOLDS)])
def test_nothing_is_gained(gain: float, verdict: str) -> None:
    """Below the margin by the interval; a loss is no gain either."""
    rows = by_loss(0.0, gain)
    assert only(claims.not_above("", "y", HARD, ORDINARY, 0.5), rows).verdict == verdict
    with pytest.raises(ValueError, match="margin=0: must be above 0"):
        claims.not_above("", "y", HARD, ORDINARY, 0.0)


def test_a_side_is_averaged_over_its_values_on_the_axis_that_sets_them_apart() -> None:
    """Sharper targets, several, against one; or several against several others."""
    rows = grid(lambda temperature, seed: temperature + 0.01 * JITTER[seed], {"temperature": TAUS})
    sharp = claims.higher("", "y", {"temperature": TAUS[:-1]}, {"temperature": TAUS[-1]})
    assert only(sharp, rows).value == pytest.approx(sum(TAUS[:-1]) / 4 - TAUS[-1])
    halves = claims.higher("", "y", {"temperature": TAUS[:2]}, {"temperature": TAUS[2:]})
    assert only(halves, rows).value == pytest.approx(sum(TAUS[:2]) / 2 - sum(TAUS[2:]) / 3)
    assert only(halves, rows).verdict == FAILS


def test_the_same_everywhere() -> None:
    """Every part must hold; one that does not decides; a single part says nothing."""
    signs = {"cifar10": 1.0, "svhn": 1.0, "stl10": 1.0}

    def found(**other: float) -> Finding:
        slopes = {**signs, **other}
        rows = grid(
            lambda data, temperature, seed: slopes[data] * temperature * (1 + 0.01 * JITTER[seed]),
            {"data": tuple(slopes), "temperature": TAUS},
        )
        return only(claims.everywhere("", claims.rises("", "y", "temperature", within=("data",))), rows)

    assert (found().verdict, found().n) == (HOLDS, 3)
    assert found(svhn=-1.0).verdict == FAILS
    assert "does not hold on data=svhn" in found(svhn=-1.0).says
    assert found(svhn=0.0).verdict == OPEN
    one = grid(lambda data, temperature, seed: temperature, {"data": ("svhn",), "temperature": TAUS})
    single = only(claims.everywhere("", claims.rises("", "y", "temperature", within=("data",))), one)
    assert (single.verdict, single.n) == (OPEN, 0)


def test_every_claim_states_its_statistic() -> None:
    near = claims.near("a", "knn", 1.0, 0.1)
    made = [
        claims.higher("a", "knn", HARD, ORDINARY),
        claims.lower("a", "knn", HARD, ORDINARY),
        claims.not_below("a", "knn", HARD, ORDINARY, 0.5),
        claims.not_above("a", "knn", HARD, ORDINARY, 0.5),
        claims.varies_less("a", "knn", "tau", HARD, ORDINARY),
        claims.rises("a", "knn", "tau"),
        claims.falls("a", "knn", "tau"),
        claims.rises_then_falls("a", "knn", "tau"),
        claims.convex("a", "knn", "tau"),
        claims.more_convex("a", "knn", "tau", HARD, ORDINARY),
        claims.correlated("a", "knn", "tau", 1),
        near,
        claims.collapses("a", "knn", 1.0),
        claims.stays("a", "knn", 1.0),
    ]
    assert len({claim.statistic for claim in made}) == len(made)
    assert all("knn" in claim.statistic for claim in made)
    assert [claim.statistic for claim in made if "95 %" not in claim.statistic] == [near.statistic]
    for claim in made:
        assert [f.verdict for f in claim.test([])] == [OPEN]


def test_what_is_wrong_is_named() -> None:
    rows = by_loss(0.0, 0.5)
    with pytest.raises(ValueError, match=r"axis 'losss': must be an axis .*; did you mean 'loss'\? It has loss$"):
        claims.higher("", "y", {"losss": "hard"}, ORDINARY).test(rows)
    with pytest.raises(ValueError, match="speaks of the axis 'data'"):
        claims.higher("", "y", HARD, ORDINARY, within=("data",)).test(rows)
    with pytest.raises(ValueError, match="must have an axis on which their values differ"):
        claims.higher("", "y", {"loss": ("hard", "ordinary")}, {})
    twice = grid(lambda loss, temperature, seed: 1.0, {**LOSSES, "temperature": TAUS})
    with pytest.raises(ValueError, match="name the axis that tells them apart"):
        claims.higher("", "y", {"loss": "hard", "temperature": 0.1}, ORDINARY).test(twice)
    assert only(claims.higher("", "y", HARD, {"loss": "ordinary"}), twice).value == 0.0
