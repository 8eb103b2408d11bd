"""What one does with a run in Python is what the commands do: the same files, the same numbers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import kontrast
from kontrast.files import write_json
from kontrast.pipeline import run_recipe
from kontrast.runs import Run
from tests.cli.asking import ask
from tests.report import made
from tests.train.small import recipe


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of images of 8 pixels, each a file too."""
    return run_recipe(recipe("supcon", tmp_path_factory.mktemp("runs"), **{"train.epochs": None, "train.steps": 2}))


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Grey and coloured files of several sizes."""
    folder, draws = tmp_path_factory.mktemp("images"), np.random.default_rng(0)
    files = []
    for i, shape in enumerate([(8, 8), (20, 30), (31, 17, 3)]):
        files.append(folder / f"{i}.png")
        Image.fromarray(draws.integers(0, 255, shape, dtype=np.uint8)).save(files[-1])
    return files


def test_embed_gives_the_features_of_the_command(
    run: Run,
    images: list[Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    of_files = run.embed(images)
    assert (of_files.shape, of_files.dtype) == ((3, 16), torch.float32)
    opened = [Image.open(file) for file in images]
    assert torch.equal(run.embed(opened), of_files)
    assert torch.equal(run.embed([np.asarray(image) for image in opened]), of_files)
    torch.testing.assert_close(run.embed(images[1]), of_files[1:2])  # a batch of another size rounds otherwise
    assert torch.equal(kontrast.load(run).embed(images), of_files)
    answer = ask(monkeypatch, capsys, "embed", run.path, *images, "-o", tmp_path / "out.npy")
    assert answer.status == 0, answer.err
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), of_files.numpy(), rtol=1e-5, atol=1e-6)


def test_export_gives_the_folder_of_the_command(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = run.export("safetensors", tmp_path / "mine")
    assert ask(monkeypatch, capsys, "export", run.path, "-o", tmp_path / "theirs").status == 0
    for file in mine.iterdir():
        assert file.read_bytes() == (tmp_path / "theirs" / file.name).read_bytes(), file.name


def test_report_writes_the_page_of_the_command(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not run.findings_file.exists()
    page = run.report(tmp_path / "page.html", figures="svg")
    assert run.findings_file.exists(), "a run that was never examined is, first"
    assert Path(page) == tmp_path / "page.html"
    assert (tmp_path / "confusion.svg").read_bytes().startswith(b"<svg")
    assert ask(monkeypatch, capsys, "report", run.path, "--out", tmp_path / "theirs.html").status == 0
    assert page.path.read_text() == (tmp_path / "theirs.html").read_text()
    assert run.report().path == run.report_file


def test_repr_says_how_far_it_is_and_reads_damaged_folders(tmp_path: Path) -> None:
    assert repr(Run("runs/none")) == "Run('runs/none', not begun)"
    done = Run(made.folder(tmp_path / "done"))
    value = json.loads(done.result_file.read_text())["results"][0]["value"]
    assert repr(done) == f"Run({str(tmp_path / 'done')!r}, done, knn20 {100 * value:.1f} %)"
    done.result_file.write_text("{")
    assert repr(done) == f"Run({str(tmp_path / 'done')!r}, done)"
    write_json(done.state_file, {"status": "failed"})
    assert repr(done) == f"Run({str(tmp_path / 'done')!r}, failed)"


def test_a_run_shows_the_headline_of_its_page(tmp_path: Path) -> None:
    run = Run(made.folder(tmp_path / "done", about="<script>alert(1)</script>"))
    text, html = str(run), run._repr_html_()
    assert text.startswith("done: done\n<script>alert(1)</script> · method supcon")
    assert f"kNN accuracy   {100 * run.value('knn20'):.1f} ± 5.0 %" in text
    assert f"<strong>{100 * run.value('knn20'):.1f} ± 5.0 %</strong>" in html
    assert "<script" not in html
    assert "&lt;script&gt;alert(1)" in html
    gone = Run(tmp_path / "gone")
    assert "there is no folder" in str(gone)
    assert "there is no folder" in gone._repr_html_()
