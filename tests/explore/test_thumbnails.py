"""Small pictures: each in its cell, in its proportions, in the order of the rows."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from kontrast import data
from kontrast.data import Folder, Memory
from kontrast.explore import thumbnails
from tests.explore.made import picture


def cell(small: thumbnails.Thumbnails, row: int) -> np.ndarray:
    """The thumbnail of a row, cut out of its sheet."""
    sheet = np.asarray(Image.open(io.BytesIO(small.sheets[row // 256])).convert("RGB"), dtype=float)
    top, left = (row % 256) // 16 * small.side, row % 16 * small.side
    height, width = map(int, small.sizes[row])
    return sheet[top : top + height, left : left + width]


def test_every_row_is_in_its_cell(tmp_path: Path) -> None:
    images = [picture(i, (40 + i % 7, 60)) for i in range(300)]
    for i, image in enumerate(images):
        image.save(tmp_path / f"{i}.png")
    parts = [Folder([str(tmp_path / f"{i}.png") for i in some]) for some in (range(270), range(270, 300))]
    small = thumbnails.read(parts)
    assert (len(small), small.side, len(small.sheets)) == (300, 96, 2)
    for row in (0, 17, 255, 256, 269, 270, 299):
        assert tuple(small.shapes[row]) == images[row].size[::-1]
        assert tuple(small.sizes[row]) == images[row].size[::-1], "small images are not enlarged"
        assert np.abs(cell(small, row) - np.asarray(images[row], float)).mean() < 12  # what the encoding takes


def test_large_images_keep_their_proportions(tmp_path: Path) -> None:
    picture(0, (300, 100)).save(tmp_path / "a.jpg", quality=95)
    turned = picture(1, (100, 300))
    exif = turned.getexif()
    exif[0x0112] = 6  # a camera that was held upright
    turned.save(tmp_path / "b.jpg", quality=95, exif=exif)
    small = thumbnails.read([Folder([str(tmp_path / "a.jpg"), str(tmp_path / "b.jpg")])])
    assert small.shapes.tolist() == [[300, 100], [300, 100]]
    assert small.sizes.tolist() == [[96, 32], [96, 32]]
    whole = np.asarray(picture(0, (300, 100)).resize((32, 96), Image.Resampling.BILINEAR), float)
    assert np.abs(cell(small, 0) - whole).mean() < 12
    squeezed = np.asarray(picture(0, (300, 100)).resize((32, 32), Image.Resampling.BILINEAR), float)
    assert np.abs(small.signatures[0].transpose(1, 2, 0) - squeezed).mean() < 4


def test_images_in_memory_and_grey_ones() -> None:
    split = data.load("fashion-mini", limit=20).train
    small = thumbnails.read([split.inputs])
    assert (small.side, small.sizes[3].tolist()) == (32, [28, 28])
    grey = split.inputs.read(torch.tensor([3]))[0].expand(3, -1, -1).permute(1, 2, 0).numpy()
    assert np.abs(cell(small, 3) - grey).mean() < 6


def test_the_quality_is_lowered_for_the_limit() -> None:
    pixels = torch.randint(0, 255, (300, 3, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    large, smaller = (sum(map(len, thumbnails.read([Memory(pixels)], most_bytes=most).sheets)) for most in (1e9, 3e5))
    assert smaller < 0.8 * large


@pytest.mark.parametrize(("rows", "shape", "side"), [(10, None, 96), (2001, None, 64), (10, (3, 40, 20), 48)])
def test_the_side(rows: int, shape: tuple[int, ...] | None, side: int) -> None:
    assert thumbnails.side_for(rows, shape) == side
