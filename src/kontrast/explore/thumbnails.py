"""Small pictures of all images: sprite sheets for the page, and signatures that tell copies from look-alikes.

Every image is read once, whole, decoded at a smaller scale where its format can (JPEG):

- its *thumbnail* has its proportions, its longer side is at most ``side`` pixels; it is never enlarged. It stands in
  the upper left corner of a cell ``side × side`` of a *sheet*, a JPEG of `ROW` × `ROW` cells in the rows' order. Cells
  are whole blocks of `BLOCK` pixels, and what a thumbnail leaves of its cell has the colours of its edge: so none shows
  in another. (WebP would be a sixth smaller and take eight times as long.)
- its *signature* is the whole image squeezed to `SIGNATURE` × `SIGNATURE` pixels, RGB. Resizing and encoding again
  change it little (`kontrast.explore.duplicates`).

Sheets are encoded as they come: the pixels of fifty thousand thumbnails are never in memory together.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.nn import functional

from kontrast.data import Inputs

ROW = 16  # thumbnails in a row of a sheet, and rows in a sheet
BLOCK = 16  # pixels, of the colours of a JPEG
SIGNATURE = 32
SIDE = 64  # pixels of a thumbnail
LARGER, FEW = 96, 2000  # of up to so many images
QUALITY = 80


@dataclass(frozen=True)
class Thumbnails:
    """The small pictures of N images.

    Args:
        side: Pixels of a cell.
        sizes: Height and width of each thumbnail in its cell, uint8 ``[N, 2]``.
        shapes: Height and width of each image, int32 ``[N, 2]``.
        sheets: The sprite sheets, JPEG.
        signatures: uint8 ``[N, 3, SIGNATURE, SIGNATURE]``.
    """

    side: int
    sizes: NDArray[np.uint8]
    shapes: NDArray[np.int32]
    sheets: Sequence[bytes]
    signatures: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.sizes)


class Fit:
    """A crop for `kontrast.data.Inputs.read`: the whole image, made small, in the corner of a square.

    It also keeps what the square does not show: the image's shape, the thumbnail's, and the signature. The seed that
    `read` hands over is the row they belong to.

    >>> fit = Fit(8)
    >>> fit(torch.zeros(3, 20, 40, dtype=torch.uint8), seed=5).shape, fit.shapes[5], fit.sizes[5]
    (torch.Size([3, 8, 8]), (20, 40), (4, 8))
    """

    def __init__(self, side: int) -> None:
        self.size = (max(side, SIGNATURE),) * 2  # a JPEG is not decoded smaller than this
        self.side = side
        self.shapes: dict[int, tuple[int, int]] = {}
        self.sizes: dict[int, tuple[int, int]] = {}
        self.signatures: dict[int, Tensor] = {}

    def box(self, height: int, width: int, seed: int = 0) -> tuple[int, int, int, int]:
        """The whole image."""
        return 0, 0, height, width

    def of_reduced(self, image: Tensor, seed: int, full: tuple[int, int]) -> Tensor:
        """Of an image that was decoded smaller than it is."""
        height, width = full
        self.shapes[seed] = full
        scale = min(1.0, self.side / max(height, width))
        h, w = max(1, round(height * scale)), max(1, round(width * scale))
        self.sizes[seed] = h, w
        colours = image.expand(3, -1, -1) if len(image) == 1 else image
        self.signatures[seed] = _resized(colours, SIGNATURE, SIGNATURE)
        small = _resized(image, h, w).float()
        return functional.pad(small, (0, self.side - w, 0, self.side - h), mode="replicate").to(torch.uint8)

    def __call__(self, image: Tensor, seed: int = 0) -> Tensor:
        return self.of_reduced(image, seed, (image.shape[-2], image.shape[-1]))


def _resized(image: Tensor, height: int, width: int) -> Tensor:
    if image.shape[-2:] == (height, width):
        return image
    # As floats: torch's own way for bytes gives wrong columns of one pixel (see kontrast.data.images).
    small = functional.interpolate(image[None].float(), (height, width), mode="bilinear", antialias=True)
    return small[0].round_().clamp_(0, 255).to(torch.uint8)


def side_for(rows: int, shape: tuple[int, ...] | None) -> int:
    """The pixels of a cell: larger ones for few images, none much larger than the images.

    >>> side_for(800, None), side_for(20_000, None), side_for(20_000, (1, 28, 28))
    (96, 64, 32)
    """
    side = LARGER if rows <= FEW else SIDE
    return side if shape is None else min(side, math.ceil(max(shape[1:]) / BLOCK) * BLOCK)


def read(
    parts: Sequence[Inputs],
    *,
    side: int | None = None,
    most_bytes: float = math.inf,
    workers: int = 0,
    progress: Callable[[int, int], object] | None = None,
) -> Thumbnails:
    """Read the small pictures of all rows of all parts, one part after the other.

    Args:
        parts: Inputs of images.
        side: Pixels of a cell; by `side_for`, if left out.
        most_bytes: Of all sheets together; the quality is lowered for it, by what the first sheet takes.
        workers: Threads that decode; 0: two.
        progress: Called with ``(done, of)``.

    Returns:
        The thumbnails.

    >>> from kontrast import data
    >>> small = read([data.load("fashion-mini", limit=300).train.inputs])
    >>> len(small), small.side, len(small.sheets), small.signatures.shape
    (300, 32, 2, (300, 3, 32, 32))
    """
    rows = sum(map(len, parts))
    if side is None:
        shapes = [part.shape for part in parts]
        side = side_for(rows, max(shapes, key=lambda shape: max(shape[1:]) if shape else 0) if all(shapes) else None)
    fit = Fit(side)
    where = [(part, row) for part, count in enumerate(map(len, parts)) for row in range(count)]
    quality = QUALITY

    def cells(first: int) -> Tensor:
        """The cells of a sheet, in order."""
        some = where[first : first + ROW * ROW]
        images: list[Tensor] = []
        for part in sorted({part for part, _ in some}):
            inside = [(row, first + i) for i, (of, row) in enumerate(some) if of == part]
            seeds = [seed for _, seed in inside]
            images.append(parts[part].read(torch.tensor([row for row, _ in inside]), fit, seeds))
        channels = max(len(image[0]) for image in images)
        return torch.cat([image.expand(-1, channels, -1, -1) for image in images])

    if progress is not None:
        progress(0, rows)
    first_sheet = encode(cells(0), side, quality)
    count = math.ceil(rows / ROW**2)
    while len(first_sheet) * count > most_bytes and quality > 20:
        quality -= 15
        first_sheet = encode(cells(0), side, quality)
    sheets = [first_sheet]
    with ThreadPoolExecutor(workers or 2) as pool:
        for sheet in pool.map(lambda first: encode(cells(first), side, quality), range(ROW**2, rows, ROW**2)):
            sheets.append(sheet)
            if progress is not None:
                progress(min(rows, len(sheets) * ROW**2), rows)
    order = range(rows)
    return Thumbnails(
        side=side,
        sizes=np.array([fit.sizes[row] for row in order], dtype=np.uint8),
        shapes=np.array([fit.shapes[row] for row in order], dtype=np.int32),
        sheets=sheets,
        signatures=torch.stack([fit.signatures[row] for row in order]).numpy(),
    )


def encode(cells: Tensor, side: int, quality: int) -> bytes:
    """A sheet of up to `ROW`² cells uint8 ``[n, C, side, side]``.

    >>> encode(torch.zeros(3, 1, 16, 16, dtype=torch.uint8), 16, 80)[:2] == bytes([0xFF, 0xD8])
    True
    """
    n, channels = len(cells), cells.shape[1]
    tall = math.ceil(n / ROW)
    wide = min(n, ROW)
    canvas = torch.full((tall * wide, channels, side, side), 127, dtype=torch.uint8)
    canvas[:n] = cells
    sheet = canvas.view(tall, wide, channels, side, side).permute(0, 3, 1, 4, 2).reshape(tall * side, wide * side, -1)
    image = Image.fromarray(sheet.squeeze(2).contiguous().numpy() if channels == 1 else sheet.contiguous().numpy())
    file = io.BytesIO()
    image.save(file, "jpeg", quality=quality, optimize=True)
    return file.getvalue()
