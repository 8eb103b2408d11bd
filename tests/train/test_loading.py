"""`kontrast.load`: a run, its folder, or an encoder's name with weights."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

import kontrast
from kontrast import models
from kontrast.pipeline import run_recipe
from kontrast.train import embedding
from kontrast.train.encoder_files import read_card
from tests.models.encoders.test_timm import needs_timm
from tests.models.test_pretrained import lite_file, needs_lite
from tests.train.exports.made import made
from tests.train.small import recipe

PHOTOS = Path(os.environ.get("KONTRAST_TEST_DATA", "nowhere")) / "imagenette-sample"


def test_a_run_knows_how_it_reads_images(tmp_path: Path) -> None:
    run = run_recipe(recipe("supcon", tmp_path, **{"train.epochs": 1}))
    encoder = kontrast.load(run)
    card = read_card(run)["input"]
    assert encoder.preprocessing == models.Preprocessing(8, card["mean"], card["std"], "bilinear", 1.0)
    assert (card["crop"], card["interpolation"]) == (1.0, "bilinear")
    assert not encoder.training
    found = embedding.features(run, "digits", split="test")
    torch.testing.assert_close(found.features, embedding.features(encoder, "digits", split="test").features)
    images = found.rows.inputs.read(torch.arange(4))
    torch.testing.assert_close(encoder.embed(images), found.features[:4], rtol=1e-5, atol=1e-6)


def test_mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = made(tmp_path / "run", "small-resnet", (3, 20, 20))
    for source, options, says in (
        ("resnet18", {}, "source=resnet18: is an encoder's name, and its weights must be named: pretrained=True"),
        (run, {"pretrained": True}, "pretrained: must be left out for a run"),
        (run, {"stem": "small"}, "stem: must be left out for a run"),
        (tmp_path / "nowhere", {}, "expected the folder of a finished run"),
        ("resnet81", {}, "resnet81"),
    ):
        with pytest.raises(ValueError, match=says):
            kontrast.load(source, **options)  # type: ignore[arg-type]
    (tmp_path / "resnet18").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="is an encoder's name"):
        kontrast.load("resnet18")  # an empty folder of this name is no run
    made(tmp_path / "resnet18", "small-resnet", (3, 20, 20))
    assert kontrast.load("resnet18").preprocessing is not None


def test_the_weights_of_a_run_by_the_encoders_name(tmp_path: Path) -> None:
    run = made(tmp_path / "run", "small-resnet", (1, 20, 20))
    mine, same = kontrast.load("small-resnet", pretrained=run), kontrast.load(run)
    assert mine.preprocessing == same.preprocessing
    images = torch.randint(0, 256, (2, 1, 30, 30), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    assert torch.equal(mine.embed(images), same.embed(images))


def test_another_size_and_other_numbers_win(tmp_path: Path) -> None:
    run = made(tmp_path / "run", "small-resnet", (3, 20, 20))
    half = kontrast.load("small-resnet", pretrained=run, image_size=12)
    assert half.preprocessing is not None
    assert (half.preprocessing.size, half.preprocessing.mean) == (12, (0.3, 0.4, 0.5))
    how = models.Preprocessing(16, (0.5,) * 3, (0.5,) * 3)
    assert kontrast.load(run, preprocessing=how).preprocessing == how
    assert kontrast.load("small-resnet", pretrained=run, preprocessing=how).preprocessing == how


@needs_timm
@needs_lite
@pytest.mark.slow  # a representative: tests/models/test_pretrained.py
@pytest.mark.skipif(not PHOTOS.is_dir(), reason="KONTRAST_TEST_DATA names no folder with imagenette-sample")
def test_the_real_network_on_real_photos() -> None:
    """ImageNet weights tell ten of its classes apart: 96 % were right when this was written, 200 rows."""
    from kontrast.evaluate import evaluate
    from kontrast.train import subject_on

    encoder = kontrast.load("timm/tf_efficientnet_lite0", pretrained=lite_file())
    right = evaluate(subject_on(encoder, PHOTOS), "knn20").value
    assert right >= 0.95
