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

from kontrast.data.images import CentreCrop, Crop
from kontrast.files import expanded


@runtime_checkable
class Inputs(Protocol):
    """What a split's inputs can do: a length, a shape, and reading rows by index."""

    def __len__(self) -> int: ...

    @property
    def shape(self) -> tuple[int, ...] | None:
        """(C, H, W) or (D,); None where images differ in size, and ``read`` needs a crop."""
        ...

    def read(self, indices: Tensor, crop: Crop | None = None, seeds: Sequence[int] | None = None) -> Tensor:
        """Rows ``indices [n]``: uint8 ``[n, C, H, W]`` or float32 ``[n, D]``, on the CPU.

        A ``crop`` is applied to each image with its own entry of ``seeds``, so what it draws depends on neither worker
        nor rank.
        """
        ...


def each_cropped(images: Sequence[Tensor] | Tensor, crop: Crop, seeds: Sequence[int] | None) -> Tensor:
    """``crop`` on each of n images with its own seed, stacked; the one loop that inputs share.

    >>> each_cropped(torch.zeros(2, 3, 8, 8, dtype=torch.uint8), lambda image, seed: image[:, :4, :4], [0, 1]).shape
    torch.Size([2, 3, 4, 4])
    """
    if seeds is None or len(seeds) != len(images):
        seen = "none" if seeds is None else str(len(seeds))
        raise ValueError(f"a crop of {len(images)} images needs as many seeds, one each; seen {seen}")
    return torch.stack([crop(image, int(seed)) for image, seed in zip(images, seeds, strict=True)])


class Memory:
    """A tensor in memory: uint8 images ``[N, C, H, W]`` or float32 vectors ``[N, D]``.

    >>> Memory(torch.eye(3)).read(torch.tensor([2]))
    tensor([[0., 0., 1.]])
    """

    def __init__(self, values: Tensor) -> None:
        images = values.dtype == torch.uint8 and values.ndim == 4
        if not images and not (values.dtype == torch.float32 and values.ndim == 2):
            raise ValueError(
                f"inputs are {values.dtype} {list(values.shape)}; images are uint8 [N, C, H, W], vectors float32 [N, D]"
            )
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"Memory({str(self.values.dtype).removeprefix('torch.')} {list(self.values.shape)})"

    @property
    def shape(self) -> tuple[int, ...]:
        """(C, H, W) or (D,)."""
        return tuple(self.values.shape[1:])

    def read(self, indices: Tensor, crop: Crop | None = None, seeds: Sequence[int] | None = None) -> Tensor:
        """Rows by index; each one cropped if a crop is given."""
        rows = self.values.index_select(0, indices)
        if crop is None:
            return rows
        if rows.ndim != 4:
            raise ValueError(f"vectors {list(self.shape)} have nothing to crop; read them without a crop")
        return each_cropped(rows, crop, seeds)


class Rows:
    """Some rows of other inputs, in a given order; nothing is copied.

    >>> Rows(Memory(torch.eye(3)), torch.tensor([2, 0])).read(torch.tensor([0]))
    tensor([[0., 0., 1.]])
    """

    def __init__(self, inputs: Inputs, rows: Tensor) -> None:
        self.inputs, self.rows = inputs, rows

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"Rows({len(self)} of {self.inputs!r})"

    @property
    def shape(self) -> tuple[int, ...] | None:
        """That of the inputs it takes rows of."""
        return self.inputs.shape

    def read(self, indices: Tensor, crop: Crop | None = None, seeds: Sequence[int] | None = None) -> Tensor:
        """The rows' rows."""
        return self.inputs.read(self.rows[indices], crop, seeds)


