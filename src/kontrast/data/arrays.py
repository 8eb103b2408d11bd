"""Data sets from arrays, tensors, ``.npz`` and ``.npy`` files, and from indexable Python objects.

| values | meaning |
|---|---|
| ``[N, H, W]``, ``[N, H, W, C]``, ``[N, C, H, W]`` with C = 1 or 3 | images: uint8, floats in 0…1, or uint16 |
| ``[N, D]``, any numeric type | feature vectors, converted to float32 |
| a torch ``Dataset``, a list of items | ``(image, label)``, ``(image,)`` or an image; a 1-d item is a feature vector |

Labels are ``[N]`` integers or strings. Labels that are not 0, 1, 2, … are renumbered in sorted order; ``class_names``
keeps the original values. A ``.npz`` file holds ``x_train`` and optionally ``y_train``, ``x_test``, ``y_test``,
``x_unlabelled`` and ``class_names``; a ``.npy`` file holds training rows without labels. Nothing is unpickled.

Every item of an object is read once when it is loaded. If one image has colour, grey images become RGB. Items of one
shape that fit into memory stay there; others are read from the object each time (`Items`). Do not put random transforms
into the object: items in memory would draw them only once. Use kontrast's augmentations.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kontrast.checks import unmasked
from kontrast.data.dataset import DataSet, Inputs, Memory, Options, Split, channel_statistics, crop_each
from kontrast.data.images import (
    CentreCrop,
    Crop,
    ImageError,
    Interpolation,
    as_uint8,
    from_value,
    native_type,
    with_channels,
)
from kontrast.files import DAMAGE, NotRegularFile, open_regular, read_npz
from kontrast.recipe import no_such_data
from kontrast.registry import one_line, quoted

KEYS = ("x_train", "y_train", "x_test", "y_test", "x_unlabelled", "class_names")
ALIASES = {
    "x": "x_train", "images": "x_train", "features": "x_train", "embeddings": "x_train", "data": "x_train",
    "y": "y_train", "labels": "y_train", "targets": "y_train", "x_unlabeled": "x_unlabelled",
}  # fmt: skip


def from_arrays(
    x_train: Any,
    y_train: Any = None,
    x_test: Any = None,
    y_test: Any = None,
    *,
    x_unlabelled: Any = None,
    class_names: Any = None,
    name: str = "arrays",
    layout: str | None = None,
    size: int | None = None,
    interpolation: Interpolation = "bilinear",
    channels: int | None = None,
    labelled: bool | None = None,
    note: str = "",
) -> DataSet:
    """Make a data set from arrays, tensors or lists.

    Args:
        x_train: training rows: images or vectors (see the module).
        y_train: their labels, integers or strings.
        x_test: test rows.
        y_test: their labels.
        x_unlabelled: rows without labels.
        class_names: names of the classes 0, 1, 2, …
        name: of the data set.
        layout: "HWC" or "CHW", where the shape of images allows both.
        size: as in `Options`.
        interpolation: as in `Options`.
        channels: as in `Options`.
        labelled: as in `Options`.
        note: source and licence.

    Returns:
        The data set.

    Raises:
        ValueError: rows or labels of a wrong type or shape, or that do not fit together.

    >>> from_arrays(np.zeros((4, 8, 8, 3), dtype=np.uint8), ["cat", "dog", "cat", "dog"])
    DataSet 'arrays': 4 images (3, 8, 8) in 2 classes
    >>> from_arrays(np.eye(5), x_test=np.eye(5))
    DataSet 'arrays': 5 vectors (5,), 5 for testing without labels
    """
    if y_test is not None and x_test is None:
        raise ValueError("y_test: must be None when x_test is None")
    if labelled is False:  # before they are checked: labels of −1 throughout are a reason to drop them
        y_train, y_test, class_names = None, None, None
    train, test, unlabelled = (
        None if x is None else Memory(_inputs(key, x, layout, size, interpolation, channels))
        for key, x in (("x_train", x_train), ("x_test", x_test), ("x_unlabelled", x_unlabelled))
    )
    if train is None or not len(train):
        raise ValueError("x_train: must have at least one row")
    for key, other in (("x_test", test), ("x_unlabelled", unlabelled)):
        if other is not None and other.shape != train.shape:
            raise ValueError(f"{key} has rows of shape {list(other.shape)}: must be {list(train.shape)}, as x_train")
    labels, test_labels, names = number_labels(y_train, y_test, class_names)
    for key, y, rows in (("train", labels, train), ("test", test_labels, test)):
        if y is not None and rows is not None and len(y) != len(rows):
            raise ValueError(f"y_{key}: must have {len(rows)} labels, one for each row; got {len(y)}")
    data = _data_set(name, (train, labels), (test, test_labels), names, note)
    return data if unlabelled is None else replace(data, unlabelled=Split(unlabelled))


def _data_set(
    name: str,
    train: tuple[Inputs, Tensor | None],
    test: tuple[Inputs | None, Tensor | None],
    class_names: list[str] | None,
    note: str,
) -> DataSet:
    """Make a data set of inputs with their labels; the statistics are those of the training rows."""
    shape, (mean, std) = train[0].shape, channel_statistics(train[0])
    return DataSet(
        name=name,
        train=Split(*train),
        test=None if test[0] is None else Split(test[0], test[1]),
        class_names=class_names,
        kind="vector" if shape is not None and len(shape) == 1 else "image",
        mean=mean,
        std=std,
        note=note,
    )


def from_file(path: Path, **options: Any) -> DataSet:
    """Read a ``.npz`` or ``.npy`` file as a data set; the options are those of `from_arrays`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/features.npy", np.eye(3))
    ...     from_file(Path(folder) / "features.npy")
    DataSet 'features': 3 vectors (3,) without labels
    """
    try:
        with open_regular(path) as file:
            first = file.read(6)
            if not first.startswith((b"PK", b"\x93NUMPY")):  # numpy takes anything else for a pickle
                raise ValueError("by its first bytes it is neither a .npz nor a .npy file. Write it with np.savez")
            file.seek(0)
            if first.startswith(b"PK"):
                arrays = read_npz(path, "restore a copy of it")
            else:
                arrays = {"x_train": np.load(file, allow_pickle=False)}
                if file.read(1):
                    raise ValueError("it has more bytes than its head says, so it is damaged. Restore a copy of it")
    except DAMAGE as error:
        if isinstance(error, FileNotFoundError):
            raise ValueError(no_such_data(str(path))) from None
        if isinstance(error, NotRegularFile):
            raise
        reason = one_line(str(error)[:500])
        if "allow_pickle" in reason:
            reason = "it holds Python objects, which are not unpickled. Save plain arrays"
        raise ValueError(f"{path} cannot be read as arrays: {reason}") from error
    return from_mapping(arrays, name=path.stem, note=str(path.name), **options)


def from_mapping(values: Mapping[str, Any], **options: Any) -> DataSet:
    """Make a data set from arrays by name: ``x_train`` and the others of `KEYS`; unknown names are ignored.

    >>> from_mapping({"features": np.eye(2), "labels": [0, 1]})
    DataSet 'arrays': 2 vectors (2,) in 2 classes
    """
    arrays: dict[str, Any] = {}
    for key, value in values.items():
        canonical = key if key in KEYS else ALIASES.get(key)
        if canonical in arrays:
            raise ValueError(f"{canonical}: must be given once; it is given again as {key!r}")
        if canonical is not None:
            arrays[canonical] = value
    if "x_train" not in arrays:
        raise ValueError(
            f"x_train: must be among the arrays, which are {', '.join(map(repr, values)) or 'none'}. Known names: "
            f"{KEYS}"
        )
    return from_arrays(**arrays, **options)


def number_labels(
    train: Any, test: Any, class_names: Any = None
) -> tuple[Tensor | None, Tensor | None, list[str] | None]:
    """Convert the labels of both splits to int64 0, 1, 2, …, and return the class names; None without labels.

    >>> number_labels(["b", "a"], ["a", "a"])
    (tensor([1, 0]), tensor([0, 0]), ['a', 'b'])
    >>> number_labels([3, 7, 3], None)
    (tensor([0, 1, 0]), None, ['3', '7'])
    """
    labels = {key: _labels(key, y) for key, y in (("y_train", train), ("y_test", test)) if y is not None}
    if not labels:
        return None, None, None
    if len({y.dtype.kind == "U" for y in labels.values()}) > 1:
        raise ValueError("y_train and y_test: must both hold strings, or both numbers")
    values = np.unique(np.concatenate(list(labels.values())))
    names = None if class_names is None else [str(c) for c in np.asarray(class_names).tolist()]
    text = values.dtype.kind == "U"
    if not text and int(values[0]) < 0:
        raise ValueError(
            f"labels={int(values[0])}: must be 0 or more. Leave out rows without labels, or pass no labels"
        )
    if not text and int(values[-1]) < (len(names) if names else len(values)):
        result = {key: y.astype(np.int64) for key, y in labels.items()}
    else:
        if names is not None and not (text and set(values.tolist()) <= set(names)):
            raise ValueError(
                f"labels {values[:5].tolist()} …: must be 0 to {len(names) - 1} when there are {len(names)} class_names"
            )
        order = names if names is not None else values.tolist()
        place = {value: i for i, value in enumerate(order)}
        result = {key: np.array([place[v] for v in y.tolist()], dtype=np.int64) for key, y in labels.items()}
        names = [str(v) for v in order]
    if "y_train" in result and "y_test" in result:
        extra = np.setdiff1d(result["y_test"], result["y_train"])
        if len(extra):
            examples = [names[i] if names else int(i) for i in extra[:5]]
            raise ValueError(
                f"{len(extra)} classes are in the test labels only ({examples} …): test labels must be among those of "
                f"training"
            )
    tensors = {key: torch.from_numpy(np.ascontiguousarray(y)) for key, y in result.items()}
    return tensors.get("y_train"), tensors.get("y_test"), names


def _labels(key: str, labels: Any) -> np.ndarray[Any, Any]:
    unmasked(key, labels)
    try:
        array = labels.detach().cpu().numpy() if isinstance(labels, Tensor) else np.asarray(labels)
        array = np.char.decode(array) if array.dtype.kind == "S" else array
    except UnicodeDecodeError:
        raise ValueError(f"{key} holds bytes that are not UTF-8: must be whole numbers or strings") from None
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{key} is not an array ({one_line(str(error))}): must be [N] whole numbers or strings"
        ) from None
    array = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    # Files written by spreadsheets hold 1.0, 2.0, …; from 2⁵³ on floats skip whole numbers.
    if array.dtype.kind == "f" and array.ndim == 1 and bool(((array == np.rint(array)) & (abs(array) < 2.0**53)).all()):
        array = array.astype(np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iuUb" or not len(array):
        raise ValueError(f"{key} of {array.dtype} {list(array.shape)}: must be [N] whole numbers or strings")
    if array.dtype.kind == "u" and int(array.max()) >= 2**63:
        raise ValueError(f"{key}={int(array.max())}: must be whole numbers below 2⁶³, or strings")
    return array.astype(np.int64) if array.dtype.kind in "iub" else array


def _inputs(
    key: str, values: Any, layout: str | None, size: int | None, interpolation: Interpolation, channels: int | None
) -> Tensor:
    """Convert rows to uint8 ``[N, C, H, W]`` or float32 ``[N, D]``."""
    if isinstance(values, Tensor):
        x = values.detach().cpu()
        if x.is_complex():
            raise ValueError(f"{key} of {x.dtype} {list(x.shape)}: must be real numbers, images or vectors")
    else:
        unmasked(key, values)
        try:
            array = np.asarray(values)
        except ValueError:
            raise ValueError(f"{key}: must have rows of one shape; they differ in length") from None
        if array.dtype.kind not in "iufb":
            raise ValueError(f"{key} of {array.dtype} {list(array.shape)}: must be numbers, images or vectors")
        native = native_type(array.dtype)
        if not array.dtype.isnative or array.dtype.num != native.num:
            array = array.astype(native)
        x = torch.from_numpy(array if array.flags.writeable and array.flags.c_contiguous else array.copy())
    if 0 in x.shape[1:]:
        raise ValueError(f"{key} has shape {list(x.shape)}: must have at least one number in each row")
    if x.ndim == 2:
        vectors = x.to(torch.float32)
        bad = int((~torch.isfinite(vectors)).any(1).sum())
        if bad:
            raise ValueError(f"{bad} of {len(x)} rows of {key} are not finite in float32: must be finite numbers")
        return vectors.contiguous()
    if x.ndim not in (3, 4):
        raise ValueError(
            f"{key} has shape {list(x.shape)}: must be images [N, H, W], [N, H, W, C] or [N, C, H, W], "
            "or vectors [N, D]"
        )
    x = x[:, None] if x.ndim == 3 else _channels_first(key, x, layout)
    try:
        images = as_uint8(x).contiguous()
    except ImageError as error:
        raise ValueError(f"{key}: {error}") from None
    images = images if channels is None else with_channels(images, channels)
    return images if size is None else resize_images(images, size, interpolation)


def resize_images(images: Tensor, size: int, interpolation: Interpolation = "bilinear") -> Tensor:
    """Resize images ``[N, C, H, W]`` to ``size`` pixels square, a chunk at a time.

    >>> resize_images(torch.zeros(2, 3, 8, 6, dtype=torch.uint8), 4).shape
    torch.Size([2, 3, 4, 4])
    """
    if tuple(images.shape[2:]) == (size, size):
        return images
    crop = CentreCrop(size, interpolation=interpolation)
    return torch.cat([crop(images[i : i + 1024]) for i in range(0, len(images), 1024)])


def _channels_first(key: str, x: Tensor, layout: str | None) -> Tensor:
    if layout not in (None, "HWC", "CHW"):
        raise ValueError(f"layout={layout!r}: must be 'HWC' or 'CHW', or None to decide by the shape")
    first, last = x.shape[1] in (1, 3), x.shape[3] in (1, 3)
    if layout is None and first == last:
        why = "could be either" if first else "has neither 1 nor 3 channels"
        raise ValueError(
            f"{key} has shape {list(x.shape)}, which {why}: must be [N, H, W, C] or [N, C, H, W] with C = 1 or 3"
            + (". Set layout='HWC' or 'CHW'" if first else "")
        )
    last = last if layout is None else layout == "HWC"
    channels = x.shape[3 if last else 1]
    if channels not in (1, 3):
        raise ValueError(f"{key} as {layout} has {channels} channels {list(x.shape)}: must be 1 or 3")
    return x.permute(0, 3, 1, 2) if last else x


class Items:
    """Inputs that are items of an indexable object, converted when read; ``shape`` is None if images differ in size.

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
        self.source, self.channels, self.crop, self.shape = source, channels, crop, shape

    def __len__(self) -> int:
        return len(self.source)

    def __repr__(self) -> str:
        return f"Items({len(self)} of {type(self.source).__name__}, shape={self.shape})"

    def read(self, indices: Tensor, crop: Crop | None = None, seeds: Sequence[int] | None = None) -> Tensor:
        """Read the items ``indices`` one by one (see `Inputs.read`)."""
        rows = [_value(self.source[int(i)], int(i), self.channels, labelled=False)[0] for i in indices]
        if crop is not None:
            return crop_each(rows, crop, seeds)
        if self.crop is not None:
            return crop_each(rows, self.crop, [0] * len(rows))
        if self.shape is None:
            raise ValueError("these images differ in size: read them with a crop, or load them with size=…")
        return torch.stack(rows)


