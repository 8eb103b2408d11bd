"""``kontrast demo`` in its smallest form: two runs, and a table with raw pixels beside them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kontrast.cli import app
from kontrast.cli.demo import RECIPES, what_to_see
from kontrast.train import Run, Training
from tests.cli.asking import ask

runner = CliRunner()
TINY = ["train.epochs=1", "train.batch_size=64", "data.limit=200", "data.test_limit=100", "run.progress=false"]


def test_the_table_has_each_run_and_raw_pixels(tmp_path: Path) -> None:
    done = runner.invoke(app, ["demo", "--out", str(tmp_path), *TINY])
    assert done.exit_code == 0, done.output
    runs = {folder.name.rpartition("-")[0]: Run(folder) for folder in tmp_path.iterdir() if folder.is_dir()}
    assert runs.keys() == set(RECIPES)
    rows = {line.split("  ")[0]: line for line in map(str.strip, done.stdout.splitlines()) if "  " in line}
    assert rows["features"].split("  ")[1:]
    for name, run in runs.items():
        for protocol in ("knn20", "probe"):
            assert f"{100 * run.value(protocol):.1f} ± " in rows[name]
        measured = {line["name"]: line["value"] for line in run.result["geometry"]["features"]}
        assert f"{measured['uniformity, t = 2']:.3f}" in rows[name]
        assert f"{measured['tolerance']:.3f}" in rows[name]
        assert f"run folder: {run.path}" in done.stdout
    assert rows["raw pixels"].count("±") == 2
    assert "Accuracy on the 100 test images" in done.stdout
    pixels = dict(zip(("knn20", "probe"), accuracies(rows["raw pixels"]), strict=True))
    said = " ".join(done.stdout.split())
    for name, run in runs.items():
        gain = 100 * run.value("knn20") - pixels["knn20"]
        shown = re.search(rf"{name}, with(?:out)? labels, is [a-z ]+ \(kNN, k = 20: ([+-][\d.]+) ±", said)
        assert shown is not None
        assert float(shown[1]) == pytest.approx(gain, abs=0.11), "both are rounded to a tenth"
    again = runner.invoke(app, ["demo", "--out", str(tmp_path), *TINY])
    assert again.stdout.splitlines()[:-1] == done.stdout.splitlines()[:-1], "all but the seconds"


def accuracies(row: str) -> list[float]:
    return [float(number) for number in re.findall(r"([\d.]+) ±", row)]


RAW = [
    {"name": "raw pixels: knn20", "value": 0.80, "error": 0.003},
    {"name": "raw pixels: probe", "value": 0.83, "error": 0.004},
]


def test_above_and_below_raw_pixels_are_said_with_the_difference() -> None:
    def result(knn: float, probe: float) -> list[dict[str, Any]]:
        values = {"knn20": knn, "probe": probe, "logistic": 0.1, "raw pixels: knn20": 0.1}
        return [{"name": name, "value": value, "error": 0.004} for name, value in values.items()]

    assert what_to_see([("sce", False, result(0.75, 0.81))], RAW) == (
        "What to see, against raw pixels: sce, without labels, is below "
        "(kNN, k = 20: -5.0 ± 0.5 points, linear probe: -2.0 ± 0.6 points)."
    )
    both = [("tcl", True, result(0.85, 0.84)), ("sce", False, result(0.85, 0.81))]
    assert what_to_see(both, RAW) == (
        "What to see, against raw pixels: tcl, with labels, is above "
        "(kNN, k = 20: +5.0 ± 0.5 points, linear probe: +1.0 ± 0.6 points); sce, without labels, is above and below "
        "(kNN, k = 20: +5.0 ± 0.5 points, linear probe: -2.0 ± 0.6 points)."
    )
    assert "tcl, with labels, is not compared" in what_to_see([("tcl", True, [])], RAW)


def test_it_stops_like_train(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Training, "run", interrupted)
    answer = ask(monkeypatch, capsys, "demo", "--out", tmp_path, *TINY)
    assert answer.status == 130
    assert "Traceback" not in answer.err


def test_mistakes_are_status_2(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    answer = ask(monkeypatch, capsys, "demo", "train.epoch=1")
    assert answer.status == 2
    assert "did you mean 'epochs'?" in answer.err
