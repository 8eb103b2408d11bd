"""Reading an experiment's folder and the runs beside it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kontrast.report.experiment.collect import collect
from tests.report.experiment.made_up import summary, write_experiment, write_points


def test_runs_beside_it_are_seen(tmp_path: Path) -> None:
    folder = write_experiment(tmp_path)
    write_points(tmp_path / "toy-0")
    write_points(tmp_path / "toy-1")
    (tmp_path / "toy-1" / "report.html").touch()
    record = collect(folder)
    assert [run.has_report for run in record.runs] == [False, True, False]
    assert [(one.name, one.seed) for one in record.paths] == [("loss = tcl", 0)]  # the first seed; what failed has none
    assert (record.count("done"), record.count("failed")) == (2, 1)
    assert list(record.charts) == ["squares"]


def test_a_folder_elsewhere_is_not_looked_into(tmp_path: Path) -> None:
    """The name comes from a file: it must not lead out of the folder of runs."""
    made = summary()
    made["places"][0]["runs"][0]["folder"] = "../secret"
    folder = write_experiment(tmp_path / "runs", made)
    write_points(tmp_path / "secret")
    (tmp_path / "secret" / "report.html").touch()
    record = collect(folder)
    assert not record.paths
    assert not record.runs[0].has_report


def test_what_is_no_experiment_says_so(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"has no result.json; expected an experiment's folder"):
        collect(tmp_path)
    file = tmp_path / "result.json"
    file.write_text("{")
    with pytest.raises(ValueError, match="is damaged"):
        collect(tmp_path)
    file.write_text(json.dumps({"recipe": "x"}))
    with pytest.raises(ValueError, match="experiment: is missing"):
        collect(tmp_path)
