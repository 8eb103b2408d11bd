"""A sweep: only what is missing is done, and what was done is written."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kontrast import experiments
from kontrast.experiments import outcome
from kontrast.experiments.cell import Cell
from kontrast.experiments.engines import Event
from kontrast.experiments.experiment import Chart
from kontrast.experiments.ledger import Entry, Ledger, Origin, check_import, entries_of, read_file
from kontrast.experiments.sweep import Sweep
from kontrast.recipe import Recipe
from tests.experiments.test_plan import experiment

SMALL = experiment(
    measures=(outcome.accuracy("knn", "kNN", "knn20"),),
    charts=[Chart("knn", "kNN (%)", "line", "temperature", "knn", log_x=True)],
)


class Here:
    """Runs cells in this process, and remembers which it had to."""

    def __init__(self) -> None:
        self.ran: list[Cell] = []

    def run(self, cells: Sequence[Cell], notify: Callable[[Event], None]) -> None:
        for cell in cells:
            if not cell.done:
                if isinstance(cell.does, Recipe):  # the others are baselines
                    self.ran.append(cell)
                cell.perform()
            notify(Event("done", cell))


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


def test_cells_without_a_folder_come_from_the_ledger(tmp_path: Path) -> None:
    made = Sweep.of(SMALL, seeds=1, out=tmp_path / "runs")
    made.run(Here())
    whole = made.write()
    ledger = Ledger(tmp_path / "ledger")
    ledger.merge(entries_of(made))
    third = ledger.entries(made.design)[-1]
    more = [third.model_copy(update={"seed": 7}), third.model_copy(update={"at": {**third.at, "temperature": 9.0}})]
    ledger.merge(more)
    # A folder that is done goes before the ledger; one that is not is read from there.
    shutil.rmtree(made.cells[0].path)
    values = dict(ledger.entries(made.design)[-1].values)
    changed = [e.model_copy(update={"values": {"knn": 12.5}}) for e in ledger.entries(made.design) if not e.baseline]
    ledger.merge(changed, replace=True)
    some = Sweep.of(SMALL, seeds=1, out=tmp_path / "runs", ledger=ledger)
    first, second, _ = some.rows()
    assert (first.status, first.values["knn"], first.path) == ("done", 12.5, None)
    assert second.values["knn"] != 12.5
    assert second.path == made.cells[1].path
    assert values["knn"] is not None
    summary = some.write()
    assert summary["ledger"] == {"cells": 1, "other_recipe": 0}
    assert summary["baselines"] == whole["baselines"]
    # Alone: every cell of the plan, and further seeds of its places unless a number of seeds was asked for.
    alone = Sweep.of(SMALL, out=tmp_path / "none", ledger=ledger)
    found = [(row.at["temperature"], row.at["seed"]) for row in alone.rows() if row.status == "done"]
    assert found == [(0.1, 0), (0.5, 0), (1.0, 0), (1.0, 7)]
    assert [row.status for row in alone.rows()].count("missing") == 3
    assert alone.write()["baselines"] == whole["baselines"]
    assert len(Sweep.of(SMALL, seeds=1, out=tmp_path / "none", ledger=ledger).rows()) == 3


def test_what_the_ledger_has_with_the_same_recipe_is_not_run_again(tmp_path: Path) -> None:
    """As on a new machine: no run folder, and a ledger."""
    made = Sweep.of(SMALL, seeds=1, out=tmp_path / "runs")
    made.run(Here())
    ledger = Ledger(tmp_path / "ledger")
    first, second, *rest = entries_of(made)
    other = second.origin.model_copy(update={"recipe": "00000000"})
    ledger.merge([first, second.model_copy(update={"origin": other}), *rest])
    new = Sweep.of(SMALL, seeds=1, out=tmp_path / "new", ledger=ledger)
    assert [cell.at["temperature"] for cell in new.missing] == [second.at["temperature"]]
    assert new.missing_baselines == []
    summary = new.run(Here())
    assert summary["status"] == {"done": 3}
    assert summary["ledger"] == {"cells": 2, "other_recipe": 0}
    assert [cell.path.exists() for cell in new.cells] == [cell.at == new.cells[1].at for cell in new.cells]
    assert new.missing == []


def test_what_a_sweep_leaves_can_be_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells with the errors over test rows that they have, and the baselines; read back from the file's lines."""
    made = Sweep.of(SMALL, seeds=1, out=tmp_path / "runs")
    made.run(Here())
    ledger = Ledger(tmp_path / "ledger")
    ledger.merge(entries_of(made))
    monkeypatch.setattr(experiments, "find", {"small": SMALL}.__getitem__)
    lines = [(entry, f"line {number}") for file in ledger.files() for entry, number in read_file(file)]
    assert {entry.baseline for entry, _ in lines} == {None, "raw pixels", "untrained encoder"}
    assert all(any(name.startswith("error:") for name in entry.values) for entry, _ in lines)
    check_import(lines)


def test_other_settings_than_this_versions_are_counted(tmp_path: Path) -> None:
    made, ledger = Sweep.of(SMALL, seeds=1, out=tmp_path), Ledger(tmp_path / "ledger")
    origin = {"run": "old-00000000", "recipe": "00000000", "version": "0.0.1"}
    cell = {"at": {"data": "digits", "temperature": 0.1}, "seed": 0, "values": {"knn": 70.0}}
    ledger.merge([Entry(format=1, experiment="small", preset="cpu", origin=Origin(**origin), **cell)])  # type: ignore[arg-type]
    summary = replace(made, ledger=ledger).write()
    assert summary["ledger"] == {"cells": 1, "other_recipe": 1}
    page = (made.folder / "table.md").read_text()
    assert "From the ledger: 1 runs; 1 of them ran with settings that this version's preset no longer has" in page


def test_baselines_stand_in_every_table(tmp_path: Path) -> None:
    made = Sweep.of(SMALL, seeds=2, out=tmp_path)
    summary = made.run(Here())
    names = [(record["name"], record["at"], record["status"]) for record in summary["baselines"]]
    assert names == [("raw pixels", {"data": "digits"}, "done"), ("untrained encoder", {"data": "digits"}, "done")]
    raw = summary["baselines"][0]["values"]["knn20"]
    for name in ("table.md", "table.tex"):
        text = (made.folder / name).read_text()
        assert "Without training: raw pixels" in text
        assert f"{raw:.2f}" in text
    for name in ("learning-loss", "learning-knn"):
        assert (made.folder / f"{name}.svg").stat().st_size > 100
    (made.baselines[0].cell.path / "result.json").unlink()
    broken = made.write()["baselines"][0]
    assert broken["status"] == "failed"
    assert "result.json" in broken["error"]
