"""A run's folder as a record, whole or in ruins."""

from __future__ import annotations

from pathlib import Path

import pytest

from kontrast.report.run.collect import Other, collect
from tests.report import made


def test_what_a_finished_run_says(tmp_path: Path) -> None:
    run = collect(made.folder(tmp_path / "runs" / "by-hand-1"))
    assert (run.name, run.status, run.shown_path) == ("by-hand", "done", "runs/by-hand-1")
    assert [record["name"] for record in run.results] == ["knn20"]
    assert len(run.steps) == 4
    assert len(run.monitors) == 1
    assert [run.class_name(i) for i in (0, 2, 3, -1)] == ["cat", "owl", "3", "-1"]
    line = run.measure("features", "uniformity")
    assert line is not None
    assert line["value"] == -2.1
    assert run.measure("features", "no such") is None
    assert run.findings is None
    assert not run.troubles


def test_other_runs_of_the_same_data_are_seen(tmp_path: Path) -> None:
    run = made.folder(tmp_path / "one")
    made.folder(tmp_path / "two")
    strange = made.folder(tmp_path / "three")
    (strange / "recipe.yaml").write_text("name: x\ndata:\n  name: other\n")
    damaged = made.folder(tmp_path / "four")
    (damaged / "analysis.json").write_text("{")
    assert collect(run).others == [Other("two", -2.1, 0.6)]


def test_files_that_are_damaged_are_named(tmp_path: Path) -> None:
    run = made.folder(tmp_path / "run")
    for name in ("result.json", "metrics.jsonl", "analysis.npz", "run.json", "doctor.json"):
        (run / name).write_text("{\n")
    (run / "recipe.yaml").write_text("a: [")
    found = collect(run)
    assert [trouble.partition(" ")[0] for trouble in sorted(found.troubles)] == [
        "analysis.npz",
        "doctor.json",
        "metrics.jsonl",
        "recipe.yaml",
        "result.json",
        "run.json",
    ]
    assert (found.results, found.steps, found.arrays, found.status) == ([], [], {}, "unknown")


def test_a_line_that_a_kill_cut_short_is_left_out(tmp_path: Path) -> None:
    run = made.folder(tmp_path / "run")
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"step": 50, "lo')
    assert collect(run).steps[-1]["step"] == 40
    assert not collect(run).troubles


def test_what_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"is not a run's folder: it has no recipe.yaml"):
        collect(tmp_path)
