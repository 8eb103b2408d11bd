"""Anything that can be indexed as a data set: torch ``Dataset`` objects, lists of images.

Every item is looked at once: it is ``(image, label)``, ``(image,)`` or just the image; an image may be a PIL image, an
array or a tensor, a 1-d item is a feature vector. If one image is coloured, grey ones are made RGB. Items of one shape
that fit into memory are kept there; others are read from the object each time (`Items`). Random transforms belong into
kontrast's augmentations: in an object that is kept in memory each would be drawn only once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kontrast.data.arrays import numbered
from kontrast.data.images import CentreCrop, ImageError, from_value, with_channels
from kontrast.data.options import Options
from kontrast.data.records import Crop, DataSet, Memory, Split, each_cropped
from kontrast.data.statistics import channel_statistics
from kontrast.registry import quoted


class Items:
    """The items of an object, converted when read.

    >>> Items([torch.zeros(3, 4, 4), torch.ones(3, 2, 2)], shape=None).read(
    ...     torch.tensor([1]), lambda image, seed: image[:, :1, :1], [0])
    tensor([[[[255]],
    <BLANKLINE>
             [[255]],
    <BLANKLINE>
             [[255]]]], dtype=torch.uint8)
    """

    def __init__(
        self, source: Any, *, shape: tuple[int, ...] | None, channels: int | None = None, crop: Crop | None = None
    ) -> None:
        self.source, self.channels, self.crop, self._shape = source, channels, crop, shape

    def __len__(self) -> int:
        return len(self.source)

    def __repr__(self) -> str:
        return f"Items({len(self)} of {type(self.source).__name__}, shape={self.shape})"

    @property
    def shape(self) -> tuple[int, ...] | None:
        """(C, H, W) or (D,); None where images differ in size."""
        return self._shape

    def read(self, indices: Tensor, crop: Crop | None = None, seeds: Sequence[int] | None = None) -> Tensor:
        """Asks the object for the items ``indices``, one by one."""
        rows = [_value(self.source[int(i)], int(i), self.channels, labelled=False)[0] for i in indices]
        if crop is not None:
            return each_cropped(rows, crop, seeds)
        if self.crop is not None:
            return each_cropped(rows, self.crop, [0] * len(rows))
        if self.shape is None:
            raise ValueError("these images differ in size; read them with a crop, or load them with size=…")
        return torch.stack(rows)


def from_object(source: Any, options: Options, *, test: Any = None, name: str | None = None) -> DataSet:
    """A map-style object (``len`` and indexing) as training rows, and perhaps another one for testing.

    >>> pairs = [(torch.zeros(1, 4, 4), "cat"), (torch.ones(1, 4, 4), "dog")]
    >>> from_object(pairs, Options())
    DataSet 'list': 2 images (1, 4, 4) in 2 classes
    """
    inputs, labels = _collect(source, options)
    tested: tuple[Memory | Items | None, list[Any] | None] = (None, None) if test is None else _collect(test, options)
    if tested[0] is not None:
        inputs, tested = _coloured(inputs, tested[0]), (_coloured(tested[0], inputs), tested[1])
        if tested[0].shape != inputs.shape:
            raise ValueError(f"training items are {inputs.shape} and test items {tested[0].shape}; expected the same")
    names = getattr(source, "classes", None)
    known = isinstance(names, list | tuple) and all(isinstance(n, str) for n in names)
    y_train, y_test, class_names = numbered(labels, tested[1], names if known else None)
    mean, std = channel_statistics(inputs)
    return DataSet(
        name=name or type(source).__name__,
        train=Split(inputs, y_train),
        test=None if tested[0] is None else Split(tested[0], y_test),
        class_names=class_names,
        kind="vector" if inputs.shape is not None and len(inputs.shape) == 1 else "image",
        mean=mean,
        std=std,
        note=f"a {type(source).__name__} from Python",
    )


def is_random(source: Any, rows: int = 3) -> bool:
    """Whether the first items of an object change from one reading to the next.

    >>> is_random([torch.zeros(1, 4, 4)] * 2), is_random(torch.zeros(3, 2))
    (False, False)
    """
    if isinstance(source, DataSet | np.ndarray | Tensor | list | tuple | dict) or not hasattr(source, "__getitem__"):
        return False
    for i in range(min(rows, len(source))):
        one, other = (_value(source[i], i, None)[0] for _ in range(2))
        if one.shape != other.shape or not torch.equal(one, other):
            return True
    return False


def _collect(source: Any, options: Options) -> tuple[Memory | Items, list[Any] | None]:
    """The object's inputs and its labels, after one look at each item."""
    if not hasattr(source, "__getitem__") or not hasattr(source, "__len__"):
        raise ValueError(
            f"a {type(source).__name__} cannot be indexed; expected a map-style Dataset with len() and [i]. Collect an "
            "iterable one into a list first"
        )
    if not len(source):
        raise ValueError(f"the {type(source).__name__} is empty; expected at least one item")
    rows: list[Tensor] = []
    labels: list[Any] = []
    size, held = options.size, 0
    shapes: set[tuple[int, ...]] = set()
    channels = options.channels
    crop = None if size is None else CentreCrop(size)
    for i in range(len(source)):
        row, label = _value(source[i], i, channels, labelled=options.labelled is not False)
        if row.ndim == 3:
            row = row if crop is None else crop(row)
            if channels is None and len(row) == 3:  # the first coloured image: those before it become RGB too
                channels, held = 3, 3 * held
                rows = [with_channels(r, 3) for r in rows if r.ndim == 3]
                shapes = {(3, *s[1:]) if len(s) == 3 else s for s in shapes}
        shapes.add(tuple(row.shape))
        held += row.nbytes
        if label is not None:
            labels.append(label)
        if len(shapes) > 1 or held > options.memory:
            rows = []
        else:
            rows.append(row)
    if labels and len(labels) != len(source):
        raise ValueError(f"{len(labels)} of {len(source)} items have labels; expected all or none")
    if rows:
        return Memory(torch.stack(rows)), labels or None
    shape = next(iter(shapes)) if len(shapes) == 1 else None
    if shape is None and any(len(s) == 1 for s in shapes):
        raise ValueError(f"items have shapes {sorted(shapes)[:3]} …; expected vectors of one length, or images")
    images = shape is None or len(shape) == 3
    return Items(source, shape=shape, channels=channels or 1 if images else None, crop=crop), labels or None


