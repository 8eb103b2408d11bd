"""Features batch by batch, and which rows they belong to."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from kontrast import data
from kontrast.evaluate import extract
from kontrast.evaluate.features import features_of
from kontrast.train.embedding import embed
from tests.train.exports.made import made


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
