"""Wang & Liu's experiments."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kontrast import experiments, recipes
from kontrast.experiments.papers import wang_liu
from kontrast.experiments.plan import plan
from kontrast.experiments.sweep import Sweep
from kontrast.recipe import Recipe


def test_tables_share_their_runs_with_the_figures() -> None:
    """Uniformity and separation are read off the very runs of Tables 1 and 2; the hard loss has fewer temperatures."""
    tables = {cell.path for n in ("1", "2") for cell in plan(experiments.find(f"wl-table-{n}"), "cpu")}
    for name in ("wl-uniformity-tolerance", "wl-separation"):
        assert {cell.path for cell in plan(experiments.find(name), "cpu")} == tables
    assert len(tables) == (6 + 3) * 3
    losses = {cell.path for cell in plan(experiments.find("wl-losses"), "cpu")}
    assert len(losses - tables) == 2 * 3  # simple and hard-simple


def test_the_papers_values_stand_at_their_places() -> None:
    first, second = (experiments.find(f"wl-table-{n}") for n in "12")
    assert first.published({"data": "cifar10", "temperature": 0.2}, "linear") == 83.78
    assert first.published({"data": "svhn", "temperature": 0.8}, "linear") == 93.22  # printed 93,22
    assert second.published({"data": "imagenet100", "temperature": 0.4}, "linear") == 75.04
    assert first.published({"data": "cifar10-50k", "temperature": 0.2}, "linear") == 83.78
    assert first.published({"data": "fashion-mini", "temperature": 0.2}, "linear") is None
    assert first.published({"data": "cifar10", "temperature": 0.2}, "knn") is None
    main = experiments.find("wl-uniformity-tolerance").published
    assert main({"data": "svhn", "loss": "hard", "temperature": 0.3}, "uniformity") == 3.91
    assert main({"data": "svhn", "loss": "hard", "temperature": 0.2}, "uniformity") is None


def test_the_paper_preset_is_the_papers_recipe() -> None:
    cell, *others = plan(experiments.find("wl-table-2"), "paper", ["data=cifar100", "temperature=0.7"])
    assert [other.at["seed"] for other in others] == [1, 2]
    assert isinstance(cell.does, Recipe)
    assert cell.does.method.name == "instance"
    assert cell.does.method.options["loss"] == "hard"
    assert cell.does.method.options["temperature"] == 0.7
    assert cell.does.train.epochs == 200


def test_the_small_preset_has_the_papers_method() -> None:
    """A memory bank, one view, the paper's views, head and probe; the hard loss keeps the paper's share."""
    cells = plan(experiments.find("wl-separation"), "cpu", seeds=1)
    assert len(cells) == 9
    for cell in cells:
        made = cell.does
        assert isinstance(made, Recipe)
        full = recipes.find("instance-cifar10")
        assert (made.method.name, made.head.name, len(made.augment.views)) == ("instance", "wang-liu", 1)
        assert [view.name for view in made.augment.views] == [view.name for view in full.augment.views]
        assert (made.train.epochs, made.train.batch_size) == (full.train.epochs, full.train.batch_size)
        assert "wang-liu" in {protocol.name for protocol in made.evaluate.protocols}
        if cell.at["loss"] == "hard":
            assert made.method.options["hard_negatives"] / 10_000 == pytest.approx(4095 / 50_000, abs=1e-4)


def test_other_temperatures_of_the_hard_loss_are_the_users_own() -> None:
    cells = plan(experiments.find("wl-uniformity-tolerance"), "cpu", ["temperature=[0.07,0.3]"], seeds=1)
    assert [(cell.at["loss"], cell.at["temperature"]) for cell in cells] == [
        ("ordinary", 0.07),
        ("ordinary", 0.3),
        ("hard", 0.07),
        ("hard", 0.3),
    ]


def test_separation_is_the_banks_where_the_run_has_it(tmp_path: Path) -> None:
    """Views against the bank if they are recorded, else the test embeddings; histograms of them are kept."""
    draw = np.random.default_rng(0)
    arrays = {"positive": draw.random(300), "nearest": draw.random((300, 10))}
    bank = {"bank_positive": draw.random(9000), "bank_nearest": draw.random((9000, 10))}
    np.savez(tmp_path / "analysis.npz", **arrays)
    assert wang_liu.positive_similarity(tmp_path) == pytest.approx(arrays["positive"].mean())
    np.savez(tmp_path / "analysis.npz", **arrays, **bank)
    assert wang_liu.positive_similarity(tmp_path) == pytest.approx(bank["bank_positive"].mean())
    assert wang_liu.separation_gap(tmp_path) == pytest.approx(
        (bank["bank_positive"] - bank["bank_nearest"][:, 0]).mean()
    )
    kept = experiments.find("wl-separation").keeps(tmp_path)
    assert kept["separation"].shape == (11, 200)
    assert kept["separation"].sum(1).tolist() == [9000] * 11
    assert kept["separation_bank"].tolist() == [1]
    assert sum(values.nbytes for values in kept.values()) <= 50_000


def test_smoke(tmp_path: Path) -> None:
    """A run a loss, through to table, claims and the figure's records."""
    made = experiments.find("wl-separation")
    sweep = Sweep.of(made, "smoke", ["temperature=[0.1,1.0]"], seeds=1, out=tmp_path)
    for cell in sweep.cells:
        cell.perform()
    summary = sweep.write()
    assert summary["status"] == {"done": 4}
    assert {finding["verdict"] for claim in summary["claims"] for finding in claim["findings"]} == {
        "not resolved at this scale"  # one seed
    }
    assert {claim["kind"] for claim in summary["claims"]} == {"geometry"}
    records = wang_liu.separation_records(sweep.rows())
    shapes = {(r["panel"], r["loss"], r["neighbour"]) for r in records}
    assert len(shapes) == 4 * 11
    row = sweep.rows()[0]
    assert row.path is not None
    with np.load(row.path / "analysis.npz") as arrays:
        middle = float(np.quantile(arrays["bank_positive"], 0.5))
    assert records[0]["middle"] == pytest.approx(middle, abs=0.02)  # a bin of the drawing
    assert (sweep.folder / "separation.svg").stat().st_size > 1000
