"""What data are like, before a recipe is chosen for them: labels, sizes, balance, files that fail, copies.

`image_sides` reads headers only, so that the size to which images are brought can be chosen before any is decoded.
`look` takes the loaded data. `copies` compares the test rows with the training rows: bytes of pixels for exact copies,
and for near ones (resized, re-encoded) a difference hash. With g the grey image brought to 8 × 9 pixels:

    (1)  bit_xy = [g_x,y+1 > g_x,y],     64 bits;  near if at most `MOST_BITS` differ and (2)
    (2)  the correlation of the two grey thumbnails is at least `LEAST_CORRELATION`
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional

from kontrast.data.cache import CachedImages
from kontrast.data.dataset import DataSet, Inputs, Memory, Split
from kontrast.data.folder import parse_paths
from kontrast.data.image_files import ignore_pil_warnings, list_images
from kontrast.data.images import ImageError, decode, with_channels
from kontrast.files import expanded

SAMPLE = 256  # images whose headers are read
MOST_ROWS = 100_000  # training and test rows that are compared
LEAST_SIDE = 48  # pixels of images that are compared for near copies: smaller ones are alike at the size of thumbnails
MOST_BITS, LEAST_CORRELATION = 4, 0.98
CHUNK = 1024  # rows at a time


@dataclass(frozen=True)
class Sides:
    """The sides of images as they are stored, in pixels.

    Attributes:
        least: The smallest shorter side.
        median: The median of the shorter sides.
        square: Whether all are square and of one size.

    >>> Sides(32, 32, square=True).median
    32
    """

    least: int
    median: int
    square: bool = False


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What a recipe is chosen by (`kontrast.recipes.choosing`).

    Attributes:
        name: The name of the data.
        rows: Training rows.
        kind: "image" or "vector".
        shape: (C, H, W) or (D,) of every row as loaded; None where images have several sizes.
        sides: The sides of the images as they are stored; None for vectors.
        class_sizes: Training rows of each class that has any; none without labels.
        test_rows: Test rows with labels.
        unlabelled_rows: Rows of the unlabelled split.
        skipped: Image files that could not be read.
        copies: Test rows that are in the training rows too, exactly; None if that was not looked for.
        near_copies: Further test rows that look like a training row.
        in_memory: Whether the rows are in memory, or in a cache file.

    >>> Facts(name="photos", rows=600, class_sizes=(500, 100)).imbalance
    5.0
    """

    name: str
    rows: int
    kind: Literal["image", "vector"] = "image"
    shape: tuple[int, ...] | None = None
    sides: Sides | None = None
    class_sizes: tuple[int, ...] = ()
    test_rows: int = 0
    unlabelled_rows: int = 0
    skipped: int = 0
    copies: int | None = None
    near_copies: int = 0
    in_memory: bool = True

    @property
    def classes(self) -> int:
        """How many classes have training rows."""
        return len(self.class_sizes)

    @property
    def imbalance(self) -> float:
        """Rows of the largest class for one of the smallest."""
        return max(self.class_sizes, default=1) / min(self.class_sizes, default=1)


