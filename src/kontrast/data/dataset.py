"""What a data set is once it is loaded: splits of inputs and labels that are read by row number.

The inputs of a split are any object with ``read(indices)`` (`Inputs`): a tensor in memory (`Memory`), image files that
are decoded when read (`kontrast.data.image_files.Folder`), a cache file (`kontrast.data.cache.CachedImages`), or some
rows of another (`Rows`). Images are uint8 ``[n, C, H, W]`` and vectors float32 ``[n, D]``. `Options` says how a source
is loaded, and `channel_statistics` computes the mean and standard deviation that inputs are normalised with.

>>> images = torch.arange(6 * 3 * 2 * 2, dtype=torch.uint8).reshape(6, 3, 2, 2)
>>> split = Split(Memory(images), torch.tensor([0, 0, 0, 1, 1, 1]))
>>> split.inputs.read(torch.tensor([5, 0])).shape
torch.Size([2, 3, 2, 2])
>>> split.limited(4).labels
tensor([0, 0, 1, 1])
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

import torch
from torch import Tensor

from kontrast.data.images import INTERPOLATIONS, CentreCrop, Crop, Interpolation
from kontrast.files import expanded


@runtime_checkable
class Inputs(Protocol):
    """The inputs of a split: a length, a shape, and reading of rows by number.

    >>> isinstance(Memory(torch.eye(3)), Inputs)
    True
    """

    def __len__(self) -> int: ...

    @property
    def shape(self) -> tuple[int, ...] | None:
        """(C, H, W) or (D,); None where images differ in size and ``read`` needs a crop."""
        ...

    def read(self, indices: Tensor, crop: Crop | None = None, seeds: Sequence[int] | None = None) -> Tensor:
        """Read the rows ``indices [n]``: uint8 ``[n, C, H, W]`` or float32 ``[n, D]``, on the CPU.

        Args:
            indices: row numbers, int64.
            crop: applied to each image with its own entry of ``seeds``, so that what it draws depends on neither worker
                nor rank.
            seeds: one for each row; required with a crop.
        """
        ...


def crop_each(images: Sequence[Tensor] | Tensor, crop: Crop, seeds: Sequence[int] | None) -> Tensor:
    """Crop each of n images with its own seed and stack the results.

    >>> crop_each(torch.zeros(2, 3, 8, 8, dtype=torch.uint8), lambda image, seed: image[:, :4, :4], [0, 1]).shape
    torch.Size([2, 3, 4, 4])
    """
    return torch.stack([crop(image, seed) for image, seed in zip(images, check_seeds(seeds, len(images)), strict=True)])


def check_seeds(seeds: Sequence[int] | None, images: int) -> list[int]:
    """Check that there is a seed for each of the images that are cropped.

    >>> check_seeds(None, 2)
    Traceback (most recent call last):
        ...
    ValueError: seeds: must be 2, one for each image, when a crop is given; got none
    """
    if seeds is None or len(seeds) != images:
        count = "none" if seeds is None else len(seeds)
        raise ValueError(f"seeds: must be {images}, one for each image, when a crop is given; got {count}")
    return [int(seed) for seed in seeds]


class Memory:
    """Inputs in memory.

    Args:
        values: uint8 images ``[N, C, H, W]`` or float32 vectors ``[N, D]``.

    Raises:
        ValueError: another type or shape.

    >>> Memory(torch.eye(3)).read(torch.tensor([2]))
    tensor([[0., 0., 1.]])
    """

    def __init__(self, values: Tensor) -> None:
        images = values.dtype == torch.uint8 and values.ndim == 4
        if not images and not (values.dtype == torch.float32 and values.ndim == 2):
            raise ValueError(
                f"values of {values.dtype} {list(values.shape)}: must be uint8 images [N, C, H, W] or float32 vectors "
                f"[N, D]"
            )
        self.values = values
        self.shape = tuple(values.shape[1:])

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"Memory({str(self.values.dtype).removeprefix('torch.')} {list(self.values.shape)})"

    def read(self, indices: Tensor, crop: Crop | None = None, seeds: Sequence[int] | None = None) -> Tensor:
        """Read rows by number, each cropped if a crop is given (see `Inputs.read`)."""
        rows = self.values.index_select(0, indices)
        if crop is None:
            return rows
        if rows.ndim != 4:
            raise ValueError(f"crop: must be None for vectors {list(self.shape)}; only images can be cropped")
        return crop_each(rows, crop, seeds)


class Rows:
    """Some rows of other inputs, in a given order, without a copy.

    Args:
        inputs: the inputs to take rows of.
        rows: row numbers, int64 ``[n]``.

    >>> Rows(Memory(torch.eye(3)), torch.tensor([2, 0])).read(torch.tensor([0]))
    tensor([[0., 0., 1.]])
    """

    def __init__(self, inputs: Inputs, rows: Tensor) -> None:
        self.inputs, self.rows, self.shape = inputs, rows, inputs.shape

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"Rows({len(self)} of {self.inputs!r})"

    def read(self, indices: Tensor, crop: Crop | None = None, seeds: Sequence[int] | None = None) -> Tensor:
        """Read rows by number (see `Inputs.read`)."""
        return self.inputs.read(self.rows[indices], crop, seeds)


@dataclass(frozen=True, eq=False)
class Split:
    """Inputs with their labels: one split of a data set.

    Args:
        inputs: the rows.
        labels: int64 ``[N]``, from 0 on; None without labels.
        names: the rows' file names relative to the data's folder; None if rows are not files.

    Raises:
        ValueError: labels or names that do not fit the inputs.

    >>> len(Split(Memory(torch.eye(3)), torch.tensor([0, 1, 2])))
    3
    """

    inputs: Inputs
    labels: Tensor | None = None
    names: Sequence[str] | None = None

    def __post_init__(self) -> None:
        labels = self.labels
        if self.names is not None and len(self.names) != len(self.inputs):
            raise ValueError(f"names: must be {len(self.inputs)}, one for each row; got {len(self.names)}")
        if labels is None:
            return
        if labels.ndim != 1 or labels.dtype != torch.int64 or len(labels) != len(self.inputs):
            raise ValueError(
                f"labels of {labels.dtype} {list(labels.shape)}: must be torch.int64 [{len(self.inputs)}], one for "
                f"each row"
            )
        if len(labels) and int(labels.min()) < 0:
            raise ValueError(f"labels={int(labels.min())}: must be 0 or more. Pass labels=None for rows without labels")

    def __len__(self) -> int:
        return len(self.inputs)

    def require_labels(self, what: str) -> Tensor:
        """Return the labels, or raise an error that says who needs them.

        Args:
            what: who needs the labels; the error begins with it.

        Raises:
            ValueError: the split has no labels.

        >>> Split(Memory(torch.eye(2))).require_labels("SupCon")
        Traceback (most recent call last):
            ...
        ValueError: SupCon needs labels and these 2 rows have none; ...
        """
        if self.labels is None:
            raise ValueError(
                f"{what} needs labels and these {len(self)} rows have none; put images in one subfolder a class, give "
                "the array's labels (y_train, y_test), or choose a method without labels (SimCLR, MoCo, SCE)"
            )
        return self.labels

    def subset(self, indices: Tensor) -> Split:
        """Return the rows ``indices [n]``, in that order (a copy if the inputs are in memory).

        >>> Split(Memory(torch.eye(3)), torch.tensor([0, 1, 2])).subset(torch.tensor([2, 1])).labels
        tensor([2, 1])
        """
        inputs: Inputs
        if isinstance(self.inputs, Memory):
            inputs = Memory(self.inputs.read(indices))
        elif isinstance(self.inputs, Rows):  # one indirection, however often it is repeated
            inputs = Rows(self.inputs.inputs, self.inputs.rows[indices])
        else:
            inputs = Rows(self.inputs, indices)
        names = None if self.names is None else [self.names[i] for i in indices.tolist()]
        return Split(inputs, None if self.labels is None else self.labels[indices], names)

    def with_labels(self, labels: Tensor | None) -> Split:
        """Return the same inputs with other labels, or with none."""
        return replace(self, labels=labels)

    def limited(self, n: int, seed: int = 0) -> Split:
        """Return at most ``n`` rows, as evenly over the classes as possible, in their old order.

        With one seed, a smaller limit keeps a subset of a larger one: the 1,000 rows are among the 2,000.

        Args:
            n: how many rows, at least 1.
            seed: which rows are drawn.

        Raises:
            ValueError: ``n`` is below 1.

        >>> Split(Memory(torch.eye(7)), torch.tensor([0, 0, 0, 0, 0, 1, 2])).limited(5).labels  # small classes: all
        tensor([0, 0, 0, 1, 2])
        """
        if n < 1:
            raise ValueError(f"limit={n}: must be at least 1. Use None for all rows")
        if n >= len(self):
            return self
        order = torch.randperm(len(self), generator=torch.Generator().manual_seed(seed))
        if self.labels is not None:
            order = order[torch.argsort(_turn(self.labels[order]), stable=True)]
        return self.subset(order[:n].sort().values)

    def balanced(self, per_class: int, seed: int = 0) -> Split:
        """Return exactly ``per_class`` rows of each class, in their old order.

        Args:
            per_class: how many rows of each class.
            seed: which rows are drawn.

        Raises:
            ValueError: no labels, or a class with fewer rows.

        >>> Split(Memory(torch.eye(6)), torch.tensor([0, 0, 0, 1, 1, 0])).balanced(2).labels.bincount()
        tensor([2, 2])
        """
        labels = self.require_labels("a class-balanced subset")
        classes, counts = torch.unique(labels, return_counts=True)
        if per_class < 1 or int(counts.min()) < per_class:
            smallest = int(counts.argmin())
            raise ValueError(
                f"per_class={per_class}: must be 1 to {int(counts.min())}, the size of the smallest class "
                f"(label {int(classes[smallest])}). Use limited(n) to allow uneven classes"
            )
        return self.limited(per_class * len(classes), seed)


def _turn(labels: Tensor) -> Tensor:
    """For each row the number of rows of its class before it, int64 ``[N]``: sorting by it keeps the classes even."""
    order = torch.argsort(labels, stable=True)
    _, counts = torch.unique_consecutive(labels[order], return_counts=True)
    first = torch.repeat_interleave(counts.cumsum(0) - counts, counts)
    turn = torch.empty_like(labels)
    turn[order] = torch.arange(len(labels)) - first
    return turn


@dataclass(frozen=True, eq=False, kw_only=True)
class DataSet:
    """A data set: its splits, the names of its classes, and how an encoder's inputs are made of its rows.

    Args:
        name: a short name.
        train: the training rows.
        test: the test rows, if there are any.
        unlabelled: further rows without labels, if there are any.
        class_names: names of the classes 0, 1, 2, …; None without names.
        kind: "image" or "vector".
        mean: per channel for pixels in 0…1, per feature for vectors.
        std: the same.
        size: pixels of the side at which an encoder sees the middle of each image; None for the images' own size (224
            if they have several).
        crop: the share of the shorter side that this middle has; None for all of images of one size, 0.875 of others.
        interpolation: how images are resized for an encoder, "bilinear" or "bicubic".
        note: the source of the data and their licence.
        skipped: files that could not be read, each with the reason.

    >>> data = DataSet(name="eyes", train=Split(Memory(torch.eye(4)), torch.tensor([0, 1, 0, 1])), kind="vector",
    ...     mean=(0.25,) * 4, std=(0.5,) * 4, class_names=["even", "odd"])
    >>> data.num_classes, len(data.limit(2).train)
    (2, 2)
    >>> data
    DataSet 'eyes': 4 vectors (4,) in 2 classes
    """

    name: str
    train: Split
    test: Split | None = None
    unlabelled: Split | None = None
    class_names: list[str] | None = None
    kind: Literal["image", "vector"] = "image"
    mean: tuple[float, ...]
    std: tuple[float, ...]
    size: int | None = None
    crop: float | None = None
    interpolation: Interpolation = "bilinear"
    note: str = ""
    skipped: tuple[tuple[str, str], ...] = ()

    def __repr__(self) -> str:
        shape = self.train.inputs.shape or "of several sizes"
        parts = [f"{len(self.train):,} {self.kind}s {shape}"]
        parts += [f"{len(self.test):,} for testing"] if self.test else []
        parts += [f"{len(self.unlabelled):,} unlabelled"] if self.unlabelled else []
        classes = f"in {self.num_classes} classes" if self.labelled else "without labels"
        return f"DataSet {self.name!r}: {', '.join(parts)} {classes}"

    @property
    def labelled(self) -> bool:
        """Whether the training rows have labels."""
        return self.train.labels is not None

    @property
    def num_classes(self) -> int:
        """The number of classes; raises a ValueError if the training rows have no labels."""
        labels = self.train.require_labels("the number of classes")
        if self.class_names:
            return len(self.class_names)
        # The test rows have all classes where few rows are left to train on.
        test_labels = None if self.test is None else self.test.labels
        return max(int(y.max()) for y in (labels, test_labels) if y is not None and len(y)) + 1

    def limit(self, n: int | None, seed: int = 0, *, test: int | None = None) -> DataSet:
        """Keep at most ``n`` rows of the training and of the unlabelled split, evenly over the classes.

        Args:
            n: how many rows; None keeps all.
            seed: which rows are drawn.
            test: limits the test rows too; accuracy is then no longer comparable with published figures.
        """
        limits = {"train": n, "test": test, "unlabelled": n}
        splits = {name: getattr(self, name) for name, most in limits.items() if most is not None}
        return replace(self, **{name: split.limited(limits[name], seed) for name, split in splits.items() if split})


def default_root() -> Path:
    """The folder of named data sets: ``$KONTRAST_DATA``, else ``~/.cache/kontrast``."""
    folder = os.environ.get("KONTRAST_DATA")
    return expanded(folder, "KONTRAST_DATA") if folder else Path.home() / ".cache" / "kontrast"


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to load a data set.

    Args:
        root: the folder of named sets (default: ``$KONTRAST_DATA``, else ``~/.cache/kontrast``).
        download: whether missing files may be downloaded.
        size: resize every image to this many pixels square; None keeps the sizes.
        interpolation: how it is resized, "bilinear" or "bicubic".
        channels: 3 (RGB) or 1 (grey); None keeps the channels of arrays and sets, and makes images of folders RGB.
        labelled: False drops labels and treats subfolders as plain folders; True requires labels; None takes what is
            there.
        memory: how many bytes of images may be held in memory.
        cache: the folder for cache files; True is ``images`` below the root; None or False uses no cache.
        verify: whether all data of a cache are checked when it is opened.
        check: how files are checked before loading: "names" only, "headers" and file ends, or "full" decoding.
        max_bad: how many unreadable files are skipped before loading stops: a number, or a share below 1; None is 1 %,
            but at least 10.

    Raises:
        ValueError: a value outside its range.

    >>> Options(size=64).bad_limit(5000), Options(max_bad=0).bad_limit(5000), Options(max_bad=0.5).bad_limit(5000)
    (50, 0, 2500)
    """

    root: Path | None = None
    download: bool = True
    size: int | None = None
    interpolation: Interpolation = "bilinear"
    channels: int | None = None
    labelled: bool | None = None
    memory: int = 2_000_000_000
    cache: bool | str | os.PathLike[str] | None = None
    verify: bool = False
    check: Literal["names", "headers", "full"] = "headers"
    max_bad: int | float | None = None

    def __post_init__(self) -> None:
        if self.size is not None and (not isinstance(self.size, int) or self.size < 1):
            raise ValueError(f"size={self.size!r}: must be a number of pixels, 1 or more, or None")
        if self.interpolation not in INTERPOLATIONS:
            raise ValueError(f"interpolation={self.interpolation!r}: must be one of {', '.join(INTERPOLATIONS)}")
        if self.channels not in (None, 1, 3):
            raise ValueError(
                f"channels={self.channels!r}: must be 3 (RGB), 1 (grey), or None to keep the channels of the data"
            )
        if self.labelled not in (None, True, False):
            raise ValueError(f"labelled={self.labelled!r}: must be True, False, or None to use labels if there are any")
        if not isinstance(self.memory, int | float) or self.memory < 0:
            raise ValueError(f"memory={self.memory!r}: must be a number of bytes, 0 or more")
        if self.check not in ("names", "headers", "full"):
            raise ValueError(f"check={self.check!r}: must be 'names', 'headers' or 'full'")
        if self.max_bad is not None and (not isinstance(self.max_bad, int | float) or self.max_bad < 0):
            raise ValueError(f"max_bad={self.max_bad!r}: must be a number of files, a share below 1, or None")

    def bad_limit(self, files: int) -> int:
        """How many of ``files`` may be unreadable."""
        if self.max_bad is None:
            return max(10, files // 100)
        return int(self.max_bad * files) if 0 < self.max_bad < 1 else int(self.max_bad)

    @property
    def centre_crop(self) -> CentreCrop | None:
        """What brings every image to ``size``; None without a size."""
        return None if self.size is None else CentreCrop(self.size, interpolation=self.interpolation)

    @property
    def where(self) -> Path:
        """The folder of named sets."""
        return default_root() if self.root is None else self.root

    @property
    def cache_folder(self) -> Path | None:
        """The folder of cache files; None without a cache."""
        if self.cache is None or self.cache is False:
            return None
        return self.where / "images" if self.cache is True else expanded(self.cache, "cache")


CHUNK = 1 << 21  # values at a time: 16 MB in float64
SAMPLE = 1024  # rows that are read where they do not lie in memory; an image's mean varies by 0.12, theirs by 0.004


def channel_statistics(inputs: Inputs, *, size: int = 224) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Compute mean and standard deviation per channel of images, per feature of vectors, in one pass and float64.

        (1)  mean_c = 1/n Σ x_c,   std_c = √(1/n Σ (x_c − mean_c)²)        n = all pixels of channel c, x in 0…1

    Pixels are integers, so their sums and sums of squares are exact in float64 (below 2⁵³, that is 10¹¹ pixels);
    vectors are summed about the first chunk's mean, so that a large offset does not swallow the deviations. A constant
    channel gets std 1, so that dividing by it gives zeros and not NaN.

    Args:
        inputs: at least one row. If they are not in memory, `SAMPLE` evenly spaced rows are read.
        size: images that differ in size are centre-cropped to this many pixels.

    Returns:
        Means and standard deviations.

    Raises:
        ValueError: no rows.

    >>> channel_statistics(Memory(torch.tensor([0, 255, 255, 0], dtype=torch.uint8).reshape(2, 1, 1, 2)))
    ((0.5,), (0.5,))
    """
    if not len(inputs):
        raise ValueError("inputs: must have at least one row to compute statistics")
    varied = inputs.shape is None
    count = len(inputs) if isinstance(inputs, Memory) else min(len(inputs), SAMPLE)
    sample = torch.arange(count) * len(inputs) // count
    crop = CentreCrop(size) if varied else None
    n, shift, total, squares = 0, None, torch.zeros(()), torch.zeros(())
    step = max(1, CHUNK // (3 * size * size if inputs.shape is None else math.prod(inputs.shape)))
    for start in range(0, count, step):
        rows = sample[start : start + step]
        chunk = inputs.read(rows, crop, [0] * len(rows) if varied else None)
        x = chunk.to(torch.float64)
        x = x.transpose(0, 1).flatten(1) if x.ndim == 4 else x.T
        if shift is None:
            shift = torch.zeros(len(x), 1, dtype=torch.float64) if chunk.dtype == torch.uint8 else x.mean(1, True)
        x = x - shift
        n, total, squares = n + x.shape[1], total + x.sum(1), squares + x.square().sum(1)
    assert shift is not None
    mean, variance = total / n, squares / n - (total / n).square()
    # What rounding leaves of a constant feature is no deviation; integers leave nothing.
    least = 1e-12 * (squares / n).clamp_min(torch.finfo(torch.float64).tiny)
    std = variance.clamp_min(0).sqrt().where(variance > least, torch.ones(()).double())
    mean = mean + shift[:, 0]
    if chunk.dtype == torch.uint8:
        mean, std = mean / 255, (std / 255).where(variance > least, std)
    return tuple(mean.tolist()), tuple(std.tolist())