@dataclass(frozen=True, eq=False)
class Split:
    """Inputs, and labels int64 ``[N]`` unless there are none.

    ``names`` are those of the rows' files, from the data's folder on; None where rows are no files.
    """

    inputs: Inputs
    labels: Tensor | None = None
    names: Sequence[str] | None = None

    def __post_init__(self) -> None:
        labels = self.labels
        if self.names is not None and len(self.names) != len(self.inputs):
            raise ValueError(f"{len(self.names)} names for {len(self.inputs)} rows; expected one a row")
        if labels is None:
            return
        if labels.ndim != 1 or labels.dtype != torch.int64 or len(labels) != len(self.inputs):
            raise ValueError(
                f"labels are {labels.dtype} {list(labels.shape)}; expected torch.int64 [{len(self.inputs)}], one a row"
            )
        if len(labels) and int(labels.min()) < 0:
            raise ValueError(f"labels count from 0; seen {int(labels.min())}. Pass labels=None for unlabelled rows")

    def __len__(self) -> int:
        return len(self.inputs)

    def require_labels(self, what: str) -> Tensor:
        """The labels; an error that says who needs them if there are none.

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
        """The rows ``indices [n]``, in that order (copied where they lie in memory).

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
        """The same inputs with other labels, or none."""
        return replace(self, labels=labels)

    def limited(self, n: int, seed: int = 0) -> Split:
        """At most ``n`` rows, as evenly over the classes as they allow, in their old order.

        With one seed, fewer rows are always among the more: 1,000 rows are part of the 2,000.

        >>> Split(Memory(torch.eye(7)), torch.tensor([0, 0, 0, 0, 0, 1, 2])).limited(5).labels  # small classes: all
        tensor([0, 0, 0, 1, 2])
        """
        if n < 1:
            raise ValueError(f"limit is {n}; expected at least 1 row (None for all)")
        if n >= len(self):
            return self
        drawn = torch.randperm(len(self), generator=torch.Generator().manual_seed(seed))
        if self.labels is not None:
            drawn = drawn[torch.argsort(_turn(self.labels[drawn]), stable=True)]
        return self.subset(drawn[:n].sort().values)

    def balanced(self, per_class: int, seed: int = 0) -> Split:
        """Exactly ``per_class`` rows of each class, in their old order.

        >>> Split(Memory(torch.eye(6)), torch.tensor([0, 0, 0, 1, 1, 0])).balanced(2).labels.bincount()
        tensor([2, 2])
        """
        labels = self.require_labels("a class-balanced subset")
        classes, counts = torch.unique(labels, return_counts=True)
        if per_class < 1 or int(counts.min()) < per_class:
            smallest = int(counts.argmin())
            raise ValueError(
                f"per_class is {per_class}; expected 1 to {int(counts.min())}, as many as the smallest class "
                f"(label {int(classes[smallest])}) has. limited(n) takes what there is"
            )
        return self.limited(per_class * len(classes), seed)


def _turn(labels: Tensor) -> Tensor:
    """How many rows of its class stand before each row: taking rows in turns keeps the classes even. int64 ``[N]``."""
    order = torch.argsort(labels, stable=True)
    _, counts = torch.unique_consecutive(labels[order], return_counts=True)
    first = torch.repeat_interleave(counts.cumsum(0) - counts, counts)
    turn = torch.empty_like(labels)
    turn[order] = torch.arange(len(labels)) - first
    return turn


