"""Images in Python become the inputs that files become in an evaluation, and errors name the image."""

from __future__ import annotations

import copy
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import kontrast
from kontrast import models
from kontrast.data import CentreCrop, decode
from kontrast.train import preparing
from kontrast.train.embedding import features
from tests.data.pictures import noise, write
from tests.train.exports.made import made

HOW = models.Preprocessing(24, (0.4, 0.5, 0.6), (0.2, 0.3, 0.25), "bicubic", 0.8)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> models.Encoder:
    weights = models.encoder("small-resnet", width=4, image_size=24, seed=1).state_dict()
    return kontrast.load("small-resnet", pretrained=weights, preprocessing=HOW, width=4)


def by_hand(encoder: models.Encoder, pixels: torch.Tensor) -> torch.Tensor:
    """The middle 0.8 of uint8 ``[C, h, w]``, bicubic, normalised."""
    image = CentreCrop(24, 0.8, "bicubic")(pixels).float() / 255
    image = (image - torch.tensor(HOW.mean).view(3, 1, 1)) / torch.tensor(HOW.std).view(3, 1, 1)
    with torch.no_grad():
        return encoder(image[None])


def test_a_path_an_image_and_an_array_are_the_same_image(encoder: models.Encoder, tmp_path: Path) -> None:
    path = write(tmp_path / "a.png", (40, 60), seed=3)
    pixels = noise(40, 60, seed=3)
    tensor = torch.from_numpy(pixels.copy()).permute(2, 0, 1)
    forms: list[Any] = [path, str(path), Image.open(path), pixels, tensor, tensor.float() / 255]
    found = encoder.embed(forms)
    assert found.shape == (6, encoder.feature_dim)
    expected = by_hand(encoder, decode(path))
    torch.testing.assert_close(found, expected.expand(6, -1), rtol=1e-5, atol=1e-6)  # sums in another order
    assert not torch.allclose(by_hand(encoder, decode(path)[:, 2:]), expected, atol=1e-4), "pixels matter"
    assert encoder.embed(path).shape == (1, encoder.feature_dim)
    assert encoder.embed(np.stack([pixels] * 3)).shape == (3, encoder.feature_dim)