def from_object(source: Any, options: Options, *, test: Any = None, name: str | None = None) -> DataSet:
    """Make a data set from an object with ``len`` and indexing, and perhaps another one for testing.

    >>> pairs = [(torch.zeros(1, 4, 4), "cat"), (torch.ones(1, 4, 4), "dog")]
    >>> from_object(pairs, Options())
    DataSet 'list': 2 images (1, 4, 4) in 2 classes
    """
    inputs, labels = _collect(source, options)
    test_inputs, test_labels = (None, None) if test is None else _collect(test, options)
    if test_inputs is not None:
        inputs, test_inputs = _match_colour(inputs, test_inputs), _match_colour(test_inputs, inputs)
        if test_inputs.shape != inputs.shape:
            raise ValueError(
                f"test items have shape {test_inputs.shape}: must be {inputs.shape}, as the training items"
            )
    names = getattr(source, "classes", None)
    has_names = isinstance(names, list | tuple) and all(isinstance(n, str) for n in names)
    y_train, y_test, class_names = number_labels(labels, test_labels, names if has_names else None)
    kind = type(source).__name__
    return _data_set(name or kind, (inputs, y_train), (test_inputs, y_test), class_names, f"a {kind} from Python")


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
    """Read every item once: the object's inputs and its labels."""
    if not hasattr(source, "__getitem__") or not hasattr(source, "__len__"):
        raise ValueError(
            f"a {type(source).__name__} cannot be indexed: must be a map-style Dataset with len() and [i]. Collect an "
            "iterable one into a list first"
        )
    if not len(source):
        raise ValueError(f"the {type(source).__name__} is empty: must have at least one item")
    rows: list[Tensor] = []
    labels: list[Any] = []
    num_bytes = 0
    shapes: set[tuple[int, ...]] = set()
    channels = options.channels
    crop = options.centre_crop
    for i in range(len(source)):
        row, label = _value(source[i], i, channels, labelled=options.labelled is not False)
        if row.ndim == 3:
            row = row if crop is None else crop(row)
            if channels is None and len(row) == 3:  # the first coloured image: those before it become RGB too
                channels, num_bytes = 3, 3 * num_bytes
                rows = [with_channels(r, 3) for r in rows if r.ndim == 3]
                shapes = {(3, *s[1:]) if len(s) == 3 else s for s in shapes}
        shapes.add(tuple(row.shape))
        num_bytes += row.nbytes
        if label is not None:
            labels.append(label)
        if len(shapes) > 1 or num_bytes > options.memory:
            rows = []
        else:
            rows.append(row)
    if labels and len(labels) != len(source):
        raise ValueError(f"{len(labels)} of {len(source)} items have labels: must be all or none")
    if rows:
        return Memory(torch.stack(rows)), labels or None
    shape = next(iter(shapes)) if len(shapes) == 1 else None
    if shape is None and any(len(s) == 1 for s in shapes):
        raise ValueError(f"items have shapes {sorted(shapes)[:3]} …: must be vectors of one length, or images")
    images = shape is None or len(shape) == 3
    return Items(source, shape=shape, channels=channels or 1 if images else None, crop=crop), labels or None


