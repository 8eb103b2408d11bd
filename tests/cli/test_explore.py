"""``kontrast explore`` from the command line: with a run, an encoder by name, and a file of features."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import safetensors.torch

from kontrast import models
from kontrast.pipeline import run_recipe
from kontrast.runs import Run
from kontrast.train.embedding import embed
from tests.cli.asking import ask
from tests.explore.made import picture
from tests.train.small import recipe


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """An encoder of grey images of 8×8 pixels."""
    return run_recipe(recipe("supcon", tmp_path_factory.mktemp("runs"), **{"train.epochs": 1}))


def test_a_run_and_a_set(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "new" / "digits.html"
    answer = ask(monkeypatch, capsys, "explore", run.path, "digits", "--limit", 150, "--out", page)
    assert answer.status == 0, answer.err
    assert "near-duplicates" in answer.out
    assert f"written: {page}" in answer.out
    assert page.with_name("digits.label-errors.csv").is_file()
    assert f"features of {run.path.name}" in page.read_text(encoding="utf-8")
    assert [line for line in answer.err.splitlines() if line.endswith("…")] == [
        f"loading {run.path} …", "features …", "thumbnails …", "neighbours …", "near-duplicates …", "labels …", "map …",
    ]  # fmt: skip


def test_a_file_of_features_as_json(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("faiss")
    file, index = tmp_path / "digits.npz", tmp_path / "digits.faiss"
    embed(run, "digits", file, split="test", limit=60)
    answer = ask(monkeypatch, capsys, "explore", file, "--json", "--out", tmp_path, "--index", index)
    assert answer.status == 0, answer.err
    summary = json.loads(answer.out)
    assert (summary["rows"], summary["classes"], summary["page"]) == (60, 10, str(tmp_path / "explore.html"))
    assert index.is_file()


def test_an_encoder_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, weights = tmp_path / "photos", tmp_path / "weights.safetensors"
    folder.mkdir()
    for i in range(6):
        picture(i, (24, 24)).save(folder / f"{i}.png")
    net = models.encoder("small-resnet", seed=1)
    safetensors.torch.save_file({k: v.contiguous() for k, v in net.state_dict().items()}, weights)
    answer = ask(
        monkeypatch, capsys, "explore", "small-resnet", folder, "--weights", weights, "--out", tmp_path, "--json"
    )
    assert answer.status == 0, answer.err
    assert json.loads(answer.out)["encoder"] == "small-resnet"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["{run}"], "data: must be given with an encoder"),
        (["{run}", "digits", "--out", "page.pdf"], "must end in .html"),
        (["{run}", "digits", "--split", "unlabelled"], "split='unlabelled': must be one of the data's: train, test"),
        (["small-resnet", "digits"], "its weights must be named"),
        (["{run}", "digits", "--index", "none/x.faiss"], "must be in a folder that exists"),
    ],
)
def test_errors(
    run: Run, words: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    answer = ask(monkeypatch, capsys, "explore", *[word.format(run=run.path) for word in words])
    assert answer.status == 2
    assert message in " ".join(answer.err.split())
