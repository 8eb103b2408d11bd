"""Copies are found whatever they were encoded as; look-alikes are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from kontrast import data
from kontrast.evaluate import nearest_others
from kontrast.explore import duplicates
from kontrast.explore.thumbnails import read
from tests.explore.made import encoded, picture, small_pictures

COPIES = {
    "jpeg 25": lambda image: encoded(image, "jpeg", quality=25),
    "webp": lambda image: encoded(image, "webp", quality=40),
    "smaller": lambda image: image.resize((40, 30), Image.Resampling.LANCZOS),
    "larger": lambda image: image.resize((211, 158), Image.Resampling.BICUBIC),
    "smaller, jpeg": lambda image: encoded(image.resize((64, 48)), "jpeg", quality=60),
    "brighter": lambda image: Image.fromarray((np.asarray(image) * 0.8 + 40).astype(np.uint8)),
}


@pytest.fixture(scope="module")
def unrelated() -> torch.Tensor:
    """Features that know nothing: pixels alone must find the copies."""
    return torch.randn(60, 8, generator=torch.Generator().manual_seed(0))


def groups(images: list[Image.Image], features: torch.Tensor, folder: Path) -> list[tuple[int, ...]]:
    small = small_pictures(folder, images)
    x = features[: len(images)]
    near = nearest_others(x, 10)[1]
    return [group.rows for group in duplicates(x, near, signatures=small.signatures, shapes=small.shapes)]


@pytest.mark.parametrize("how", COPIES)
def test_copies_are_found_by_pixels_alone(how: str, unrelated: torch.Tensor, tmp_path: Path) -> None:
    images = [picture(i) for i in range(40)]
    assert groups([*images, COPIES[how](images[7])], unrelated, tmp_path) == [(7, 40)]


def test_look_alikes_are_not(unrelated: torch.Tensor, tmp_path: Path) -> None:
    sky = [Image.fromarray(np.linspace(200, 90, 96)[:, None, None].repeat(128, 1).repeat(3, 2).astype(np.uint8))] * 20
    # One sky, each time above another thing: alike but for the detail.
    for i, image in enumerate(sky):
        sky[i] = image.copy()
        sky[i].paste(picture(i, (16, 24)), (10 + 4 * i, 60))
    turned = picture(0).transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    wide = picture(1).resize((128, 60))
    assert groups([*sky, picture(0), turned, picture(1), wide], unrelated, tmp_path) == []


def test_features_that_are_all_the_same_find_nothing_more(tmp_path: Path) -> None:
    images = [picture(i) for i in range(30)]
    assert groups([*images, images[4]], torch.ones(31, 4), tmp_path) == [(4, 30)]


def test_images_without_contrast(unrelated: torch.Tensor, tmp_path: Path) -> None:
    plain = [Image.new("RGB", (40, 30), (level,) * 3) for level in (20, 120, 220, 220)]
    assert groups([*[picture(i) for i in range(20)], *plain], unrelated, tmp_path) == [(22, 23)]


def test_a_group_is_what_hangs_together(unrelated: torch.Tensor, tmp_path: Path) -> None:
    """More copies than candidates of a row."""
    images = [picture(i) for i in range(20)] + [encoded(picture(3), "jpeg", quality=40 + i) for i in range(30)]
    assert groups(images, unrelated, tmp_path) == [(3, *range(20, 50))]


def test_leaks_come_first() -> None:
    x = torch.randn(30, 6, generator=torch.Generator().manual_seed(0))
    x[5], x[21], x[22] = x[4], x[8], x[9] * 1.0002
    splits = ["train"] * 20 + ["test"] * 8 + ["unlabelled"] * 2
    labels = torch.arange(30) % 3
    x[29] = x[10]  # unlabelled beside train: no leak
    labels[28:] = -1
    found = duplicates(x, nearest_others(x, 5)[1], splits=splits, labels=labels)
    assert [(group.rows, group.leak, group.differ) for group in found[:2]] == [
        ((8, 21), True, True),
        ((9, 22), True, True),
    ]
    assert {group.rows for group in found[2:]} == {(4, 5), (10, 29)}
    assert not any(group.leak for group in found[2:])
    assert not next(group for group in found if group.rows == (10, 29)).differ, "no label is not another label"


def test_clothes_that_are_all_alike() -> None:
    """Fashion-MNIST: outlines on black, so alike that most pairs would pass where photos have only copies."""
    split = data.load("fashion-mini", limit=600).train
    pixels = torch.cat([split.inputs.read(torch.arange(600)), split.inputs.read(torch.tensor([50, 51]))])
    small = read([data.Memory(pixels)])
    near = nearest_others(pixels.flatten(1).float(), 10)[1]
    found = duplicates(pixels.flatten(1).float(), near, signatures=small.signatures, shapes=small.shapes)
    assert {(50, 600), (51, 601)} <= {group.rows for group in found}
    assert len(found) <= 4
