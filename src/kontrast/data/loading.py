"""`load`: one call for every source of data.

| source | result |
|---|---|
| a name of `SETS` (``cifar10``, ``fashion-mini`` …) | that set (``kontrast.data.sets``) |
| a path to a folder | the images in it (``kontrast.data.folder``) |
| a path to ``.npz`` or ``.npy`` | the arrays in it (``kontrast.data.arrays``) |
| a path to an image file, a list of paths, with or without labels | those images (``kontrast.data.folder``) |
| an array or tensor, ``(x, y)`` of arrays or lists, a mapping with ``x_train`` … | arrays |
| a torch ``Dataset``, or a list of items: PIL images, ``(image, label)`` … | its items (``kontrast.data.arrays``) |
| a `DataSet` | itself |

`noisy_labels` replaces a share of the labels, for the random-labels experiment:

- "changed": by one of the K − 1 other classes, so that every replaced label is wrong;
- "redrawn": by any of the K classes with equal probability, so that about one in K stays the same.

(Graf et al.: their current script has the first, after `NoisyLabels`; one of their stored results the second, after
Zhang et al.) The samples chosen for a smaller share are among those chosen for a larger one.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from kontrast.data.arrays import from_arrays, from_file, from_mapping, from_object
from kontrast.data.dataset import DataSet, Inputs, Memory, Options, channel_statistics
from kontrast.data.folder import PathList, from_folder, from_paths, parse_paths
from kontrast.data.image_files import suffixes
from kontrast.data.images import CentreCrop, Crop, with_channels
from kontrast.data.loader import Stream, generator
from kontrast.files import expanded
from kontrast.recipe import no_such_data
from kontrast.registry import FAMILIES, nearest, quoted

SETS = FAMILIES["data set"]


def names() -> list[str]:
    """The names of the data sets.

    Returns:
        The names in alphabetical order.

    >>> names()
    ['cifar10', 'cifar100', ...]
    """
    return SETS.names()


def load(
    source: Any,
    *,
    test: Any = None,
    root: str | os.PathLike[str] | None = None,
    limit: int | None = None,
    test_limit: int | None = None,
    seed: int = 0,
    noise: float = 0.0,
    noise_kind: str = "changed",
    layout: str | None = None,
    **options: Any,
) -> DataSet:
    """Load the data set that ``source`` names or is.

    Args:
        source: a set's name, a path or an object (see the module).
        test: a second object, for testing.
        root: the folder of named sets, as in `Options`.
        limit: at most so many training rows, evenly over the classes, drawn with ``seed``.
        test_limit: at most so many test rows; None keeps all.
        seed: of the limits and the label noise.
        noise: the share of training labels to replace (`noisy_labels`).
        noise_kind: "changed" or "redrawn".
        layout: "HWC" or "CHW" for arrays of images, where their shape allows both.
        **options: those of `kontrast.data.Options`: ``download``, ``size``, ``interpolation``, ``channels``,
            ``labelled``, ``memory``, ``cache``, ``verify``, ``check``, ``max_bad``.

    Returns:
        The data set.

    Raises:
        ValueError: an unknown name or option (the error names the nearest one), missing or damaged files, or data of a
            wrong type or shape.

    >>> load("fashion-mini", limit=1000)
    DataSet 'fashion-mini': 1,000 images (1, 28, 28), 2,000 for testing in 10 classes
    >>> load("fashion")
    Traceback (most recent call last):
        ...
    ValueError: 'fashion' is neither a set nor a path that exists; did you mean 'fashion-mini'? Sets: cifar10, ...
    """
    arguments = [name for name in inspect.signature(load).parameters if name not in ("source", "options")]
    allowed = [*arguments, *(field.name for field in fields(Options) if field.name not in arguments)]
    for name in options:
        if name not in allowed:
            raise ValueError(f"load has no option {name!r}{nearest(name, allowed)} Options: {', '.join(allowed)}")
    settings = Options(root=None if root is None else expanded(root, "root"), **options)
    data = conform(_open_source(source, test, layout, settings), settings)
    data = data if limit is None and test_limit is None else data.limit(limit, seed, test=test_limit)
    if not noise:
        return data
    labels = data.train.require_labels("label noise")
    noisy = noisy_labels(labels, noise, data.num_classes, kind=noise_kind, seed=seed)
    return replace(data, train=data.train.with_labels(noisy))


def _open_source(source: Any, test: Any, layout: str | None, options: Options) -> DataSet:
    if isinstance(source, DataSet | str | os.PathLike) and test is not None:
        raise ValueError("test: must be None when data is a set, folder or file, which has its own test split")
    if isinstance(source, DataSet):
        return source
    if isinstance(source, str) and source in SETS:
        return SETS.make(source, options).load_checked()  # type: ignore[no-any-return]
    if isinstance(source, str | os.PathLike):
        return _from_path(source, layout, options)
    settings = _array_options(layout, options)
    if isinstance(source, Mapping):
        if test is not None:
            raise ValueError("test: must be None when data is a mapping. Put x_test and y_test into the mapping")
        return from_mapping(source, **settings)
    paths = parse_paths(source)
    if paths is not None:
        return from_paths(paths, options, test=_test_paths(test))
    if isinstance(source, np.ndarray | Tensor):
        source = (source, None)
    if not _is_pair(source):
        return from_object(source, options, test=test)
    rows, labels = source
    test_pair = test if isinstance(test, tuple) else (test, None)
    if len(test_pair) != 2:
        raise ValueError(f"test is a tuple of {len(test_pair)}: must be (x, y) as for training, or x alone")
    if isinstance(rows, np.ndarray | Tensor) or all(isinstance(row, list | tuple) for row in rows):
        return from_arrays(rows, labels, *test_pair, **settings)
    test_items = None if test is None else _zip_labels("y_test", *test_pair)
    return from_object(_zip_labels("y_train", rows, labels), options, test=test_items)


def _array_options(layout: str | None, options: Options) -> dict[str, Any]:
    resizing = {"size": options.size, "interpolation": options.interpolation, "channels": options.channels}
    return {"layout": layout, "labelled": options.labelled, **resizing}


def _test_paths(test: Any) -> PathList | None:
    """The paths to test on, where the training images are files."""
    paths = parse_paths(test)
    if test is not None and paths is None:
        raise ValueError(f"the training images are files, and test is {quoted(test)}: it must be paths too")
    return paths


def _is_pair(source: Any) -> bool:
    """Whether it is (x, y), rows and one label for each, and not a tuple of two items."""
    if not isinstance(source, tuple) or len(source) != 2:
        return False
    x, y = source
    if isinstance(x, np.ndarray | Tensor):
        return True
    if not isinstance(x, list | tuple) or not x or not (y is None or isinstance(y, list | tuple | np.ndarray | Tensor)):
        return False
    rows = all(isinstance(row, list | tuple | np.ndarray | Tensor | Image.Image) for row in x)
    return rows and (y is None or all(not isinstance(label, Image.Image) and np.ndim(label) == 0 for label in y))


def _zip_labels(key: str, rows: Any, labels: Any) -> list[Any]:
    """Pair images with their labels."""
    if labels is None:
        return list(rows)
    if len(labels) != len(rows):
        raise ValueError(f"{key}: must have {len(rows)} labels, one for each row; got {len(labels)}")
    return list(zip(rows, labels, strict=True))


def _from_path(source: str | os.PathLike[str], layout: str | None, options: Options) -> DataSet:
    path = expanded(source, "the path")
    if path.is_dir():
        return from_folder(path, options)
    if path.suffix.lower() in (".npz", ".npy"):
        return from_file(path, **_array_options(layout, options))
    if path.is_file() and path.suffix.lower() in suffixes():
        return from_paths(([str(path)], None), options)
    if path.exists():
        raise ValueError(
            f"{path} is a file of another kind: must be a folder of images, an image, a .npz or a .npy file"
        )
    raise ValueError(no_such_data(str(source)))


def conform(data: DataSet, options: Options) -> DataSet:
    """Return ``data`` with the channels and labels that the options request; itself if it has them.

    The statistics of a set are repeated for grey made RGB, and computed from the data for RGB made grey.

    >>> grey = load("fashion-mini", limit=100)
    >>> conform(grey, Options(channels=3, labelled=False))
    DataSet 'fashion-mini': 100 images (3, 28, 28), 2,000 for testing without labels
    """
    if options.labelled is False and (
        data.labelled or data.class_names or (data.test and data.test.labels is not None)
    ):
        bare = None if data.test is None else data.test.with_labels(None)
        data = replace(data, train=data.train.with_labels(None), test=bare, class_names=None)
    for which, split in (("training", data.train), ("test", data.test)):
        if options.labelled and split is not None and split.labels is None:
            raise ValueError(
                f"labelled=True: must have labels, and the {which} rows of {data.name!r} have none. Add labels, or "
                "leave labelled out"
            )
    shape, size, channels = data.train.inputs.shape, options.size, options.channels
    if data.kind == "vector" and (size is not None or channels is not None):
        raise ValueError(f"{data.name!r} holds vectors {shape}: size and channels must be None. They are for images")
    if size is not None and (shape is None or shape[1:] != (size, size)):
        raise ValueError(
            f"size={size}: must be None for {data.name!r}, which is loaded already with images {shape}. Load it again"
        )
    if channels is None or _channels(data.train.inputs) == channels:
        return data
    splits = {name: split for name in ("train", "test", "unlabelled") if (split := getattr(data, name)) is not None}
    splits = {name: replace(split, inputs=_convert_channels(split.inputs, channels)) for name, split in splits.items()}
    mean, std = (data.mean * 3, data.std * 3) if channels == 3 else channel_statistics(splits["train"].inputs)
    return replace(data, mean=mean, std=std, **splits)  # type: ignore[arg-type]


class Recoloured:
    """Inputs that are not in memory, converted to RGB or grey when read.

    >>> Recoloured(Memory(torch.zeros(2, 1, 4, 4, dtype=torch.uint8)), 3).read(torch.tensor([1])).shape
    torch.Size([1, 3, 4, 4])
    """

    def __init__(self, inputs: Inputs, channels: int) -> None:
        self.inputs, self.channels = inputs, channels
        self.shape = None if inputs.shape is None else (channels, *inputs.shape[1:])

    def __len__(self) -> int:
        return len(self.inputs)

    def __repr__(self) -> str:
        return f"Recoloured({self.inputs!r}, channels={self.channels})"

    def read(self, indices: Tensor, crop: Crop | None = None, seeds: Sequence[int] | None = None) -> Tensor:
        """Read and crop the rows, then convert them (see `Inputs.read`)."""
        return with_channels(self.inputs.read(indices, crop, seeds), self.channels)


def _convert_channels(inputs: Inputs, channels: int) -> Inputs:
    if isinstance(inputs, Memory):
        return Memory(with_channels(inputs.values, channels))
    return Recoloured(inputs, channels)


def _channels(inputs: Inputs) -> int:
    """The channels of images: from their shape, or from the first image where they differ in size."""
    if inputs.shape is not None:
        return inputs.shape[0]
    return inputs.read(torch.tensor([0]), CentreCrop(1), [0]).shape[-3]


KINDS = ("changed", "redrawn")


def noisy_labels(labels: Tensor, noise: float, num_classes: int, *, kind: str = "changed", seed: int = 0) -> Tensor:
    """Replace the share ``noise`` of the labels.

    Args:
        labels: int64 ``[N]`` in 0 … K−1; the tensor itself is not changed.
        noise: the share, 0 … 1.
        num_classes: K, at least 2.
        kind: "changed" (always another class) or "redrawn" (any class).
        seed: which labels are replaced, and by what.

    Returns:
        A copy of the labels with some replaced.

    Raises:
        ValueError: a value outside its range.

    >>> labels = torch.zeros(10, dtype=torch.long)
    >>> int((noisy_labels(labels, 0.3, num_classes=5) != labels).sum())
    3
    """
    if not isinstance(labels, Tensor):
        raise ValueError(f"labels of type {type(labels).__name__}: must be a tensor [N] of whole numbers")
    if not 0 <= noise <= 1:
        raise ValueError(f"noise={noise}: must be a share of the labels, 0 … 1")
    if kind not in KINDS:
        raise ValueError(f"kind={kind!r}: must be one of {', '.join(map(repr, KINDS))}")
    if num_classes < 2:
        raise ValueError(f"num_classes={num_classes}: must be at least 2 to change labels")
    if len(labels) and not (int(labels.min()) >= 0 and int(labels.max()) < num_classes):
        raise ValueError(
            f"labels from {int(labels.min())} to {int(labels.max())}: must be in 0 … {num_classes - 1} when "
            f"num_classes={num_classes}"
        )
    n = len(labels)
    noisy_rows = torch.randperm(n, generator=generator(seed, Stream.NOISE, 0))[: round(noise * n)].to(labels.device)
    # One draw for every sample, so that what a sample gets does not depend on the share.
    draws = generator(seed, Stream.NOISE, 1)
    if kind == "redrawn":
        other = torch.randint(num_classes, (n,), generator=draws).to(labels)
    else:
        other = (labels + 1 + torch.randint(num_classes - 1, (n,), generator=draws).to(labels)) % num_classes
    noisy = labels.clone()
    noisy[noisy_rows] = other[noisy_rows]
    return noisy