def test_orientation_transparency_grey_and_16_bits_are_as_in_files(encoder: models.Encoder, tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    Image.fromarray(noise(40, 60)).save(tmp_path / "turned.jpg", exif=exif, quality=95)
    clear = Image.fromarray(noise(30, 30)).convert("RGBA")
    clear.putalpha(100)
    clear.save(tmp_path / "clear.png")
    Image.fromarray(noise(30, 50)[..., 0]).save(tmp_path / "grey.png")
    wide = noise(30, 50)[..., 0].astype(np.uint16) * 257
    Image.fromarray(wide).save(tmp_path / "wide.png")
    files = [tmp_path / name for name in ("turned.jpg", "clear.png", "grey.png", "wide.png")]
    opened = [Image.open(file) for file in files]
    for file, image in zip(files, opened, strict=True):
        expected = by_hand(encoder, decode(file))
        torch.testing.assert_close(encoder.embed(file), expected, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(encoder.embed(image), expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(encoder.embed(wide), encoder.embed(files[3]), rtol=1e-4, atol=1e-5)


def test_a_folder_by_the_encoder_is_its_files(encoder: models.Encoder, tmp_path: Path) -> None:
    for i, size in enumerate([(40, 60), (30, 30), (50, 31), (64, 64)]):
        write(tmp_path / "photos" / "ab"[i % 2] / f"{i}.jpg", size, seed=i)
    found = features(encoder, tmp_path / "photos")
    assert found.paths is not None
    assert found.rows.labels is not None
    assert found.data.class_names == ["a", "b"]
    mine = encoder.embed([tmp_path / "photos" / path for path in found.paths])
    torch.testing.assert_close(found.features, mine, rtol=1e-5, atol=1e-6)
    assert [found.data.class_names[label] for label in found.rows.labels.tolist()] == [p[0] for p in found.paths]


def test_arrays_of_one_size_are_read_at_the_checkpoints(encoder: models.Encoder) -> None:
    images = np.stack([noise(32, 32, seed=i) for i in range(5)])
    found = features(encoder, images)
    torch.testing.assert_close(found.features, encoder.embed(images), rtol=1e-5, atol=1e-6)
    assert (found.data.size, found.data.crop, found.data.interpolation) == (24, 0.8, "bicubic")


@pytest.mark.parametrize(
    ("images", "says"),
    [
        ([], r"images=\[\]: must hold at least one"),
        ({"a": 1}, "images=.*must be a list of paths"),
        ([np.zeros((8, 8, 3), np.uint8), {"a": 1}], r"images\[1\]=.*must be a path, a PIL image or an array"),
        ([np.zeros((8, 8, 5), np.uint8)], r"images\[0\] cannot be read: an image has 5 channels"),
        ([np.full((8, 8), 7.5)], r"images\[0\] cannot be read: pixels of torch.float64 from 7.5"),
        (["none.png"], r"images\[0\] \(none.png\) cannot be read: there is no such file"),
        ([os.curdir], r"images\[0\] \(.\) cannot be read: it is a folder"),
        ([np.zeros((8, 8, 3), np.uint8), "{dir}/text.png"], r"images\[1\] \(.*text.png\) cannot be read: not an image"),
    ],
)
def test_an_image_that_cannot_be_read_is_named(encoder: models.Encoder, tmp_path: Path, images: Any, says: str) -> None:
    (tmp_path / "text.png").write_text("no image")
    if isinstance(images, list):
        images = [i.replace("{dir}", str(tmp_path)) if isinstance(i, str) else i for i in images]
    with pytest.raises(ValueError, match=says):
        encoder.embed(images)


def test_an_encoder_that_does_not_know_how_says_so() -> None:
    with pytest.raises(ValueError, match="load it with kontrast"):
        models.encoder("small-resnet").embed([])
    weights = models.encoder("small-resnet", width=4, seed=1).state_dict()
    unknown = kontrast.load("small-resnet", pretrained=weights, width=4)
    with pytest.raises(ValueError, match="do not say how images become inputs"):
        unknown.embed(np.zeros((8, 8, 3), np.uint8))


def test_vectors(tmp_path: Path) -> None:
    run = made(tmp_path / "run", "mlp", (5,))
    encoder = copy.deepcopy(kontrast.load(run))
    x = torch.randn(3, 5, generator=torch.Generator().manual_seed(0))
    mean, std = (torch.tensor([a + b * i for i in range(5)]) for a, b in ((0.3, 0.1), (0.2, 0.05)))
    with torch.no_grad():
        expected = encoder((x - mean) / std)
    torch.testing.assert_close(encoder.embed(x.numpy()), expected)
    torch.testing.assert_close(encoder.embed(x[0].tolist()), expected[:1], rtol=1e-5, atol=1e-6)
    for bad, says in ((x[:, :4], r"\[3, 4\]: must be \[N, 5\]"), (x * torch.inf, "vectors\\[0\\] holds NaN")):
        with pytest.raises(ValueError, match=says):
            encoder.embed(bad)
    with pytest.raises(ValueError, match="must be numbers"):
        encoder.embed(["a.png"])


def test_data_keep_their_own_channels() -> None:
    from kontrast.data import load

    prepared = preparing.prepare(load("fashion-mini", limit=10), HOW)
    assert prepared.mean == pytest.approx((0.5,))
    assert prepared.std == pytest.approx((0.25,))
    whole = preparing.prepare(load("fashion-mini", limit=10), HOW, whole=True)
    assert (whole.size, whole.crop, whole.interpolation) == (None, None, "bicubic")
