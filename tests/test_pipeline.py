"""The main job from Python and from the command line is one: the same files, the same findings, the same page."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

import kontrast
from kontrast import doctor, methods, models, pipeline, recipes, report, train
from kontrast.doctor import record
from kontrast.evaluate import subject
from kontrast.pipeline import run_recipe
from kontrast.recipe import Recipe
from kontrast.runs import Run
from kontrast.sklearn import ContrastiveEncoder
from kontrast.train import NonFiniteLoss, Session, job, resolve, watching
from kontrast.train.gradients import backward
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

    def examine(path: Path, recipe: Recipe | None = None) -> Path:
        calls["doctor"] += 1
        return examined(path, recipe)

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


def test_each_step_of_a_run_is_taken_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Counter[str] = Counter()

    def count(where: Any, name: str) -> None:
        original = getattr(where, name)

        def counted(*arguments: Any, **options: Any) -> Any:
            calls[name] += 1
            return original(*arguments, **options)

        monkeypatch.setattr(where, name, counted)

    def extracted(encoder: Any, split: Any, **options: Any) -> Any:
        calls["test rows"] += len(split) == 100  # as many as the test split has, and no other part of the data
        return extract(encoder, split, **options)

    extract = subject.extract
    monkeypatch.setattr(subject, "extract", extracted)
    monkeypatch.setattr(watching, "extract", extracted)
    for where in (train, record):
        count(where, "resolve")
    for name in ("check", "changed_files", "begin", "lock"):
        count(Run, name)
    count(job, "load_data")
    small = recipe(out=tmp_path, **{"run.monitor_every": 0, "evaluate.baselines": False, "train.epochs": 1})
    kontrast.run(small)
    assert calls == {"resolve": 1, "check": 1, "begin": 1, "lock": 1, "load_data": 1, "test rows": 1}
    calls.clear()
    kontrast.run(small)
    assert calls == {"resolve": 1, "check": 1, "changed_files": 1}, "it is done"


@pytest.mark.parametrize("pieces", [1, 3])
def test_a_batch_is_checked_once(monkeypatch: pytest.MonkeyPatch, pieces: int) -> None:
    encoder = models.encoder("mlp", in_features=4, features=8, seed=0)
    method = methods.method("supcon", encoder, models.head("none", in_dim=8))
    calls = []
    check = method.check
    monkeypatch.setattr(method, "check", lambda batch: (calls.append(batch), check(batch)))
    backward(method, methods.ViewBatch(torch.randn(12, 2, 4), torch.arange(12) % 3), pieces=pieces)
    assert len(calls) == 1


def test_a_failed_run_has_its_page_too(tmp_path: Path) -> None:
    bad = recipe("ce", tmp_path, **{"optim.lr": 1e30, "schedule": "constant"})
    with pytest.raises(NonFiniteLoss):
        kontrast.run(bad)
    folder = Run.of(resolve(bad)).path
    assert "the loss is" in (folder / "report.html").read_text(encoding="utf-8")
    findings = json.loads((folder / "doctor.json").read_text())["findings"]
    assert findings[0]["rule"] == "failed-run"


def test_a_page_that_fails_is_a_warning_and_the_run_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> Path:
        raise RuntimeError("no ink")

    monkeypatch.setattr(report, "write", broken)
    monkeypatch.setattr(doctor, "write", broken)
    session = Session(resolve(recipe(out=tmp_path)))
    with pytest.warns(RuntimeWarning) as said:
        page = pipeline.perform(session)
    assert [str(warning.message) for warning in said] == [
        "the doctor could not examine the run: RuntimeError: no ink",
        "the report could not be written: RuntimeError: no ink",
    ]
    assert (session.run.status, page) == ("done", None)


def test_sweeps_and_the_estimator_write_no_pages(tmp_path: Path, counted: dict[str, int]) -> None:
    run_recipe(recipe(out=tmp_path))
    ContrastiveEncoder(max_iter=1, batch_size=16).fit([[float(i), 1.0] for i in range(32)], [0, 1] * 16)
    assert counted == {"doctor": 0, "report": 0}


def test_other_ranks_write_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counted: dict[str, int]) -> None:
    monkeypatch.setattr("kontrast.distributed.launched_rank", lambda: 1)
    assert pipeline.perform(Session(resolve(recipe(out=tmp_path)))) is None
    assert counted == {"doctor": 0, "report": 0}


def test_where_it_was_before_says_where_it_is() -> None:
    assert kontrast.run is pipeline.run
    old: Any = recipes
    with pytest.raises(AttributeError, match=r"kontrast\.recipes\.run is kontrast\.run now"):
        old.run  # noqa: B018
