"""A sweep: only what is missing is done, and what was done is written."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from kontrast import experiments
from kontrast.experiments import outcome
from kontrast.experiments.cell import Cell
from kontrast.experiments.engines import Told
from kontrast.experiments.experiment import Chart
from kontrast.experiments.sweep import Sweep
from tests.experiments.test_plan import experiment

SMALL = experiment(
    measures=(outcome.accuracy("knn", "kNN", "knn20"),),
    charts=[Chart("knn", "kNN (%)", "line", "temperature", "knn", log_x=True)],
)


class Here:
    """Runs cells in this process, and remembers which it had to."""

    def __init__(self) -> None:
        self.ran: list[Cell] = []

    def run(self, cells: Sequence[Cell], told: Callable[[Told], None]) -> None:
        for cell in cells:
            if not cell.done:
                self.ran.append(cell)
                cell.perform()
            told(Told("done", cell))


def test_runs_what_is_missing_and_writes(tmp_path: Path) -> None:
    one = Sweep.of(SMALL, seeds=1, out=tmp_path)
    first, second, third = Here(), Here(), Here()
    one.run(first)
    assert len(first.ran) == 3
    assert one.missing == []
    two = Sweep.of(SMALL, seeds=2, out=tmp_path)
    assert len(two.missing) == 3
    assert two.folder == one.folder  # more seeds make the same table better
    summary = two.run(second)
    assert [cell.at["seed"] for cell in second.ran] == [1, 1, 1]
    two.run(third)
    assert third.ran == []
    assert json.loads((two.folder / "result.json").read_text()) == json.loads(json.dumps(summary))
    with (two.folder / "table.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert [line["n"] for line in lines] == ["2", "2", "2"]
    values = [row.values["knn"] for row in two.rows() if row.at["temperature"] == 0.5]
    mean = next(float(line["mean"]) for line in lines if line["temperature"] == "0.5")
    assert mean == pytest.approx(sum(v for v in values if v is not None) / 2)
    for name in ("table.md", "table.tex", "knn.vl.json", "knn.svg"):
        assert (two.folder / name).stat().st_size > 100, name
    assert summary["made"]["command"] == "kontrast reproduce small --preset cpu --seeds 2"


def test_settings_have_a_folder_of_their_own(tmp_path: Path) -> None:
    plain, other = (Sweep.of(SMALL, "cpu", s, out=tmp_path).folder for s in ([], ["optim.lr=0.2"]))
    assert plain == tmp_path / "small-cpu"
    assert other.name.startswith("small-cpu-")


def test_what_was_damaged_is_a_failed_row(tmp_path: Path) -> None:
    made = Sweep.of(SMALL, seeds=1, out=tmp_path)
    made.run(Here())
    (made.cells[0].path / "result.json").unlink()
    (made.cells[1].path / "run.json").write_text('{"status": "do')
    assert [row.status for row in made.rows()] == ["failed", "failed", "done"]
    summary = made.write()
    assert summary["status"] == {"failed": 2, "done": 1}
    assert "result.json of" in (made.rows()[0].error or "")
    assert "run.json is damaged" in (made.rows()[1].error or "")


def test_data_that_changed_are_not_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "x.npz"
    draw = np.random.default_rng(0)

    def save() -> None:
        images = draw.integers(0, 255, (60, 8, 8), dtype=np.uint8)
        labels = np.arange(60) % 3
        np.savez(file, x_train=images[:40], y_train=labels[:40], x_test=images[40:], y_test=labels[40:])

    save()
    settings = [f"data={file}", "temperature=0.5", "data.limit=null", "data.test_limit=null"]
    made = Sweep.of(SMALL, "cpu", settings, seeds=1, out=tmp_path / "runs")
    made.run(Here())
    assert made.missing == []
    save()
    assert len(made.missing) == 1
    (row,) = made.rows()
    assert row.status == "failed"
    assert "has changed since" in (row.error or "")
    with pytest.raises(ValueError, match="has changed since"):
        made.cells[0].perform()


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    made = Sweep.of(SMALL, seeds=1, out=tmp_path / "file")
    with pytest.raises(ValueError, match=r"cannot be made: .*choose another --out"):
        made.run(Here())


@pytest.mark.slow
@pytest.mark.parametrize("name", experiments.names())
def test_every_experiment_in_small(name: str, tmp_path: Path) -> None:
    made = Sweep.of(experiments.find(name), "smoke", seeds=1, out=tmp_path)
    summary = made.run(Here())
    assert summary["status"] == {"done": len(made.cells)}
    assert all(claim["findings"] for claim in summary["claims"])
    for chart in made.experiment.charts:
        assert (made.folder / f"{chart.name}.svg").stat().st_size > 1000