def image_sides(source: Any, data: DataSet | None = None) -> Sides | None:
    """The sides of images, from at most `SAMPLE` of them.

    Args:
        source: What `kontrast.data.load` takes.
        data: The loaded data; needed unless the source is a folder, an image file or a list of them, whose headers are
            read.

    Returns:
        The sides; None for vectors, and where no header can be read.

    Raises:
        ValueError: A folder without images.

    >>> from kontrast.data import load
    >>> image_sides("digits", load("digits"))
    Sides(least=8, median=8, square=True)
    """
    paths = _paths(source)
    shapes: list[tuple[int, ...]]
    if paths is not None:
        shapes = list(_headers(_some(paths)))
    elif data is None or data.kind == "vector":
        return None
    elif data.train.inputs.shape is not None:
        shapes = [tuple(data.train.inputs.shape[1:])]
    else:
        inputs = data.train.inputs
        rows = _some(list(range(len(inputs))))
        shapes = [tuple(inputs.read(torch.tensor([i]), lambda image, seed: image, [0]).shape[-2:]) for i in rows]
    if not shapes:
        return None
    sides = sorted(min(shape) for shape in shapes)
    square = len(set(shapes)) == 1 and shapes[0][0] == shapes[0][1]
    return Sides(int(sides[0]), int(sides[len(sides) // 2]), square)


def count_files(source: Any) -> int | None:
    """How many image files a source has; None if it is none of files.

    >>> count_files("digits") is None
    True
    """
    paths = _paths(source)
    return None if paths is None else len(paths)


def is_files(source: Any) -> bool:
    """Whether a source is a folder, an image file or a list of them, rather than arrays, a set's name or an object.

    >>> is_files(["a.jpg", "b.jpg"]), is_files("rows.npy"), is_files("digits")
    (True, False, False)
    """
    if isinstance(source, str | os.PathLike):
        path = expanded(source)
        return path.is_dir() or (path.is_file() and path.suffix.lower() not in (".npz", ".npy"))
    return parse_paths(source) is not None


def listing_digest(source: Any) -> str | None:
    """A digest of the names and sizes of the files of a source; None if it is none of files.

    >>> listing_digest("digits") is None
    True
    """
    paths = _paths(source)
    if paths is None:
        return None
    top = os.path.commonpath([os.path.dirname(path) for path in paths])
    digest = hashlib.blake2b(digest_size=8)
    for path in paths:
        size = os.path.getsize(path) if os.path.exists(path) else -1
        digest.update(os.fsencode(os.path.relpath(path, top)) + f"\0{size}\n".encode())
    return digest.hexdigest()


def _paths(source: Any) -> list[str] | None:
    if not is_files(source):
        return None
    if not isinstance(source, str | os.PathLike):
        listed = parse_paths(source)
        assert listed is not None
        return [str(expanded(path)) for path in listed[0]]
    path = expanded(source)
    return list_images(path).paths if path.is_dir() else [str(path)]


def _some(items: list[Any]) -> list[Any]:
    count = min(len(items), SAMPLE)
    return [items[i * len(items) // count] for i in range(count)]


def _headers(paths: list[str]) -> Iterator[tuple[int, ...]]:
    """(height, width) of the files that can be read."""
    with ignore_pil_warnings():
        for path in paths:
            try:
                _, height, width = decode(path, check=True).shape
            except (ImageError, OSError):
                continue
            yield height, width


def look(data: DataSet, sides: Sides | None = None) -> Facts:
    """The facts of loaded data.

    Args:
        data: The data.
        sides: What `image_sides` found.

    Returns:
        The facts. Copies are looked for where all rows have one shape, are in memory or in a cache file, and are not
        more than `MOST_ROWS`.

    >>> from kontrast.data import load
    >>> facts = look(load("digits"))
    >>> facts.rows, facts.classes, facts.test_rows, facts.copies
    (1437, 10, 360, 0)
    """
    train, test = data.train, data.test
    tested = test if test is not None and test.labels is not None else None
    found = None
    if test is not None and data.kind == "image":
        found = copies(train, test)
    sizes = () if train.labels is None else tuple(n for n in train.labels.bincount().tolist() if n)
    return Facts(
        name=data.name,
        rows=len(train),
        kind=data.kind,
        shape=train.inputs.shape,
        sides=sides,
        class_sizes=sizes,
        test_rows=0 if tested is None else len(tested),
        unlabelled_rows=0 if data.unlabelled is None else len(data.unlabelled),
        skipped=sum(why != "no image by its suffix" for _, why in data.skipped),
        copies=None if found is None else found[0],
        near_copies=0 if found is None else found[1],
        in_memory=_is_at_hand(train.inputs),
    )


def _is_at_hand(inputs: Inputs) -> bool:
    return isinstance(inputs, Memory | CachedImages)


def copies(train: Split, test: Split) -> tuple[int, int] | None:
    """How many test rows are among the training rows: exactly, and nearly (1, 2).

    Args:
        train: Training images.
        test: Test images.

    Returns:
        Both counts; None if that would take long (see `look`).

    >>> from kontrast.data import load
    >>> data = load("fashion-mini", limit=500, test_limit=100)
    >>> copies(data.train, data.test), copies(data.train, data.train.subset(torch.tensor([3, 4])))
    ((0, 0), (2, 0))
    """
    parts = (train.inputs, test.inputs)
    if not all(_is_at_hand(inputs) for inputs in parts) or len(train) + len(test) > MOST_ROWS:
        return None
    (digests, bits, thumbnails), (test_digests, test_bits, test_thumbnails) = map(_fingerprints, parts)
    known = set(digests)
    is_exact = torch.tensor([digest in known for digest in test_digests])
    shape = train.inputs.shape
    if shape is None or min(shape[1:]) < LEAST_SIDE:
        return int(is_exact.sum()), 0
    is_near = torch.zeros(len(test), dtype=torch.bool)
    for rows in torch.split(torch.arange(len(test)), CHUNK):
        same_bits = (test_bits[rows] @ bits.T + 64) / 2
        correlation = test_thumbnails[rows] @ thumbnails.T
        is_near[rows] = ((same_bits >= 64 - MOST_BITS) & (correlation >= LEAST_CORRELATION)).any(1)
    return int(is_exact.sum()), int((is_near & ~is_exact).sum())


def _fingerprints(inputs: Inputs) -> tuple[list[bytes], Tensor, Tensor]:
    """Of each row a digest of its pixels, the bits (1) as ±1 ``[N, 64]``, and its standardised grey thumbnail."""
    digests: list[bytes] = []
    bits, thumbnails = [], []
    for rows in torch.split(torch.arange(len(inputs)), CHUNK):
        images = inputs.read(rows)
        digests += [hashlib.blake2b(image.numpy().tobytes(), digest_size=16).digest() for image in images]
        grey = with_channels(images, 1).float()
        bits.append(torch.where(_shrink(grey, (8, 9)).diff(dim=-1) > 0, 1.0, -1.0).flatten(1))  # (1)
        small = _shrink(grey, (16, 16)).flatten(1)
        thumbnails.append(functional.normalize(small - small.mean(1, keepdim=True), dim=1))  # (2)
    return digests, torch.cat(bits), torch.cat(thumbnails)


def _shrink(grey: Tensor, size: tuple[int, int]) -> Tensor:
    return functional.interpolate(grey, size, mode="bilinear", antialias=True)[:, 0]
