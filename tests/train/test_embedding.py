"""Features batch by batch, and which rows they belong to."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from kontrast import data
from kontrast.data.images import decode
from kontrast.evaluate import extract
from kontrast.evaluate.features import features_of, normalisation
from kontrast.pipeline import run_recipe
from kontrast.recipe import Recipe
from kontrast.train import Run, subject_of
from kontrast.train.embedding import embed
from kontrast.train.encoder_files import read_card
from tests.train.exports.made import made
from tests.train.small import recipe


def test_batches_are_what_extract_gives() -> None:
    digits = data.load("digits").train.limited(50)
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(64, 4), nn.Dropout(0.5))
    found = torch.cat(list(features_of(encoder, digits, mean=[0.5], std=[0.2], batch_size=50)))
    assert torch.equal(found, extract(encoder, digits, mean=[0.5], std=[0.2], batch_size=50))
    assert encoder.training, "the encoder is as it was"


def test_whoever_takes_the_batches_may_want_gradients() -> None:
    rows = data.Split(data.Memory(torch.eye(4)))
    for _ in features_of(nn.Linear(4, 2), rows, mean=None, std=None, batch_size=2):
        assert torch.is_grad_enabled()


def test_a_row_that_is_no_number_is_named() -> None:
    rows = data.Split(data.Memory(torch.tensor([[1.0], [2.0], [0.0]])))

    class Inverse(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return 1 / x

    with pytest.raises(ValueError, match="NaN or infinity for row 2;"):
        list(features_of(Inverse(), rows, mean=None, std=None, batch_size=2))


def pictures(folder: Path) -> None:
    for i in range(6):
        place = folder / ("b" if i < 3 else "a")
        place.mkdir(parents=True, exist_ok=True)
        Image.new("L", (8, 8), 40 * i).save(place / f"{i}.png")


def test_files_keep_their_names_whatever_is_left_out(tmp_path: Path) -> None:
    pictures(tmp_path / "photos")
    run = made(tmp_path / "run", "mlp", (1, 8, 8))
    embed(run, tmp_path / "photos", tmp_path / "all.npz", batch_size=4)
    embed(run, tmp_path / "photos", tmp_path / "some.npz", limit=2)
    with np.load(tmp_path / "all.npz") as every, np.load(tmp_path / "some.npz") as some:
        paths = every["paths"].tolist()
        assert paths == ["a/3.png", "a/4.png", "a/5.png", "b/0.png", "b/1.png", "b/2.png"]
        assert every["class_names"][every["labels"]].tolist() == [path[0] for path in paths]
        rows = [paths.index(path) for path in some["paths"].tolist()]
        assert len(rows) == 2
        np.testing.assert_allclose(some["features"], every["features"][rows], rtol=1e-4, atol=1e-5)  # float32's sums


@pytest.mark.skipif(os.name != "posix", reason="file names of bytes")
def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    pictures(tmp_path / "photos")
    try:
        os.rename(tmp_path / "photos" / "a" / "3.png", os.fsencode(tmp_path / "photos" / "a") + b"/\xff.png")
    except OSError:
        pytest.skip("this file system takes UTF-8 only")
    run = made(tmp_path / "run", "mlp", (1, 8, 8))
    to = tmp_path / "x.npz"
    embed(run, tmp_path / "photos", to)
    with np.load(to) as found:
        assert "a/\ufffd.png" in found["paths"].tolist()


def photos(folder: Path, sizes: list[tuple[int, int]], for_testing: list[tuple[int, int]]) -> Path:
    """JPEG and PNG files with structure up to the edges, so that another crop or filter gives other features."""
    draws = np.random.default_rng(0)
    for i in range(24):
        these = for_testing if i % 3 == 2 else sizes
        width, height = these[i % len(these)]
        place = folder / ("test" if i % 3 == 2 else "train") / "ab"[i % 2]
        place.mkdir(parents=True, exist_ok=True)
        coarse = Image.fromarray(draws.integers(0, 256, (5, 5, 3), dtype=np.uint8))
        coarse.resize((width, height), Image.Resampling.BICUBIC).save(place / f"{i}.{('png', 'jpg')[i % 4 > 1]}")
    return folder


SEVERAL = [(40, 60), (50, 30), (64, 64), (37, 41), (90, 70)]  # the larger JPEGs are decoded at half their size
ASKED = {"data.interpolation": "bicubic", "data.mean": 0.5, "data.std": [0.2, 0.25, 0.3]}
HOW = [
    ({"data.size": 12}, SEVERAL, 1.0),
    ({"augment.size": 12}, SEVERAL, 0.875),
    ({"data.size": 12}, [(30, 20)], 1.0),
    ({}, [(12, 12)], 1.0),
    ({**ASKED, "augment.size": 12, "data.crop": 0.8}, SEVERAL, 0.8),
    ({**ASKED, "data.size": 12}, SEVERAL, 1.0),
    ({"data.crop": 0.8}, [(12, 12)], 0.8),
]


@pytest.fixture(scope="module", params=HOW, ids=lambda how: f"{how[0]}, {len(how[1])} sizes")
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Path, float]:
    how, sizes, fraction = request.param
    folder = tmp_path_factory.mktemp("mine")
    where = photos(folder / "photos", sizes, sizes)
    return run_recipe(of_photos(where, folder, **how)), where, fraction


def of_photos(where: Path, out: Path, **how: Any) -> Recipe:
    none = {"data.limit": None, "data.test_limit": None}
    short = {"augment": "weak", "train.steps": 2, "train.batch_size": 8, "encoder": "small-resnet", "encoder.width": 4}
    return recipe("supcon", out, data=str(where), **none, **short, **how)


def test_test_images_of_one_size_beside_training_images_of_several(tmp_path: Path) -> None:
    """All are cropped alike: to the part of their middle that those of several sizes are."""
    where = photos(tmp_path / "photos", SEVERAL, [(30, 40)])
    run = run_recipe(of_photos(where, tmp_path, **{"augment.size": 12}))
    assert run.status == "done"
    assert subject_of(run).extraction["fraction"] == 0.875


def test_features_are_those_that_the_run_was_evaluated_with(trained: tuple[Run, Path, float], tmp_path: Path) -> None:
    """To the bit: the same files through the same weights, in one batch as there."""
    run, where, _ = trained
    subject = subject_of(run)
    for split, wanted in (("train", subject.train), ("test", subject.test)):
        embed(run, where, tmp_path / f"{split}.npz", split=split)
        with np.load(tmp_path / f"{split}.npz") as found:
            np.testing.assert_array_equal(found["features"], wanted.numpy())
    with np.load(tmp_path / "test.npz") as found, np.load(run.path / "analysis.npz") as analysis:
        np.testing.assert_array_equal(found["features"][analysis["rows"]], analysis["features"])


def test_an_images_features_do_not_depend_on_the_others(trained: tuple[Run, Path, float], tmp_path: Path) -> None:
    """One file alone in its folder has one size. To float32's rounding: other batches add up in another order."""
    run, where, _ = trained
    embed(run, where, tmp_path / "all.npz", split="train")
    with np.load(tmp_path / "all.npz") as found:
        every = dict(zip(found["paths"].tolist(), found["features"], strict=True))
    for path, wanted in list(every.items())[:4]:
        (tmp_path / path.replace("/", "-")).mkdir()
        shutil.copy(where / path, tmp_path / path.replace("/", "-"))
        embed(run, tmp_path / path.replace("/", "-"), tmp_path / "one.npy")
        np.testing.assert_allclose(np.load(tmp_path / "one.npy")[0], wanted, rtol=1e-4, atol=1e-5)


