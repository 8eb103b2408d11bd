"""Reading run folders: whole, unfinished, damaged, and what is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from kontrast.report.comparison.collect import collect
from tests.report.comparison.made_up import write_run


def test_labels_tell_runs_apart(tmp_path: Path) -> None:
    made = [
        write_run(tmp_path / "1", seed=0, method={"temperature": 0.1}),
        write_run(tmp_path / "2", seed=1, method={"temperature": 0.1}),
        write_run(tmp_path / "3", seed=0, method={"temperature": 0.5}),
    ]
    runs = collect(made)
    assert [run.label for run in runs] == [
        "temperature 0.1, seed 0",
        "temperature 0.1, seed 1",
        "temperature 0.5, seed 0",
    ]
    assert [run.group for run in runs] == ["temperature 0.1", "temperature 0.1", "temperature 0.5"]


def test_copies_of_one_run_are_told_apart_by_their_paths(tmp_path: Path) -> None:
    runs = collect([write_run(tmp_path / "here" / "x"), write_run(tmp_path / "there" / "x")])
    assert len({run.label for run in runs}) == 2


def test_a_run_that_did_not_end_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    cut = write_run(tmp_path / "cut", name="cut", status="failed", why="RuntimeError: no")
    with (cut / "metrics.jsonl").open("a") as file:
        file.write('{"step": 21, "lo')
    run, _ = collect([cut, write_run(tmp_path / "whole")])
    assert run.status == "failed"
    assert run.results == []
    assert run.metrics[-1]["step"] == 20
    assert run.arrays == {}


def test_twice_the_same_folder_is_one_run(tmp_path: Path) -> None:
    one = write_run(tmp_path / "one")
    with pytest.raises(ValueError, match="needs at least 2 runs"):
        collect([one, tmp_path / "." / "one"])


def test_what_is_no_run_says_so(tmp_path: Path) -> None:
    one = write_run(tmp_path / "one")
    task = tmp_path / "toy-1"
    task.mkdir()
    (task / "task.json").write_text("{}")
    with pytest.raises(ValueError, match=r"toy-1 is a task's folder.*give folders that `kontrast train` wrote"):
        collect([one, task])
    broken = write_run(tmp_path / "broken")
    (broken / "result.json").write_text("{")
    with pytest.raises(ValueError, match=r"result.json is damaged"):
        collect([one, broken])
