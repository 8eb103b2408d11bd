"""Wang & Liu's experiments."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kontrast import experiments
from kontrast.experiments.papers import wang_liu
from kontrast.experiments.plan import plan
from kontrast.experiments.sweep import Sweep
from kontrast.recipe import Recipe


def test_tables_share_their_runs_with_the_figures() -> None:
    """Uniformity and separation are read off the very runs of Tables 1 and 2."""
    tables = {cell.path for n in ("1", "2") for cell in plan(experiments.find(f"wl-table-{n}"), "cpu")}
    for name in ("wl-uniformity-tolerance", "wl-separation"):
        assert {cell.path for cell in plan(experiments.find(name), "cpu")} == tables
    assert len(tables) == 2 * 12 * 3


def test_the_papers_values_stand_at_their_places() -> None:
    first, second = (experiments.find(f"wl-table-{n}") for n in "12")
    assert first.published({"data": "cifar10", "temperature": 0.2}, "linear") == 83.78
    assert first.published({"data": "svhn", "temperature": 0.8}, "linear") == 93.22  # printed 93,22
    assert second.published({"data": "imagenet100", "temperature": 0.4}, "linear") == 75.04
    assert first.published({"data": "fashion-mini", "temperature": 0.2}, "linear") == 83.78  # CIFAR-10 beside
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
    records = wang_liu.separation_records(sweep.rows())
    assert len(records) == 4 * 11
    row = sweep.rows()[0]
    assert row.path is not None
    with np.load(row.path / "analysis.npz") as arrays:
        middle = float(np.quantile(arrays["positive"], 0.5))
    assert records[0]["similarity"] == pytest.approx(middle)
    assert (sweep.folder / "separation.svg").stat().st_size > 1000
