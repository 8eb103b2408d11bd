"""A finished run's files that have changed are found and made anew, the same as they were."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kontrast.train import checkpoint, resolve, run_recipe
from kontrast.train.folder import LEFT, RunFolder
from kontrast.train.mending import damaged
from tests.train.small import comparable, recipe, same_runs

COMPARED = ("result.json", "model.json", "analysis.json", "encoder.safetensors", "metrics.jsonl")


def flip(path: Path) -> None:
    """One bit in the middle."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_files_that_changed_or_are_gone_are_made_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = run_recipe(recipe("simclr", tmp_path))
    folder = RunFolder(run.path)
    assert sorted(folder.read()["files"]) == sorted(LEFT)
    assert not damaged(folder)
    was = {name: (run.path / name).read_bytes() for name in COMPARED}
    for name in ("result.json", "encoder.safetensors", "analysis.npz", "metrics.jsonl", "recipe.yaml"):
        flip(run.path / name)
    folder.model.unlink()
    assert set(folder.changed()) == set(LEFT) - {"analysis.json"}
    capsys.readouterr()
    run_recipe(recipe("simclr", tmp_path))
    told = capsys.readouterr().err
    assert "result.json" in told
    assert "made anew from the last checkpoint" in told
    assert "lines are put back from the checkpoint" in told
    assert not folder.changed()
    assert {name: (run.path / name).read_bytes() for name in COMPARED} == was
    assert run.recipe.name == "simclr-digits", "it can be read again"
    assert capsys.readouterr().err == ""
    run_recipe(recipe("simclr", tmp_path))
    assert capsys.readouterr().err == "", "once is enough"


def test_without_a_checkpoint_it_says_so(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    (tmp_path / "result.json").write_text("{}")
    folder.note("done", files=folder.digests())
    assert not damaged(folder)
    (tmp_path / "result.json").write_text('{"a": 1}')
    with pytest.raises(ValueError, match=r"result\.json of .* is not what the run wrote, and there is no checkpoint"):
        damaged(folder)


def test_among_several_processes_it_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = RunFolder(tmp_path)
    (tmp_path / "result.json").write_text("{}")
    folder.note("done", files=folder.digests())
    (tmp_path / "result.json").unlink()
    folder.last.parent.mkdir()
    folder.last.touch()
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match="run the recipe in one process"):
        damaged(folder)


def test_runs_of_before_there_were_digests_are_as_they_were(tmp_path: Path) -> None:
    run = run_recipe(recipe(out=tmp_path))
    state = json.loads((run.path / "run.json").read_text())
    del state["files"]
    (run.path / "run.json").write_text(json.dumps(state))
    flip(run.path / "analysis.npz")
    assert not damaged(RunFolder(run.path))
    assert comparable(run.path / "metrics.jsonl")


def test_done_without_a_result_is_not_believed(tmp_path: Path) -> None:
    run = run_recipe(recipe("simclr", tmp_path))
    state = RunFolder(run.path).read()
    (run.path / "run.json").write_text(json.dumps({key: state[key] for key in ("status", "hash")}))
    was = (run.path / "result.json").read_bytes()
    (run.path / "result.json").unlink()
    assert damaged(RunFolder(run.path))
    run_recipe(recipe("simclr", tmp_path))
    assert (run.path / "result.json").read_bytes() == was


def test_another_runs_folder_under_this_ones_name(tmp_path: Path) -> None:
    mine, other = resolve(recipe("simclr", tmp_path)), resolve(recipe("simclr", tmp_path, seed=1))
    run_recipe(other)
    RunFolder.of(other).path.rename(RunFolder.of(mine).path)
    with pytest.raises(ValueError, match="holds the run of another recipe"):
        run_recipe(mine)


def test_the_best_of_another_run_is_not_taken(tmp_path: Path) -> None:
    changes = {"data.validation": 0.2, "train.patience": 3}
    one, other = (recipe("supcon", tmp_path, seed=seed, **changes) for seed in (0, 1))
    first, second = RunFolder(run_recipe(one).path), RunFolder(run_recipe(other).path)
    first.best.write_bytes(second.best.read_bytes())
    first.note("evaluating")
    with pytest.raises(ValueError, match=r"best\.pt is damaged \(it is of another recipe"):
        run_recipe(one)


def test_a_checkpoint_of_another_run_is_named_and_the_one_before_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    every = {"run.checkpoint_every": 4}
    whole = run_recipe(recipe("moco", tmp_path / "whole", **every))
    broken = recipe("moco", tmp_path / "broken", **every)
    place = RunFolder.of(resolve(broken))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(checkpoint, "keep_only", lambda last, previous: None)
        run_recipe(broken)
    stranger = run_recipe(recipe("simclr", tmp_path / "stranger"))
    place.last.write_bytes(RunFolder(stranger.path).last.read_bytes())
    place.note("training")
    capsys.readouterr()
    run_recipe(broken)
    told = capsys.readouterr().err
    assert "last.pt cannot be gone on from (it is of another recipe" in told
    assert "goes on from previous.pt" in told
    same_runs(place.path, whole.path)
