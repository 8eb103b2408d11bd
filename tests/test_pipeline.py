"""The main job from Python and from the command line is one: the same files, the same findings, the same page."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import kontrast
from kontrast import doctor, pipeline, recipes, report
from kontrast.sklearn import ContrastiveEncoder
from kontrast.train import NonFiniteLoss, RunFolder, resolve, run_recipe
from tests.cli.asking import ask
from tests.train.small import recipe


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How often each part was called; pages are a word, which takes no time."""
    calls = {"doctor": 0, "report": 0}

    def write(paths: list[Path], **_: object) -> Path:
        calls["report"] += 1
        page = paths[0] / report.NAME
        page.write_text("a page")
        return page

    examined = doctor.write

    def examine(path: Path) -> Path:
        calls["doctor"] += 1
        return examined(path)

    monkeypatch.setattr(report, "write", write)
    monkeypatch.setattr(doctor, "write", examine)
    return calls


def test_python_and_the_command_leave_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = kontrast.run(recipe(out=tmp_path / "python"))
    (tmp_path / "mine.yaml").write_text(recipe(out=tmp_path / "command").to_yaml())
    assert ask(monkeypatch, capsys, "train", tmp_path / "mine.yaml").status == 0
    (other,) = (tmp_path / "command").iterdir()
    assert other.name == run.path.name
    names = [sorted(str(p.relative_to(f)) for p in f.rglob("*")) for f in (run.path, other)]
    assert names[0] == names[1]
    assert {"report.html", "doctor.json"} <= set(names[0])
    found = [[f["rule"] for f in json.loads((f / "doctor.json").read_text())["findings"]] for f in (run.path, other)]
    assert found[0] == found[1]
    page = (run.path / "report.html").read_text(encoding="utf-8")
    assert "has not been examined yet" not in page


def test_nothing_is_done_twice(tmp_path: Path, counted: dict[str, int]) -> None:
    run = kontrast.run(recipe(out=tmp_path))
    assert counted == {"doctor": 1, "report": 1}
    again = kontrast.run(recipe(out=tmp_path))
    assert (again.path, counted) == (run.path, {"doctor": 1, "report": 1}), "a page that shows all stays"
    later = (run.path / report.NAME).stat().st_mtime_ns + 10**9
    os.utime(run.path / "run.json", ns=(later, later))  # as after a resume
    kontrast.run(recipe(out=tmp_path))
    assert counted == {"doctor": 2, "report": 2}


def test_a_failed_run_has_its_page_too(tmp_path: Path) -> None:
    bad = recipe("ce", tmp_path, **{"optim.lr": 1e30, "schedule": "constant"})
    with pytest.raises(NonFiniteLoss):
        kontrast.run(bad)
    folder = RunFolder.of(resolve(bad)).path
    assert "the loss is" in (folder / "report.html").read_text(encoding="utf-8")
    findings = json.loads((folder / "doctor.json").read_text())["findings"]
    assert findings[0]["rule"] == "failed-run"


def test_a_page_that_fails_is_a_warning_and_the_run_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> Path:
        raise RuntimeError("no ink")

    monkeypatch.setattr(report, "write", broken)
    monkeypatch.setattr(doctor, "write", broken)
    with pytest.warns(RuntimeWarning) as said:
        run, page = pipeline.perform(recipe(out=tmp_path))
    assert [str(warning.message) for warning in said] == [
        "the doctor could not examine the run: RuntimeError: no ink",
        "the report could not be written: RuntimeError: no ink",
    ]
    assert (run.status, page) == ("done", None)


def test_sweeps_and_the_estimator_write_no_pages(tmp_path: Path, counted: dict[str, int]) -> None:
    run_recipe(recipe(out=tmp_path))
    ContrastiveEncoder(max_iter=1, batch_size=16).fit([[float(i), 1.0] for i in range(32)], [0, 1] * 16)
    assert counted == {"doctor": 0, "report": 0}


def test_other_ranks_write_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counted: dict[str, int]) -> None:
    monkeypatch.setattr("kontrast.distributed.launched_rank", lambda: 1)
    assert pipeline.perform(recipe(out=tmp_path))[1] is None
    assert counted == {"doctor": 0, "report": 0}


def test_where_it_was_before_says_where_it_is() -> None:
    assert kontrast.run is pipeline.run
    old: Any = recipes
    with pytest.raises(AttributeError, match=r"kontrast\.recipes\.run is kontrast\.run now"):
        old.run  # noqa: B018
