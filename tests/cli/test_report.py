"""``kontrast report``, and the pages that other commands leave."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kontrast import report
from kontrast.train import resolve
from tests.cli.asking import ask, one_paragraph, written
from tests.report import made


def test_the_page_of_a_run_and_its_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = made.folder(tmp_path / "run")
    page = tmp_path / "pages" / "page.html"
    answer = ask(monkeypatch, capsys, "report", run, "--out", page, "--figures", "png")
    assert answer.status == 0, answer.err
    assert answer.out == f"report: {page}\n"
    assert (page.parent / "confusion.png").read_bytes().startswith(b"\x89PNG")
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert ask(monkeypatch, capsys, "report", run, "--open").status == 0
    assert opened == [(run / "report.html").as_uri()]


def test_several_runs_are_compared_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [made.folder(tmp_path / name) for name in ("one", "two")]
    monkeypatch.chdir(tmp_path)
    answer = ask(monkeypatch, capsys, "report", *runs)
    assert (answer.status, answer.out) == (0, "report: report.html\n"), answer.err
    assert (tmp_path / "report.html").exists()


def test_an_experiment_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = ask(monkeypatch, capsys, "report", "graf-toy", "--runs", tmp_path)
    assert answer.status == 2
    assert "kontrast reproduce graf-toy" in answer.err
    asked: list[list[Path]] = []

    def write(paths: list[Path], **_: object) -> Path:
        asked.append(paths)
        return tmp_path / "report.html"

    monkeypatch.setattr(report, "write", write)
    (tmp_path / "graf-toy-smoke").mkdir()
    assert ask(monkeypatch, capsys, "report", "graf-toy", "--runs", tmp_path).status == 0
    (tmp_path / "graf-toy-cpu").mkdir()
    assert ask(monkeypatch, capsys, "report", "graf-toy", "--runs", tmp_path).status == 0
    assert asked == [[tmp_path / "graf-toy-smoke"], [tmp_path / "graf-toy-cpu"]]


def test_mistakes_are_status_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = ask(monkeypatch, capsys, "report", tmp_path / "nowhere")
    assert answer.status == 2
    assert "there is no folder" in answer.err
    assert one_paragraph(answer.err)
    assert ask(monkeypatch, capsys, "report", tmp_path, "--figures", "gif").status == 2


def test_train_leaves_a_page_with_the_doctor_s_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe, chosen = written(tmp_path)
    page = tmp_path / "runs" / resolve(chosen).folder / "report.html"
    answer = ask(monkeypatch, capsys, "train", recipe)
    assert answer.status == 0, answer.err
    assert f"report: {page}" in answer.out
    findings = json.loads((page.parent / "doctor.json").read_text())["findings"]
    assert findings
    assert "has not been examined yet" not in page.read_text()
    before = page.stat().st_mtime_ns
    assert f"report: {page}" in ask(monkeypatch, capsys, "train", recipe).out
    assert page.stat().st_mtime_ns == before, "what is done is not drawn again"


def test_a_page_of_before_the_end_is_drawn_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe, chosen = written(tmp_path)
    folder = tmp_path / "runs" / resolve(chosen).folder
    assert ask(monkeypatch, capsys, "train", recipe).status == 0
    page = folder / "report.html"
    page.write_text("This run was interrupted")  # as if training had been cut after its last word, before the page
    result = (folder / "result.json").stat().st_mtime_ns
    os.utime(page, ns=(result - 10**9, result - 10**9))
    assert ask(monkeypatch, capsys, "train", recipe).status == 0
    assert "This run was interrupted" not in page.read_text()
    before = page.stat().st_mtime_ns
    assert ask(monkeypatch, capsys, "train", recipe).status == 0
    assert page.stat().st_mtime_ns == before
    os.utime(folder / "doctor.json", ns=(before + 10**9, before + 10**9))  # somebody had it examined since
    assert ask(monkeypatch, capsys, "train", recipe).status == 0
    assert page.stat().st_mtime_ns > before


def test_a_page_that_fails_fails_no_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> Path:
        raise RuntimeError("no ink [left]")

    monkeypatch.setattr(report, "write", broken)
    monkeypatch.setattr("kontrast.doctor.write", broken)
    recipe, chosen = written(tmp_path)
    answer = ask(monkeypatch, capsys, "train", recipe)
    assert answer.status == 0
    assert f"run folder: {tmp_path / 'runs' / resolve(chosen).folder}" in answer.out
    assert "report:" not in answer.out
    assert "the doctor could not examine the run: RuntimeError: no ink [left]" in answer.err
    assert "the report could not be written: RuntimeError: no ink [left]" in answer.err
