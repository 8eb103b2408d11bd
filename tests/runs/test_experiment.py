"""The folder of an experiment."""

from __future__ import annotations

from pathlib import Path

import pytest

from kontrast.runs import ExperimentFolder, Run, kind_of_folder

SUMMARY = {"experiment": "demo", "places": [{"at": {"loss": "tcl"}, "runs": [{"folder": "tcl-1", "status": "done"}]}]}


def test_written_and_read(tmp_path: Path) -> None:
    folder = ExperimentFolder(tmp_path / "demo-cpu")
    with pytest.raises(ValueError, match=r"has no result\.json; expected an experiment's folder"):
        _ = folder.summary
    folder.path.mkdir()
    folder.write_summary(SUMMARY)
    folder.write_table("md", "| a |")
    folder.write_chart("loss", {"mark": "line"}, "<svg/>")
    assert folder.summary.places[0].runs[0].folder == "tcl-1"
    assert folder.charts() == {"loss": {"mark": "line"}}
    assert kind_of_folder(folder.path) == "experiment"
    (folder.path / "result.json").write_text('{"experiment": "demo", "places": 3}')
    with pytest.raises(ValueError, match=r"result\.json is damaged \(places=3: must be a list\); make it again"):
        _ = folder.summary
    (folder.path / "loss.vl.json").write_text("{")
    with pytest.raises(ValueError, match=r"loss\.vl\.json is damaged"):
        folder.charts()


def test_runs_beside_it_by_name_alone(tmp_path: Path) -> None:
    folder = ExperimentFolder(tmp_path / "demo-cpu")
    (tmp_path / "tcl-1").mkdir()
    assert folder.run("tcl-1") == Run(tmp_path / "tcl-1")
    assert folder.run("gone") is None
    assert folder.run("../demo-cpu/../tcl-1") is None


def test_kinds_of_folders(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no folder"):
        kind_of_folder(tmp_path / "none")
    with pytest.raises(ValueError, match="neither a run's folder"):
        kind_of_folder(tmp_path)
    (tmp_path / "task.json").write_text("{}")
    assert kind_of_folder(tmp_path) == "task"
    (tmp_path / "recipe.yaml").write_text("")
    assert kind_of_folder(tmp_path) == "run"
