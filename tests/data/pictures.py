"""Small image files for the tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image


def noise(height: int, width: int, seed: int = 0) -> np.ndarray:
    """uint8 ``[height, width, 3]``, smooth enough that JPEG keeps it close."""
    small = np.random.default_rng(seed).integers(0, 256, (4, 4, 3), dtype=np.uint8)
    return np.asarray(Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC))


def write(path: Path, size: tuple[int, int] = (8, 8), seed: int = 0) -> Path:
    """An image of (height, width) ``size``; the suffix gives the format."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(noise(*size, seed=seed)).save(path)
    return path


def classes(
    folder: Path, per_class: int = 3, size: tuple[int, int] = (8, 8), names: tuple[str, ...] = ("cat", "dog")
) -> Path:
    """Class folders with ``per_class`` PNG images each."""
    for c, name in enumerate(names):
        for i in range(per_class):
            write(folder / name / f"{i}.png", size, seed=10 * c + i)
    return folder
