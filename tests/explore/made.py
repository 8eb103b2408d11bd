"""Pictures made of noise at several scales, each unlike every other; their copies; and a run that can embed them."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from kontrast.data import Folder
from kontrast.explore.thumbnails import Thumbnails, read


def picture(seed: int, size: tuple[int, int] = (96, 128), colour: int | None = None) -> Image.Image:
    """Noise of three scales, a frame of photos' statistics; ``colour`` tints it."""
    draw = np.random.default_rng(seed)
    height, width = size
    total = np.zeros((height, width, 3))
    for cells, weight in ((3, 60.0), (9, 40.0), (27, 30.0)):
        noise = Image.fromarray(draw.integers(0, 255, (cells, cells, 3), dtype=np.uint8))
        total += weight / 128 * (np.asarray(noise.resize((width, height), Image.Resampling.BICUBIC), float) - 128)
    if colour is not None:
        total[..., colour] += 70
    return Image.fromarray((total + 128).clip(0, 255).astype(np.uint8))


def encoded(image: Image.Image, kind: str, **options: int) -> Image.Image:
    """What remains of a picture after encoding it."""
    file = BytesIO()
    image.save(file, kind, **options)
    return Image.open(file).convert("RGB")


def photos(folder: Path, *, per_class: int = 12, tests: int = 6) -> Path:
    """Three classes by tint, in train and test, and copies: one within train, one across the splits."""
    for number, name in enumerate(("cat", "dog", "owl")):
        for split, count in (("train", per_class), ("test", tests)):
            place = folder / split / name
            place.mkdir(parents=True)
            for i in range(count):
                picture(1000 * number + 100 * (split == "test") + i, colour=number).save(place / f"{i}.png")
    picture(3, colour=0).resize((64, 48)).save(folder / "train" / "cat" / "again.jpg", quality=70)
    picture(1002, colour=1).save(folder / "test" / "dog" / "leak.jpg", quality=60)
    return folder


def small_pictures(folder: Path, images: list[Image.Image]) -> Thumbnails:
    """The thumbnails of pictures, through files."""
    paths = []
    for i, image in enumerate(images):
        paths.append(str(folder / f"{i}.png"))
        image.save(paths[-1])
    return read([Folder(paths)])


def blobs(
    rows: int, classes: int, dim: int = 16, apart: float = 4.0, seed: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows around the axes, and their classes."""
    draw = torch.Generator().manual_seed(seed)
    labels = torch.arange(rows) % classes
    return torch.randn(rows, dim, generator=draw) + apart * torch.eye(classes, dim)[labels], labels
