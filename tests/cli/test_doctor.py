"""``kontrast doctor`` as a user runs it: a table or JSON, the status, errors that say what to do."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from kontrast import doctor
from tests.cli.asking import ask, one_paragraph
from tests.doctor import patients


def test_a_sick_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    run = patients.edited("hot", tmp_path / "run")
    answer = ask(monkeypatch, capsys, "doctor", run)
    assert answer.status == 1, answer.err
    assert "problem   temperature too high" in answer.out
    assert "→ lower method.temperature" in answer.out
    told = answer.out.splitlines()
    passed = next(line for line in told if line.startswith("ok  "))
    assert "complete-collapse" in passed
    written = json.loads((run / "doctor.json").read_text())
    assert [f["rule"] for f in written["findings"]] == [f.rule for f in doctor.examine_run(run)]


def test_a_healthy_run_ends_with_0(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = patients.edited("healthy", tmp_path / "run")
    answer = ask(monkeypatch, capsys, "doctor", run, "--json")
    assert answer.status == 0, answer.err
    record = json.loads(answer.out)
    assert (record["patient"], record["kind"]) == (str(run), "run")
    assert {f["status"] for f in record["findings"]} == {"ok"}
    assert (run / "doctor.json").exists()


def test_features_and_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(300) % 3
    x = rng.normal(size=(3, 8))[labels] + 0.2 * rng.normal(size=(300, 8))
    np.save(tmp_path / "features.npy", x)
    np.save(tmp_path / "labels.npy", patients.shuffled(labels, 0.4))
    np.savez(tmp_path / "both.npz", features=x, labels=labels)
    features = str(tmp_path / "features.npy")
    sick = ask(monkeypatch, capsys, "doctor", features, tmp_path / "labels.npy", "--temperature", "0.2")
    assert sick.status == 1
    assert "signs of label noise" in sick.out
    assert ask(monkeypatch, capsys, "doctor", tmp_path / "both.npz").status == 0
    alone = ask(monkeypatch, capsys, "doctor", features)
    assert alone.status == 0
    assert "unknown  signs of label noise: there are no labels" in alone.out
    assert sorted(file.name for file in tmp_path.iterdir()) == ["both.npz", "features.npy", "labels.npy"]


def test_a_recipe_with_settings(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(monkeypatch, capsys, "doctor", "supcon-fashion-mini").status == 0
    sick = ask(monkeypatch, capsys, "doctor", "supcon-fashion-mini", "train.batch_size=8")
    assert sick.status == 1
    assert "batch too small for the classes" in sick.out


def test_what_was_asked_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken.npy").write_bytes(b"no array")
    for words, said in (
        ((tmp_path,), "is not a run's folder"),
        ((tmp_path / "nothing.npy",), "there is no file"),
        ((tmp_path / "broken.npy",), "cannot be read as a numpy file"),
        (("supcom-fashion-mini",), "did you mean 'supcon-fashion-mini'"),
        ((tmp_path / "nothere",), "there is no folder or file"),
        (("runs/nothere",), "there is no folder or file runs/nothere, and no recipe of that name. Expected"),
        (("supcon-fashion-mini", "train.batch=8"), "did you mean 'batch_size'"),
        (("supcon-fashion-mini", "--temperature", "0.1"), "method.temperature"),
        ((tmp_path, "optim.lr=1"), "recipe.yaml with optim.lr=1"),
    ):
        answer = ask(monkeypatch, capsys, "doctor", *words)
        assert answer.status == 2, answer
        assert said in answer.err
        assert one_paragraph(answer.err)


def test_few_rows_warn_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "few.npy", np.random.default_rng(0).normal(size=(60, 512)))
    answer = ask(monkeypatch, capsys, "doctor", tmp_path / "few.npy")
    assert (answer.status, answer.err) == (0, f"loading {tmp_path / 'few.npy'} …\n")
    assert "ok  complete-collapse, dimensional-collapse" in answer.out, "a warning, an error here, makes them unknown"


def test_names_with_brackets_are_printed_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = patients.edited("diverged", tmp_path / "[bold]run[/]", run=lambda about: {**about, "error": "E: [red]x[/]"})
    answer = ask(monkeypatch, capsys, "doctor", run)
    assert answer.status == 1
    assert "[bold]run[/]" in answer.out.replace("\n", "")
    assert "[red]x[/]" in answer.out
