"""``kontrast adapt``: the table, the sentence, what can be read by a program, and mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kontrast.runs import Run
from tests.adaptation.small import frozen_start
from tests.cli.asking import ask

SMALL = ("data.limit=200", "data.test_limit=60", "train.epochs=1", "run.threads=1", "run.progress=false")


def test_the_verdict_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    start = frozen_start(tmp_path / "start")
    words = ("adapt", start.path, "digits", *SMALL, "--minutes", "3", "--out", tmp_path / "out")
    answer = ask(monkeypatch, capsys, *words)
    assert answer.status == 0, answer.err
    (folder,) = (tmp_path / "out").iterdir()
    verdict = Run(folder).verdict
    assert verdict is not None
    assert verdict.sentence in " ".join(answer.out.split())
    assert "linear classifier" in answer.out
    assert "method=supcon: the training rows have labels" in answer.err
    again = ask(monkeypatch, capsys, *words, "--json")
    assert "already done" in again.err
    assert json.loads(again.out)["verdict"]["sentence"] == verdict.sentence


def test_mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for words, says in (
        (("no-such", "digits"), "no encoder 'no-such'"),
        (("resnet18", "digits", "--method", "suppcon"), "supcon"),
        (("resnet18", "digits", "optim.lrr=1"), "did you mean 'lr'"),
    ):
        answer = ask(monkeypatch, capsys, "adapt", *words, "--out", tmp_path)
        assert answer.status == 2
        assert says in " ".join(answer.err.split())
        assert "Traceback" not in answer.err