@dataclass(frozen=True, eq=False, kw_only=True)
class DataSet:
    """A data set: its splits, the names of its classes, and the channel statistics it is normalised with.

    ``mean`` and ``std`` are per channel for pixels in 0…1 (per feature for vectors). ``note`` says where the data come
    from and under which licence, ``skipped`` which files could not be read and why.

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
        """How many classes; an error if the training rows have no labels."""
        labels = self.train.require_labels("the number of classes")
        if self.class_names:
            return len(self.class_names)
        tested = None if self.test is None else self.test.labels  # has them all where few rows are left to train on
        return max(int(y.max()) for y in (labels, tested) if y is not None and len(y)) + 1

    def limit(self, n: int | None, seed: int = 0, *, test: int | None = None) -> DataSet:
        """At most ``n`` rows of the training and of the unlabelled split, classes even; testing stays whole.

        ``test`` limits the testing rows too; accuracy is then no longer the set's usual figure.
        """

        def cut(split: Split | None, most: int | None) -> Split | None:
            return split if split is None or most is None else split.limited(most, seed)

        train = cut(self.train, n)
        assert train is not None
        return replace(self, train=train, test=cut(self.test, test), unlabelled=cut(self.unlabelled, n))


def default_root() -> Path:
    """Where data sets lie: ``$KONTRAST_DATA``, else ``~/.cache/kontrast``."""
    given = os.environ.get("KONTRAST_DATA")
    return expanded(given, "KONTRAST_DATA") if given else Path.home() / ".cache" / "kontrast"


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to load.

    ``root`` is where named sets lie (`default_root`) and ``download`` whether they may be fetched. ``size`` brings
    every image to that many pixels square, ``channels`` makes it RGB (3) or grey (1); None leaves images as they are,
    and makes those of folders RGB. ``labelled=False`` drops labels and takes a folder's subfolders for mere folders,
    not classes; ``labelled=True`` insists on labels. ``memory`` is how many bytes of images are held in memory,
    ``cache`` the folder for cache files (True: one below ``root``), ``verify`` whether a cache's data are checked on
    opening. ``check`` is how closely files are looked at beforehand: names only, headers and ends, or decoded in full.
    ``max_bad`` is how many unreadable files are skipped before it stops: a number, or a share below 1; None is 1 % but
    at least 10.

    >>> Options(size=64).bad_limit(5000), Options(max_bad=0).bad_limit(5000), Options(max_bad=0.5).bad_limit(5000)
    (50, 0, 2500)
    """

    root: Path | None = None
    download: bool = True
    size: int | None = None
    channels: int | None = None
    labelled: bool | None = None
    memory: int = 2_000_000_000
    cache: bool | str | os.PathLike[str] | None = None
    verify: bool = False
    check: Literal["names", "headers", "full"] = "headers"
    max_bad: int | float | None = None

    def __post_init__(self) -> None:
        if self.size is not None and (not isinstance(self.size, int) or self.size < 1):
            raise ValueError(f"size is {self.size!r}; expected a number of pixels, 1 or more, or None")
        if self.channels not in (None, 1, 3):
            raise ValueError(
                f"channels is {self.channels!r}; expected 3 (RGB), 1 (grey), or None for what the data have"
            )
        if self.labelled not in (None, True, False):
            raise ValueError(f"labelled is {self.labelled!r}; expected True, False, or None for what the data have")
        if not isinstance(self.memory, int | float) or self.memory < 0:
            raise ValueError(f"memory is {self.memory!r}; expected a number of bytes, 0 or more")
        if self.check not in ("names", "headers", "full"):
            raise ValueError(f"check is {self.check!r}; expected 'names', 'headers' or 'full'")
        if self.max_bad is not None and (not isinstance(self.max_bad, int | float) or self.max_bad < 0):
            raise ValueError(f"max_bad is {self.max_bad!r}; expected a number of files, a share below 1, or None")

    def bad_limit(self, files: int) -> int:
        """How many of ``files`` may be unreadable."""
        if self.max_bad is None:
            return max(10, files // 100)
        return int(self.max_bad * files) if 0 < self.max_bad < 1 else int(self.max_bad)

    @property
    def where(self) -> Path:
        """The folder that named sets are looked for in."""
        return default_root() if self.root is None else self.root

    @property
    def cache_folder(self) -> Path | None:
        """The folder that cache files lie in; None if there is to be no cache."""
        if self.cache is None or self.cache is False:
            return None
        return self.where / "images" if self.cache is True else expanded(self.cache, "cache")


CHUNK = 1 << 21  # values at a time: 16 MB in float64
SAMPLE = 1024  # rows that are read where they do not lie in memory; an image's mean varies by 0.12, theirs by 0.004


def channel_statistics(inputs: Inputs, *, size: int = 224) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """(1): per channel of images, per feature of vectors.

    Of what does not lie in memory `SAMPLE` rows are read, evenly taken; of images that differ in size, the middle of
    each at ``size``.

    >>> channel_statistics(Memory(torch.tensor([0, 255, 255, 0], dtype=torch.uint8).reshape(2, 1, 1, 2)))
    ((0.5,), (0.5,))
    """
    if not len(inputs):
        raise ValueError("no rows, no statistics; expected at least one")
    varied = inputs.shape is None
    count = len(inputs) if isinstance(inputs, Memory) else min(len(inputs), SAMPLE)
    taken = torch.arange(count) * len(inputs) // count
    crop = CentreCrop(size) if varied else None
    n, shift, total, squares = 0, None, torch.zeros(()), torch.zeros(())
    step = max(1, CHUNK // (3 * size * size if inputs.shape is None else math.prod(inputs.shape)))
    for start in range(0, count, step):
        rows = taken[start : start + step]
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
