"""What a data set is, once loaded: splits of inputs and labels, read by index.

A split's inputs are anything that can ``read(indices)``: a tensor in memory (`Memory`), files decoded when they are
read (`kontrast.data.folder.Folder`), a cache file (`kontrast.data.cache.CachedImages`), or rows of another
(`Rows`). Images are uint8 ``[n, C, H, W]`` and vectors float32 ``[n, D]``, so a batch is one indexing and never a loop
over images where they lie in memory.

>>> images = torch.arange(6 * 3 * 2 * 2, dtype=torch.uint8).reshape(6, 3, 2, 2)
>>> split = Split(Memory(images), torch.tensor([0, 0, 0, 1, 1, 1]))
>>> split.inputs.read(torch.tensor([5, 0])).shape
torch.Size([2, 3, 2, 2])
>>> split.limited(4).labels
tensor([0, 0, 1, 1])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, runtime_checkable

import torch
from torch import Tensor

Crop = Callable[[Tensor, int], Tensor]
"""``crop(image uint8 [C, h, w], seed) → uint8 [C, H, W]``: what brings images of different sizes to one.

If it also has ``size`` (H, W) and ``box(height, width, seed) → (top, left, height, width)``, files that can be decoded
at a smaller scale are (JPEG), as far as the box still covers ``size``. With ``of_reduced(image, seed, full)`` it is
then told the (height, width) that the image had, so that what is drawn does not depend on the scale.
"""


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
