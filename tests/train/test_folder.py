"""The run folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from kontrast.recipe import Recipe
from kontrast.train.folder import RunFolder, commit, machine
from kontrast.train.resolving import resolve
from tests.train.small import recipe


def test_begins_once_and_notes_add_up(tmp_path: Path) -> None:
    made = resolve(recipe(out=tmp_path))
    folder = RunFolder.of(made)
    assert folder.path == tmp_path / made.folder
    assert folder.status is None
    folder.begin(made)
    assert Recipe.read(folder.recipe_file) == made
    written = folder.recipe_file.stat().st_mtime_ns
    folder.begin(made)
    assert folder.recipe_file.stat().st_mtime_ns == written
    folder.note("training", step=3, seed=0)
    folder.note("done")
    assert folder.status == "done"
    assert folder.read()["step"] == 3
    assert json.loads((folder.path / "run.json").read_text())["seed"] == 0


def test_alone(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    with folder.alone(), pytest.raises(ValueError, match="another process is working"), folder.alone():
        pass
    with folder.alone():
        pass


def test_errors(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ValueError, match="cannot be made"):
        RunFolder(tmp_path / "file" / "run").begin(recipe())
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(ValueError, match=r"run\.json is damaged"):
        RunFolder(tmp_path).read()


def test_machine_is_plain() -> None:
    found = machine(torch.device("cpu"))
    assert json.loads(json.dumps(found)) == found
    assert found["versions"]["torch"] == torch.__version__


def test_the_commit_is_the_checkouts(monkeypatch: pytest.MonkeyPatch) -> None:
    found = commit()
    assert found is None or len(found.rstrip("+")) >= 7
    monkeypatch.setenv("PATH", "")  # no git
    assert commit() is None
