"""The run folder."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

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


def test_a_forked_process_does_not_keep_it_locked(tmp_path: Path) -> None:
    """As those that load data, which live on for a while when the run is killed."""
    folder = RunFolder(tmp_path)
    (born, tell), (wait, leave) = os.pipe(), os.pipe()
    lock = folder.alone()
    lock.__enter__()
    pid = os.fork()
    if pid == 0:
        os.write(tell, b".")
        os.close(leave)
        os.read(wait, 1)
        os._exit(0)
    assert os.read(born, 1) == b"."
    with pytest.raises(ValueError, match="another process is working"), folder.alone():
        pass  # ours still holds
    lock.__exit__(None, None, None)
    with folder.alone():
        pass
    os.close(leave)
    assert os.waitpid(pid, 0) == (pid, 0)
    for end in (born, tell, wait):
        os.close(end)


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


def test_a_folder_that_may_not_be_written_to_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.open

    def denied(self: Path, *arguments: Any, **options: Any) -> Any:
        if self.name == ".lock":
            raise PermissionError(13, "Permission denied", str(self))
        return real(self, *arguments, **options)

    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(ValueError, match=rf"the run folder {tmp_path} cannot be written to: Permission denied; see to"):
        _entered(RunFolder(tmp_path))


def _entered(folder: RunFolder) -> None:
    with folder.alone():
        pass


@pytest.mark.parametrize("content", ["{", "null", "[]"])
def test_a_damaged_run_json_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(ValueError, match=r"run\.json is damaged .*; remove it, and the run goes on"):
        RunFolder(tmp_path).read()
