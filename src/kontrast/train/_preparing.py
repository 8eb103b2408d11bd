"""How an image file becomes what an encoder takes: in words, and in lines of torchvision for others to run.

    (1)  s = round(f · min(H, W));   the middle s × s pixels, resized to S × S: bilinear, with antialiasing

f is the card's ``crop``: 1 where training and evaluation had images at one size (their own, or ``data.size``), 0.875
where images of several sizes were evaluated at their middle. A JPEG is decoded at 1/2, 1/4 or 1/8 as long as s stays at
least S. The lines give the very pixels that `kontrast.data.images` gives, but for transparent and 16-bit images.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from kontrast.runs import Run

LINES = """import math, torch
from PIL import Image, ImageOps
from torchvision.transforms.v2 import functional as F

def prepared(path):  # an image file → float32 [1, {channels}, {size}, {size}]
    image = Image.open(path)
    side = {before}
    if image.format == "JPEG" and side > {size}:  # decoded at 1/2, 1/4 or 1/8 where that is large enough
        image.draft(None, tuple(math.ceil(n * ({size} / side)) for n in image.size))
    image = F.pil_to_tensor(ImageOps.exif_transpose(image).convert("{mode}"))
    height, width = image.shape[-2:]
    side = {after}
    top, left = (height - side) // 2, (width - side) // 2
    image = F.resized_crop(image, top, left, side, side, [{size}, {size}], antialias=True)
    image = F.to_dtype(image, torch.float32, scale=True)
    return {last}[None]"""


def crop_of(run: Run, given: Mapping[str, Any]) -> float | None:
    """f of (1) by a card's ``input``; of a run from before it was written there, by its recipe; None if unknown."""
    if given["kind"] != "image":
        return None
    if "crop" in given:
        return float(given["crop"])
    with contextlib.suppress(ValueError, OSError):
        return 1.0 if run.recipe.data.size is not None else None
    return None


def in_words(given: Mapping[str, Any]) -> str | None:
    """(1) of a card's ``input``; None where it is not known, or there is nothing to resize.

    >>> in_words({"kind": "image", "shape": [3, 32, 32], "crop": 0.875})
    'the middle square, 0.875 of the shorter side, resized to 32×32 (bilinear, with antialiasing)'
    """
    if given["kind"] != "image" or "crop" not in given:
        return None
    fraction, (_, height, width) = float(given["crop"]), given["shape"]
    part = "as large as the image has it" if fraction == 1 else f"{fraction:g} of the shorter side"
    return f"the middle square, {part}, resized to {height}×{width} (bilinear, with antialiasing)"


def in_lines(given: Mapping[str, Any], *, normalise: bool = True) -> str | None:
    """(1) as a function of a file, with PIL and torchvision alone; None where `in_words` has none."""
    if in_words(given) is None:
        return None
    channels, size = int(given["shape"][0]), int(given["shape"][1])
    fraction = float(given["crop"])
    before, after = "min(image.size)", "min(height, width)"
    if fraction != 1:
        before, after = (f"round({fraction!r} * {least})" for least in (before, after))
    mean, std = ([float(value) for value in given[key]] for key in ("mean", "std"))
    last = f"F.normalize(image, {mean}, {std})" if normalise else "image"
    mode = "RGB" if channels == 3 else "L"
    return LINES.format(channels=channels, size=size, before=before, after=after, mode=mode, last=last)
