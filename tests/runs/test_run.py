"""The run folder."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from kontrast.recipe import Recipe
from kontrast.runs import Run, commit
from kontrast.train.resolving import resolve
from tests.train.small import recipe


def test_begins_once_and_notes_add_up(tmp_path: Path) -> None:
    made = resolve(recipe(out=tmp_path))
    folder = Run.of(made)
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
    assert folder.state.step == 3
    assert json.loads((folder.path / "run.json").read_text())["seed"] == 0


def test_alone(tmp_path: Path) -> None:
    folder = Run(tmp_path)
    with folder.lock(), pytest.raises(ValueError, match="another process is working"), folder.lock():
        pass
    with folder.lock():
        pass


def test_a_forked_process_does_not_keep_it_locked(tmp_path: Path) -> None:
    """As those that load data, which live on for a while when the run is killed."""
    folder = Run(tmp_path)
    (born, tell), (wait, leave) = os.pipe(), os.pipe()
    lock = folder.lock()
    lock.__enter__()
    pid = os.fork()
    if pid == 0:
        os.write(tell, b".")
        os.close(leave)
        os.read(wait, 1)
        os._exit(0)
    assert os.read(born, 1) == b"."
    with pytest.raises(ValueError, match="another process is working"), folder.lock():
        pass  # ours still holds
    lock.__exit__(None, None, None)
    with folder.lock():
        pass
    os.close(leave)
    assert os.waitpid(pid, 0) == (pid, 0)
    for end in (born, tell, wait):
        os.close(end)


def test_errors(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ValueError, match="cannot be created"):
        Run(tmp_path / "file" / "run").begin(recipe())
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(ValueError, match=r"run\.json is damaged"):
        _ = Run(tmp_path).state


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
    with pytest.raises(
        ValueError, match=rf"the run folder {tmp_path} cannot be written to: Permission denied; check its"
    ):
        _entered(Run(tmp_path))


def _entered(folder: Run) -> None:
    with folder.lock():
        pass


@pytest.mark.parametrize("content", ["{", "null", "[]"])
def test_a_damaged_run_json_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(ValueError, match=r"run\.json is damaged .*; remove it, and the run resumes"):
        _ = Run(tmp_path).state


@pytest.mark.parametrize(
    ("key", "value"), [("status", 5), ("seconds", "x"), ("machine", "x"), ("files", []), ("hash", 1), ("command", {})]
)
def test_a_run_json_of_wrong_types_is_named(tmp_path: Path, key: str, value: object) -> None:
    (tmp_path / "run.json").write_text(json.dumps({key: value}))
    with pytest.raises(ValueError, match=rf"run\.json is damaged \({key}=.*; remove it, and the run resumes"):
        _ = Run(tmp_path).state
    (tmp_path / "run.json").write_text(json.dumps({key: None, "step": 3}))
    assert Run(tmp_path).state.step == 3


@pytest.mark.parametrize("name", ["metrics.jsonl", ".lock", "checkpoints", "anything"])
def test_nothing_is_written_through_links(tmp_path: Path, name: str) -> None:
    """Whoever hands a run folder over must not choose which other files are written to."""
    outside, folder = tmp_path / "outside", tmp_path / "run"
    outside.write_text("precious")
    folder.mkdir()
    (folder / name).symlink_to(outside)
    with pytest.raises(ValueError, match=rf"{re.escape(name)} is a link, and a run writes only inside its folder"):
        _entered(Run(folder))
    assert outside.read_text() == "precious"


def test_a_pipe_is_no_file_of_a_run(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".lock")
    with pytest.raises(ValueError, match="is not a file"):
        _entered(Run(tmp_path))


def test_a_recipe_that_is_not_the_runs_is_written_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made, other = resolve(recipe(out=tmp_path)), resolve(recipe(out=tmp_path).override({"seed": 1}))
    folder = Run(tmp_path)
    folder.begin(made)
    folder.restore_recipe(made)
    assert capsys.readouterr().err == ""
    for content in (other.to_yaml(), "", "[" * 50_000, "seed: [1"):
        folder.recipe_file.write_text(content)
        folder.restore_recipe(made)
        assert Recipe.read(folder.recipe_file).hash == made.hash
        assert "recipe.yaml is not this run's" in capsys.readouterr().err


def test_of_another_recipe(tmp_path: Path) -> None:
    made = resolve(recipe(out=tmp_path))
    folder = Run(tmp_path)
    folder.check(made)
    folder.note("failed", error="before it began")
    folder.check(made)
    folder.note("done", hash=made.hash)
    folder.check(made)
    for hash_ in ("0" * len(made.hash), None):
        folder.note("done", hash=hash_)
        with pytest.raises(ValueError, match="holds the run of another recipe"):
            folder.check(made)


def test_the_version_of_the_format(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.note("training", step=1)
    assert run.state.format == 1
    (tmp_path / "run.json").write_text('{"status": "done", "step": 7}')  # as kontrast 0.1 wrote it
    assert (run.state.format, run.state.step) == (0, 7)
    (tmp_path / "run.json").write_text('{"format": 99}')
    with pytest.raises(ValueError, match=r"format=99: must be at most 1: the run was written by a newer version"):
        _ = run.state


def test_strict_names_file_and_field_and_tolerant_keeps_the_rest(tmp_path: Path) -> None:
    made = resolve(recipe(out=tmp_path))
    run = Run.of(made)
    run.begin(made)
    run.note("training", step=3)
    results = [{"name": "knn20", "protocol": "k = 20", "value": "high"}, {"protocol": "nameless"}]
    run.write_result({"results": results, "weights": "last"})
    with pytest.raises(ValueError, match=r"result\.json is damaged \(results\.0\.value='high': must be a number\)"):
        run.read()
    contents = run.read(strict=False)
    assert contents.recipe == made
    assert contents.state.step == 3
    assert contents.result.weights == "last"
    assert [(r.name, r.value) for r in contents.result.results] == [("knn20", None)]
    assert contents.messages == [
        "result.json is damaged: results.0.value='high': must be a number",
        "result.json is damaged: results.1.name: is missing",
    ]
    run.recipe_file.write_text("seed: [1")
    assert run.read(strict=False).recipe is None


def test_a_folder_that_is_no_runs(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"is not a run's folder: it has no recipe\.yaml"):
        Run(tmp_path).read()
    with pytest.raises(ValueError, match="there is no folder"):
        Run(tmp_path / "gone").read(strict=False)
