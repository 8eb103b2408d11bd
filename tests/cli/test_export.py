"""``kontrast export``: what it writes and what it says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import kontrast
from kontrast.cli import app
from kontrast.pipeline import run_recipe
from tests.cli.asking import ask, one_paragraph
from tests.train.exports.made import made
from tests.train.small import recipe


def test_a_folder_is_written(tmp_path: Path) -> None:
    run = made(tmp_path / "run", "mlp", (5,))
    done = CliRunner().invoke(app, ["export", str(run), "-o", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert f"written: {tmp_path / 'out'} (README.md, encoder.safetensors, model.json)" in done.stdout
    assert kontrast.load(tmp_path / "out").feature_dim == 128


def test_options_of_onnx(tmp_path: Path) -> None:
    for package in ("onnx", "onnxruntime", "onnxscript"):
        pytest.importorskip(package)
    run = made(tmp_path / "run", "mlp", (5,))
    done = CliRunner().invoke(app, ["export", str(run), "--to", "onnx", "--normalise", "outside"])
    assert done.exit_code == 0, done.output
    assert json.loads((run / "exports" / "onnx" / "model.json").read_text())["export"] == "onnx"
    assert "as (x − mean) / std" in (run / "exports" / "onnx" / "README.md").read_text()


def test_with_a_classifier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    run = run_recipe(recipe("supcon", tmp_path, **{"train.epochs": None, "train.steps": 1}))
    answer = ask(monkeypatch, capsys, "export", run.path, "--with-classifier", "-o", tmp_path / "out")
    assert answer.status == 0, answer.err
    assert "(README.md, classifier.safetensors, encoder.safetensors, labels.txt, model.json)" in answer.out
    answer = ask(monkeypatch, capsys, "export", tmp_path / "out", "--with-classifier", "-o", tmp_path / "again")
    assert (answer.status, one_paragraph(answer.err)) == (2, True)
    assert "has no recipe.yaml: a classifier is fitted on the data of a run" in answer.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ["--to", "timm"],
            "mlp cannot be exported to timm: timm has no such network. Targets that work: onnx, safetens",
        ),
        (["--to", "pickle"], "no export 'pickle'. Known: onnx, safetensors, timm, torchvision"),
        (["--data", "digits"], "--data=digits: must be left out without --with-classifier, which it is for"),
        (["--to", "safetensors", "--opset", "18"], "export 'safetensors' has no option 'opset'"),
        (["--to", "onnx", "--normalise", "no"], "must be 'inside' (the file does it) or 'outside' (you do it)"),
    ],
)
def test_mistakes(
    tmp_path: Path,
    words: list[str],
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = made(tmp_path / "run", "mlp", (5,))
    answer = ask(monkeypatch, capsys, "export", run, *words)
    assert (answer.status, one_paragraph(answer.err)) == (2, True)
    assert says in answer.err
