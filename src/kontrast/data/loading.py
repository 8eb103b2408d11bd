"""One call for every source: a set's name, a path, or an object.

| source | becomes |
|---|---|
| a name of `SETS` (``cifar10``, ``fashion-mini`` …) | that set (``kontrast.data.sets``) |
| a path to a folder | the images in it (``kontrast.data.tree``) |
| a path to ``.npz`` or ``.npy`` | the arrays in it (``kontrast.data.arrays``) |
| an array or tensor, ``(x, y)``, a mapping with ``x_train`` … | arrays |
| a torch ``Dataset``, or a list of items | its items (``kontrast.data.objects``) |
| a `DataSet` | itself |
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from kontrast.data.arrays import from_arrays, from_file, from_mapping
from kontrast.data.objects import from_object
from kontrast.data.options import Options
from kontrast.data.records import DataSet
from kontrast.data.tree import from_folder
from kontrast.registry import Family

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
    layout: str | None = None,
    **options: Any,
) -> DataSet:
    """The data set that ``source`` names or is.

    ``limit`` keeps at most so many training rows, classes even, drawn with ``seed``; testing stays whole unless
    ``test_limit`` says otherwise. ``test`` is a second object for testing, ``layout`` how arrays of images lie ("HWC"
    or "CHW", where their shape leaves it open). The other options are those of `kontrast.data.options.Options`:
    ``download``, ``size``, ``channels``, ``labelled``, ``memory``, ``cache``, ``verify``, ``check``, ``max_bad``.

    >>> load("fashion-mini", limit=1000)
    DataSet 'fashion-mini': 1,000 images (1, 28, 28), 2,000 for testing in 10 classes
    >>> load("fashion")
    Traceback (most recent call last):
        ...
    ValueError: 'fashion' is neither a set nor a path that exists; did you mean 'fashion-mini'? Sets: cifar10, ...
    """
    try:
        chosen = Options(root=None if root is None else Path(root).expanduser(), **options)
    except TypeError as error:
        raise ValueError(f"{error}; known: test, root, limit, test_limit, seed, layout and those of Options") from None
    data = _opened(source, test, layout, chosen)
    return data if limit is None and test_limit is None else data.limit(limit, seed, test=test_limit)


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
    size = options.size
    if isinstance(source, Mapping):
        if test is not None:
            raise ValueError("test= beside a mapping; give x_test and y_test in it")
        return from_mapping(source, layout=layout, size=size)
    if isinstance(source, tuple) and len(source) == 2 and isinstance(source[0], np.ndarray | Tensor):
        held = test if isinstance(test, tuple) else (test, None)
        return from_arrays(*source, *held, layout=layout, size=size)
    if isinstance(source, np.ndarray | Tensor):
        held = test if isinstance(test, tuple) else (test, None)
        return from_arrays(source, None, *held, layout=layout, size=size)
    return from_object(source, options, test=test)


def _from_path(source: str | os.PathLike[str], layout: str | None, options: Options) -> DataSet:
    path = Path(source).expanduser()
    if path.is_dir():
        return from_folder(path, options)
    if path.suffix.lower() in (".npz", ".npy"):
        return from_file(path, layout=layout, size=options.size)
    if path.exists():
        raise ValueError(f"{path} is a file of another kind; expected a folder of images, a .npz or a .npy file")
    key = str(source).lower().replace("_", "-")
    near = difflib.get_close_matches(key, names(), n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    raise ValueError(f"{str(source)!r} is neither a set nor a path that exists{hint} Sets: {', '.join(names())}")
