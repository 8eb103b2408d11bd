"""A folder that plain torch loads, and kontrast too; its card is for people, and what a run was given is only text."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import kontrast
from kontrast.pipeline import run_recipe
from kontrast.train import Run
from kontrast.train.exports import export_run
from tests.train.exports.made import made
from tests.train.small import recipe


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_recipe(recipe("supcon", tmp_path_factory.mktemp("runs"), **{"train.epochs": 1}))


def test_the_card_of_a_real_run(run: Run) -> None:
    folder = export_run(run, "safetensors")
    assert folder == run.path / "exports" / "safetensors"
    card = (folder / "README.md").read_text()
    number = f"| {100 * run.value('knn20'):.2f} % |"
    for words in (
        "# supcon-digits",
        "temperature 0.1",
        "CC BY 4.0",
        "10 classes: 0, 1, 2",
        "1 epoch, batches of 32, sgd at 0.05, seed 0",
        "views: crop-flip, crop-flip",
        number,
        "kNN, k = 20",
        "pixels / 255, then (x − mean) / std",
        "(channels × height × width; the middle square, as large as the image has it, resized to 8×8 (bilinear, with "
        "antialiasing))",
        "image = F.resized_crop(image, top, left, side, side, [8, 8], antialias=True)",
        'load_file("encoder.safetensors")',
        "## Limits",
    ):
        assert words in card, words
    assert "licence of the data is not known" not in card
    record = json.loads((folder / "model.json").read_text())
    assert record["results"][0]["value"] == run.value("knn20")
    assert record["prepare"] == json.loads((run.path / "model.json").read_text())["prepare"]
    x = torch.rand(3, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    assert torch.equal(kontrast.load(folder)(x), run.encoder()(x))
    again = export_run(folder, "safetensors", folder.with_name("again"))  # an export can be exported, numbers and all
    assert number in (again / "README.md").read_text()


def test_the_lines_load_it_without_kontrast(tmp_path: Path) -> None:
    run = made(tmp_path / "run", "small-resnet", (3, 12, 12), width=4)
    folder = export_run(run, "safetensors", tmp_path / "out")
    lines = json.loads((folder / "model.json").read_text())["load"]
    script = (
        f'import sys\nsys.modules["kontrast"] = None\n{lines}\nimport torch\nprint(model(torch.ones(1, 3, 12, 12)))'
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("tensor([[")


def test_what_a_run_was_given_is_only_text(tmp_path: Path) -> None:
    run = made(tmp_path / "run", "mlp", (5,))
    record = json.loads((run / "model.json").read_text())
    record["data"]["note"] = "pets\n\n# A heading\n<script>alert(1)</script> [here](https://x.example)"
    record["load"] = "import os; os.remove('everything')"
    record["class"] = "import os"
    (run / "model.json").write_text(json.dumps(record))
    folder = export_run(run, "safetensors", tmp_path / "out")
    card = (folder / "README.md").read_text()
    assert "<script>" not in card
    assert "<b>" not in card
    assert "\n# A heading" not in card
    assert r"\[here\]" in card
    assert "kNN, k = 20 \\| cosine" in card
    assert "remove('everything')" not in card, "lines are ours, not the folder's"
    assert "licence of the data is not known" in card


def test_files_that_were_left_out_are_counted(tmp_path: Path) -> None:
    run = made(tmp_path / "run", "mlp", (5,))
    record = json.loads((run / "model.json").read_text())
    (run / "model.json").write_text(json.dumps({**record, "data": {**record["data"], "unread": 1}}))
    card = (export_run(run, "safetensors", tmp_path / "out") / "README.md").read_text()
    assert "- left out, as they could not be read or lay in no class: 1 file\n" in card
    assert "left out" not in (export_run(made(tmp_path / "b", "mlp", (5,)), "safetensors") / "README.md").read_text()


def test_what_is_not_known_of_the_size_is_not_said(tmp_path: Path) -> None:
    """A card from before it was written there, without a recipe beside it."""
    folder = export_run(made(tmp_path / "run", "mlp", (3, 8, 8)), "safetensors", tmp_path / "out")
    card = (folder / "README.md").read_text()
    assert "It takes images 3×8×8 (channels × height × width), pixels / 255" in card
    assert "An image file becomes" not in card
    assert json.loads((folder / "model.json").read_text())["prepare"] is None