def _coloured(inputs: Memory | Items, other: Memory | Items) -> Memory | Items:
    """``inputs`` as RGB if those of the ``other`` split are, so that the two go together."""
    mine, others = (x.channels if isinstance(x, Items) else x.shape[0] for x in (inputs, other))
    vectors = any(x.shape is not None and len(x.shape) == 1 for x in (inputs, other))
    if vectors or (mine, others) != (1, 3):
        return inputs
    if isinstance(inputs, Memory):
        return Memory(with_channels(inputs.values, 3))
    shape = None if inputs.shape is None else (3, *inputs.shape[1:])
    return Items(inputs.source, shape=shape, channels=3, crop=inputs.crop)


def _value(item: Any, index: int, channels: int | None, *, labelled: bool = True) -> tuple[Tensor, Any]:
    """An item's image or vector, and its label if it has one."""
    value, label = item, None
    if isinstance(item, dict):
        raise ValueError(f"item {index} is a dict of {', '.join(map(repr, item))}; expected (image, label) or an image")
    if isinstance(item, tuple | list) and item and not isinstance(item[0], int | float):
        value, label = item[0], item[1] if len(item) > 1 else None
    if not labelled:
        label = None
    if isinstance(label, Tensor | np.generic | np.ndarray):
        if math.prod(label.shape) != 1:
            raise ValueError(
                f"item {index} has a label of shape {list(label.shape)}; expected one number or string. Of one-hot "
                "labels give the place of the one (argmax), or load with labelled=False"
            )
        label = label.item()
    if isinstance(value, list | tuple) or (isinstance(value, Tensor | np.ndarray) and value.ndim == 1):
        return _vector(value, index), label
    try:
        return from_value(value, channels), label
    except ImageError as error:
        raise ValueError(f"item {index}: {error}") from None


def _vector(value: Any, index: int) -> Tensor:
    """An item that is a feature vector, float32 ``[D]``, finite."""
    try:
        row = torch.as_tensor(value)
    except (RuntimeError, TypeError, ValueError, OverflowError):
        raise ValueError(
            f"item {index} is {quoted(value)}; expected numbers (a vector), or an image as an array or tensor"
        ) from None
    if row.is_complex() or not row.numel() or not bool(row.isfinite().all()):
        raise ValueError(f"item {index} is {quoted(row.tolist())}; expected finite numbers, at least one")
    return row.to(torch.float32)