def test_arrays_of_another_size_than_trained(trained: tuple[Run, Path, float], tmp_path: Path) -> None:
    """As by hand: the middle that the run saw, resized, normalised with the run's statistics."""
    run, _, fraction = trained
    pixels = np.random.default_rng(1).integers(0, 256, (6, 33, 20, 3), dtype=np.uint8)
    np.save(tmp_path / "x.npy", pixels)
    embed(run, tmp_path / "x.npy", tmp_path / "h.npy")
    given = read_card(run)["input"]
    crop = data.CentreCrop(12, fraction, given["interpolation"])
    rows = torch.stack([crop(torch.from_numpy(image).permute(2, 0, 1)) for image in pixels])
    wanted = extract(run.encoder(), data.Split(data.Memory(rows)), mean=given["mean"], std=given["std"])
    np.testing.assert_array_equal(np.load(tmp_path / "h.npy"), wanted.numpy())


def test_a_run_from_before_the_card_said_so(trained: tuple[Run, Path, float], tmp_path: Path) -> None:
    """data.size of its recipe tells; without that images of one size go whole and others at 0.875, as was done."""
    run, where, fraction = trained
    shutil.copytree(run.path, tmp_path / "old")
    card = json.loads((run.path / "model.json").read_text())
    if fraction == 0.8 or card["input"]["interpolation"] == "bicubic":
        pytest.skip("no run of before was so")
    del card["input"]["crop"], card["input"]["interpolation"]
    (tmp_path / "old" / "model.json").write_text(json.dumps(card))
    embed(run, where, tmp_path / "new.npy", split="test")
    embed(tmp_path / "old", where, tmp_path / "old.npy", split="test")
    np.testing.assert_array_equal(np.load(tmp_path / "old.npy"), np.load(tmp_path / "new.npy"))


def test_the_cards_lines_prepare_a_photo_with_torchvision(trained: tuple[Run, Path, float]) -> None:
    """Their pixels are ours; 1e-6 is float32's rounding of the normalisation, whose values are below 4."""
    run, where, fraction = trained
    card = read_card(run)
    found: dict[str, Any] = {}
    exec(card["prepare"], found)
    prepare = normalisation(card["input"]["mean"], card["input"]["std"])
    files = [path for path in sorted(where.rglob("*.*")) if path.is_file()]
    assert {path.suffix for path in files} == {".png", ".jpg"}
    for path in files:
        mine = prepare(decode(path, crop=data.CentreCrop(12, fraction, card["input"]["interpolation"]))[None])
        torch.testing.assert_close(found["prepared"](path), mine, rtol=0, atol=1e-6)


def test_rows_that_nobody_asked_for_are_named(trained: tuple[Run, Path, float], tmp_path: Path) -> None:
    run, where, _ = trained
    with pytest.warns(
        UserWarning, match=r"only the split train \(16 rows\) is embedded, not test \(8\)\. Use --split test"
    ):
        assert embed(run, where, tmp_path / "all.npy")[0] == 16
    assert embed(run, where, tmp_path / "some.npy", split="train")[0] == 16  # a warning would be an error
