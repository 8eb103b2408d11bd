"""Local separation: histograms of a run, from the memory bank where there is one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kontrast.experiments import charts
from kontrast.experiments.experiment import Chart, Row
from kontrast.experiments.ledger import Packed
from kontrast.experiments.papers import wang_liu


def write(folder: Path, **arrays: np.ndarray) -> Path:
    np.savez(folder / "analysis.npz", **arrays)  # type: ignore[arg-type]
    return folder


def test_the_bank_goes_before_views_of_test_rows(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    views = {"positive": np.full(50, 0.2, np.float32), "nearest": np.full((50, 10), 0.9, np.float32)}
    write(tmp_path, **views)
    assert wang_liu.separation_gap(tmp_path) == pytest.approx(-0.7)
    assert wang_liu.keep_separation(tmp_path)["separation_bank"].tolist() == [0]
    near = np.sort(draw.uniform(-0.5, 0.5, (80, 10)).astype(np.float32), axis=1)[:, ::-1]
    bank = {"bank_positive": draw.uniform(0.5, 1.0000001, 80).astype(np.float32), "bank_nearest": near}
    write(tmp_path, **views, **bank)
    assert wang_liu.positive_similarity(tmp_path) == pytest.approx(bank["bank_positive"].mean())
    assert wang_liu.separation_gap(tmp_path) == pytest.approx((bank["bank_positive"] - near[:, 0]).mean(), rel=1e-5)
    kept = wang_liu.keep_separation(tmp_path)
    assert kept["separation_bank"].tolist() == [1]
    assert kept["separation"].shape == (11, 200)
    assert kept["separation"].sum(1).tolist() == [80] * 11, "every value is counted, also one above 1 by a rounding"
    middle = (wang_liu.EDGES[1:] + wang_liu.EDGES[:-1]) / 2
    means = (kept["separation"] * middle).sum(1) / 80
    assert means == pytest.approx([bank["bank_positive"].mean(), *near.mean(0)], abs=0.005)  # half a bin
    assert sum(len(Packed.of(x).data) for x in kept.values()) < 5_000


def test_a_run_without_either_has_nothing(tmp_path: Path) -> None:
    write(tmp_path, features=np.zeros((2, 2)))
    assert wang_liu.keep_separation(tmp_path) == {}
    assert wang_liu.separation_gap(tmp_path) is None
    assert wang_liu.positive_similarity(tmp_path) is None


def test_a_panel_a_temperature_with_eleven_violins(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert", reason="the docs extra is not installed")
    counts = np.random.default_rng(0).multinomial(500, np.ones(20) / 20, size=11).astype(np.uint16)
    whole = np.zeros((11, 200), np.uint16)
    whole[:, 100:120] = counts
    rows = [
        Row({"data": "one", "loss": loss, "temperature": t, "seed": s}, "", "done", arrays={"separation": whole})
        for loss in ("ordinary", "hard")
        for t in (0.1, 1.0)
        for s in (0, 1)
    ]
    found = wang_liu.separation_records(rows)
    assert {r["panel"] for r in found} == {"τ = 0.1", "τ = 1.0"}
    assert list(dict.fromkeys(r["neighbour"] for r in found)) == ["pos", *(f"n{k}" for k in range(1, 11))]
    assert {r["seed"] for r in found} == {0}
    one = [r for r in found if (r["panel"], r["loss"], r["neighbour"]) == ("τ = 0.1", "hard", "n3")]
    expected = whole[3].reshape(-1, 2).sum(1)[50:60]
    assert [r["share"] for r in one] == pytest.approx([0, *(expected / expected.max()), 0])
    chart = Chart("c", "t", "violin", "neighbour", "similarity", "loss", "panel", data=wang_liu.separation_records)
    drawn = charts.svg(charts.spec(chart, rows))
    assert drawn.count("mark-area") >= 2 * 2 * 11
    several = wang_liu.separation_records(
        [*rows, Row({**rows[0].at, "data": "two"}, "", "done", arrays={"separation": whole})]
    )
    assert "two, τ = 0.1" in {r["panel"] for r in several}