def _match_colour(inputs: Memory | Items, other: Memory | Items) -> Memory | Items:
    """Convert ``inputs`` to RGB if those of the ``other`` split are RGB."""
    channels = [x.channels if isinstance(x, Items) else x.shape[0] for x in (inputs, other)]
    vectors = any(x.shape is not None and len(x.shape) == 1 for x in (inputs, other))
    if vectors or channels != [1, 3]:
        return inputs
    if isinstance(inputs, Memory):
        return Memory(with_channels(inputs.values, 3))
    shape = None if inputs.shape is None else (3, *inputs.shape[1:])
    return Items(inputs.source, shape=shape, channels=3, crop=inputs.crop)


def _value(item: Any, index: int, channels: int | None, *, labelled: bool = True) -> tuple[Tensor, Any]:
    """An item's image or vector, and its label if it has one."""
    value, label = item, None
    if isinstance(item, dict):
        raise ValueError(f"item {index} is a dict of {', '.join(map(repr, item))}; must be (image, label) or an image")
    if isinstance(item, tuple | list) and item and not isinstance(item[0], int | float):
        value, label = item[0], item[1] if len(item) > 1 else None
    if not labelled:
        label = None
    if isinstance(label, Tensor | np.generic | np.ndarray):
        if math.prod(label.shape) != 1:
            raise ValueError(
                f"item {index} has a label of shape {list(label.shape)}: must be one number or string. Convert "
                "one-hot labels by argmax, or load with labelled=False"
            )
        label = label.item()
    if isinstance(value, list | tuple) or (isinstance(value, Tensor | np.ndarray) and value.ndim == 1):
        return _vector(value, index), label
    try:
        return from_value(value, channels), label
    except ImageError as error:
        raise ValueError(f"item {index}: {error}") from None


def _vector(value: Any, index: int) -> Tensor:
    """A feature vector, float32 ``[D]``, finite."""
    try:
        row = torch.as_tensor(value)
    except (RuntimeError, TypeError, ValueError, OverflowError):
        raise ValueError(
            f"item {index} is {quoted(value)}: must be numbers (a vector), or an image as an array or tensor"
        ) from None
    if row.is_complex() or not row.numel() or not bool(row.isfinite().all()):
        raise ValueError(f"item {index} is {quoted(row.tolist())}: must be finite numbers, at least one")
    return row.to(torch.float32)
