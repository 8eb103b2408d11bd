"""Cells: tasks done once, errors written down, folders that mean the same anywhere."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from kontrast.experiments.cell import Cell, Task
from kontrast.recipe import Recipe
from kontrast.runs import Busy, Run, State
from kontrast.train import resolve
from tests.train.small import recipe

calls: list[int] = []


def counting(folder: Path, i: int) -> dict[str, Any]:
    calls.append(i)
    (folder / "more.txt").write_text("beside the result")
    return {"value": 2.0 * i}


def failing(folder: Path) -> dict[str, Any]:
    if not (folder / "mended").exists():
        raise ArithmeticError("no such number")
    return {}


def stopped(folder: Path) -> dict[str, Any]:
    raise KeyboardInterrupt


def cell(name: str, out: Path, **options: Any) -> Cell:
    return Cell({"seed": 0}, Task(f"{__name__}:{name}", options, str(out)))


def test_a_task_is_done_once_and_named_by_all_that_decides_it(tmp_path: Path) -> None:
    calls.clear()
    one = cell("counting", tmp_path, i=1)
    assert not one.done
    assert one.state == State()
    assert one.perform()
    assert not one.perform()
    assert calls == [1]
    assert one.done
    assert json.loads((one.path / "result.json").read_text()) == {"value": 2.0}
    assert json.loads((one.path / "task.json").read_text()) == {"call": f"{__name__}:counting", "options": {"i": 1}}
    assert None not in (one.state.status, one.state.started, one.state.finished)
    assert one.path == tmp_path / one.does.folder
    assert one.path.name.startswith("counting-")
    names = {c.does.folder for c in (one, cell("counting", tmp_path, i=2), cell("failing", tmp_path, i=1))}
    assert len(names) == 3
    assert cell("counting", tmp_path / "elsewhere", i=1).does.folder == one.does.folder


def test_a_failed_task_says_so_until_it_is_mended(tmp_path: Path) -> None:
    bad = cell("failing", tmp_path)
    with pytest.raises(ArithmeticError):
        bad.perform()
    assert bad.state.status == "failed"
    assert bad.state.error == "ArithmeticError: no such number"
    (bad.path / "mended").touch()
    bad.perform()
    assert bad.done
    assert bad.state.error is None


def test_an_interrupted_task(tmp_path: Path) -> None:
    one = cell("stopped", tmp_path)
    with pytest.raises(KeyboardInterrupt):
        one.perform()
    assert one.state.status == "interrupted"


@pytest.mark.parametrize("call", ["no.such.module:function", "kontrast.recipe:no_such", "nothing", ":"])
def test_a_task_at_no_address(tmp_path: Path, call: str) -> None:
    one = Cell({}, Task(call, out=str(tmp_path)))
    with pytest.raises(ValueError, match=r"call=.*: must be module:function"):
        one.perform()
    assert one.state.status == "failed"


def test_a_folder_that_another_holds_is_busy_and_not_failed(tmp_path: Path) -> None:
    for one in (cell("counting", tmp_path, i=3), Cell({}, resolve(recipe(out=tmp_path)))):
        one.path.mkdir()
        with Run(one.path).lock():
            with pytest.raises(Busy, match="another process is working"):
                one.perform()
            assert not one.fail("its process died")
        assert one.state == State()
        assert one.fail("its process died")
        assert one.state.error == "its process died"


def test_what_is_done_does_not_fail(tmp_path: Path) -> None:
    one = cell("counting", tmp_path, i=4)
    one.perform()
    assert not one.fail("its process died")
    assert one.done


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ValueError, match="cannot be created: Not a directory; choose another --out"):
        cell("counting", tmp_path / "file", i=5).perform()


def test_a_recipe(tmp_path: Path) -> None:
    one = Cell({"seed": 0}, resolve(recipe(out=tmp_path, **{"train.epochs": 1})))
    one.perform()
    assert one.done
    assert Run(one.path).value("knn20") > 0.1  # chance
    bad = Cell({}, resolve(recipe(out=tmp_path, **{"train.batch_size": 10**6})))
    with pytest.raises(ValueError, match="at most the number of training rows"):
        bad.perform()
    assert bad.state.status == "failed"
    early = Cell({}, resolve(recipe(out=tmp_path, seed=7, **{"run.device": "abacus"})))
    with pytest.raises(ValueError, match="abacus"):
        early.perform()
    assert "abacus" in early.state.error  # before the run had a folder
    with pytest.raises(ValueError, match="must be resolved to be a cell"):
        Cell({}, recipe(out=tmp_path)).perform()


def test_a_run_that_another_finishes_just_before_was_not_done_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two drivers begin the same cell; the other one ends before this one has the folder to itself."""
    one = Cell({"seed": 0}, resolve(recipe(out=tmp_path, **{"train.epochs": 1})))
    begin, others = Run.begin, []

    def begin_late(folder: Run, made: Recipe) -> list[Path]:
        if not others:
            others.append(folder)
            others.append(one.perform())
        return begin(folder, made)

    monkeypatch.setattr(Run, "begin", begin_late)
    assert one.perform() is False
    assert others[1] is True
    assert one.done


def test_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = resolve(recipe(out="runs", **{"run.data_root": "sets"}))
    moved = Cell({"seed": 0}, made).absolute()
    assert moved.path == tmp_path / "runs" / made.folder
    assert moved.does.run.data_root == str(tmp_path / "sets")  # type: ignore[union-attr]
    assert moved.at == {"seed": 0}
    assert cell("counting", Path("runs"), i=1).absolute().path.parent == tmp_path / "runs"
    assert Cell({}, resolve(recipe(out="~/runs"))).absolute().path.is_absolute()


def test_a_result_that_was_changed_is_made_anew(tmp_path: Path) -> None:
    calls.clear()
    one = cell("counting", tmp_path, i=1)
    one.perform()
    for name in ("result.json", "more.txt"):
        was = (one.path / name).read_text()
        (one.path / name).write_text(was.replace("2.0", "3.0").replace("beside", "before"))
        assert not one.done
        assert str(one.trouble).startswith(f"{name} of {one.path} changed since")
        assert one.perform()
        assert one.done
        assert (one.path / name).read_text() == was
    assert calls == [1, 1, 1]


def test_a_run_that_was_changed_or_is_anothers(tmp_path: Path) -> None:
    one, other = (Cell({"seed": seed}, resolve(recipe(out=tmp_path, seed=seed))) for seed in (0, 1))
    one.perform()
    other.perform()
    assert not one.perform()
    result = one.path / "result.json"
    was = result.read_text()
    result.write_text(was.replace('"value": 0.', '"value": 0.9'))
    assert not one.done
    assert one.perform()
    assert one.done
    assert result.read_text() == was
    shutil.rmtree(one.path)
    shutil.copytree(other.path, one.path)
    assert "holds the run of another recipe" in str(one.trouble)
    with pytest.raises(ValueError, match="holds the run of another recipe"):
        one.perform()
    assert one.fail("again"), "nobody will get it done"
    assert one.state.status == "done", "whose it is, it was"
