"""One call for every source: a set's name, a path, or an object.

| source | becomes |
|---|---|
| a name of `SETS` (``cifar10``, ``fashion-mini`` …) | that set (``kontrast.data.sets``) |
| a path to a folder | the images in it (``kontrast.data.tree``) |
| a path to ``.npz`` or ``.npy`` | the arrays in it (``kontrast.data.arrays``) |
| a path to an image file, a list of such paths, with labels or without | those images (``kontrast.data.paths``) |
| an array or tensor, ``(x, y)`` of arrays or lists, a mapping with ``x_train`` … | arrays |
| a torch ``Dataset``, or a list of items: PIL images, ``(image, label)`` … | its items (``kontrast.data.objects``) |
| a `DataSet` | itself |
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np
from PIL import Image
from torch import Tensor

from kontrast.data.arrays import from_arrays, from_file, from_mapping
from kontrast.data.conforming import conformed
from kontrast.data.listing import suffixes
from kontrast.data.noise import noisy_labels
from kontrast.data.objects import from_object
from kontrast.data.options import Options
from kontrast.data.paths import Listed, from_paths, listed_paths
from kontrast.data.records import DataSet
from kontrast.data.tree import from_folder
from kontrast.files import expanded
from kontrast.registry import Family, nearest, quoted
from kontrast.vocabulary import no_such_data

SETS = Family("kontrast.data.sets")


def names() -> list[str]:
    """The names of the sets, as one writes them.

    >>> names()
    ['cifar10', 'cifar100', 'digits', 'fashion-mini', 'fashion-mnist', 'imagenet100', 'stl10', 'svhn', 'tiny-imagenet']
    """
    return [name.replace("_", "-") for name in SETS.names()]


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
    """The data set that ``source`` names or is.

    ``limit`` keeps at most so many training rows, classes even, drawn with ``seed``; testing stays whole unless
    ``test_limit`` says otherwise. ``noise`` replaces that share of the training labels (`noisy_labels`). ``test`` is
    a second object for testing, ``layout`` how arrays of images lie ("HWC" or "CHW", where their shape leaves it
    open). The other options are those of `kontrast.data.options.Options`: ``download``, ``size``, ``channels``,
    ``labelled``, ``memory``, ``cache``, ``verify``, ``check``, ``max_bad``.

    >>> load("fashion-mini", limit=1000)
    DataSet 'fashion-mini': 1,000 images (1, 28, 28), 2,000 for testing in 10 classes
    >>> load("fashion")
    Traceback (most recent call last):
        ...
    ValueError: 'fashion' is neither a set nor a path that exists; did you mean 'fashion-mini'? Sets: cifar10, ...
    """
    own = [name for name in inspect.signature(load).parameters if name not in ("source", "options")]
    known = [*own, *(field.name for field in fields(Options) if field.name not in own)]
    for name in options:
        if name not in known:
            hint = nearest(name, known)
            raise ValueError(f"load has no option {name!r}{hint} Options: {', '.join(known)}")
    chosen = Options(root=None if root is None else expanded(root, "root"), **options)
    data = conformed(_opened(source, test, layout, chosen), chosen)
    data = data if limit is None and test_limit is None else data.limit(limit, seed, test=test_limit)
    if not noise:
        return data
    labels = data.train.require_labels("label noise")
    noisy = noisy_labels(labels, noise, data.num_classes, kind=noise_kind, seed=seed)
    return replace(data, train=data.train.with_labels(noisy))


def _opened(source: Any, test: Any, layout: str | None, options: Options) -> DataSet:
    if isinstance(source, DataSet | str | os.PathLike) and test is not None:
        raise ValueError("test= goes with an object or array; a set, folder or file brings its own test split")
    if isinstance(source, DataSet):
        return source
    if isinstance(source, str) and source.replace("-", "_") in SETS.names():
        found: DataSet = SETS[source](options).load()
        return found
    if isinstance(source, str | os.PathLike):
        return _from_path(source, layout, options)
    given: dict[str, Any] = {
        "layout": layout,
        "size": options.size,
        "channels": options.channels,
        "labelled": options.labelled,
    }
    if isinstance(source, Mapping):
        if test is not None:
            raise ValueError("test= beside a mapping; give x_test and y_test in it")
        return from_mapping(source, **given)
    paths = listed_paths(source)
    if paths is not None:
        return from_paths(paths, options, test=_test_paths(test))
    if isinstance(source, np.ndarray | Tensor):
        source = (source, None)
    if not _is_pair(source):
        return from_object(source, options, test=test)
    rows, labels = source
    held = test if isinstance(test, tuple) else (test, None)
    if len(held) != 2:
        raise ValueError(f"test is a tuple of {len(held)}; expected (x, y) as for training, or x alone")
    if isinstance(rows, np.ndarray | Tensor) or all(isinstance(row, list | tuple) for row in rows):
        return from_arrays(rows, labels, *held, **given)
    tested = None if test is None else _zipped("y_test", *held)
    return from_object(_zipped("y_train", rows, labels), options, test=tested)


def _test_paths(test: Any) -> Listed | None:
    """What is tested on, where training has a list of files."""
    found = listed_paths(test)
    if test is not None and found is None:
        raise ValueError(f"the training images are files, and test is {quoted(test)}; expected paths there too")
    return found


def _is_pair(source: Any) -> bool:
    """Whether it is (x, y), rows and a label each, and not a tuple of two items."""
    if not isinstance(source, tuple) or len(source) != 2:
        return False
    x, y = source
    if isinstance(x, np.ndarray | Tensor):
        return True
    if not isinstance(x, list | tuple) or not x or not (y is None or isinstance(y, list | tuple | np.ndarray | Tensor)):
        return False
    rows = all(isinstance(row, list | tuple | np.ndarray | Tensor | Image.Image) for row in x)
    return rows and (y is None or all(not isinstance(label, Image.Image) and np.ndim(label) == 0 for label in y))


def _zipped(key: str, rows: Any, labels: Any) -> list[Any]:
    """Images and their labels as items."""
    if labels is None:
        return list(rows)
    if len(labels) != len(rows):
        raise ValueError(f"{key} has {len(labels)} labels for {len(rows)} rows; expected one label a row")
    return list(zip(rows, labels, strict=True))


def _from_path(source: str | os.PathLike[str], layout: str | None, options: Options) -> DataSet:
    path = expanded(source, "the path")
    if path.is_dir():
        return from_folder(path, options)
    if path.suffix.lower() in (".npz", ".npy"):
        return from_file(path, layout=layout, size=options.size, channels=options.channels, labelled=options.labelled)
    if path.is_file() and path.suffix.lower() in suffixes():
        return from_paths(([str(path)], None), options)
    if path.exists():
        raise ValueError(
            f"{path} is a file of another kind; expected a folder of images, an image, a .npz or a .npy file"
        )
    raise ValueError(no_such_data(str(source)))
