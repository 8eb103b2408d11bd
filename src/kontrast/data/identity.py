"""Digests of data: whether two splits hold the same rows, and which data a run was given from Python.

| inputs | what `identity` hashes |
|---|---|
| in memory | every byte |
| a cache file | the checksum of its images |
| image files | names and sizes, with ``times`` also the modification times; the files are not read |
| others | 64 rows |

With ``whole=True`` image files are read, and every row of other inputs is.

A recipe names its data by a set's name or a path. A Python object has neither, so the recipe stores a short description
of the object (``data.given``) and a digest of its content (``data.digest``), which is part of the recipe's hash: other
data give another run, and the same data give the same run, whatever object holds them. The digest covers every pixel or
number, the bytes of image files, labels, mean and std, class names, and the order of rows.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from kontrast.data.arrays import ALIASES, KEYS, is_random
from kontrast.data.cache import CachedImages
from kontrast.data.dataset import DataSet, Inputs, Memory, Rows, Split
from kontrast.data.folder import parse_paths
from kontrast.data.image_files import Folder
from kontrast.data.images import CentreCrop
from kontrast.data.loading import load
from kontrast.recipe import Recipe
from kontrast.registry import one_line

ROWS = 64


def identity(split: Split, *, times: bool = False, whole: bool = False) -> str:
    """Compute a digest of a split's inputs and labels: inputs with the same digest have the same rows.

    Args:
        split: the rows.
        times: whether modification times of files count; two copies of a folder then differ.
        whole: read everything, so that any difference gives another digest; file names do not count then.

    Returns:
        32 hexadecimal digits.

    >>> a, b = Split(Memory(torch.eye(100))), Split(Memory(torch.eye(100).flip(0).flip(1)))
    >>> identity(a) == identity(b)
    True
    >>> b.inputs.values[50, 1] = 0.5
    >>> identity(a) == identity(b)
    False
    """
    digest = hashlib.blake2b(f"{len(split)} {split.inputs.shape}".encode(), digest_size=16)
    if split.labels is not None:
        digest.update(raw(split.labels))
    digest.update(_content(split.inputs, times, whole))
    return digest.hexdigest()


def _content(inputs: Inputs, times: bool, whole: bool) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    if whole and not isinstance(inputs, Memory):
        for i in range(len(inputs)):
            digest.update(_row(inputs, i))
    elif isinstance(inputs, Rows):
        digest.update(_content(inputs.inputs, times, whole) + raw(inputs.rows))
    elif isinstance(inputs, Memory):
        digest.update(raw(inputs.values))
    elif isinstance(inputs, CachedImages):
        digest.update(inputs.header["checksum"].encode())
    elif isinstance(inputs, Folder):
        for path in inputs.paths:
            digest.update(os.fsencode(os.path.basename(path)) + b"\0" + _about(path, times))
    else:
        count = min(ROWS, len(inputs))
        crop = CentreCrop(32) if inputs.shape is None else None
        rows = torch.arange(count) * len(inputs) // max(count, 1)
        digest.update(raw(inputs.read(rows, crop, [0] * count if crop else None)))
    return digest.digest()


def _row(inputs: Inputs, index: int) -> bytes:
    """One row's content: the bytes of its file, or its values."""
    if isinstance(inputs, Rows):
        return _row(inputs.inputs, int(inputs.rows[index]))
    if isinstance(inputs, Folder):
        about = f"{inputs.channels} {inputs.crop!r}"
        return hashlib.blake2b(Path(inputs.paths[index]).read_bytes() + about.encode(), digest_size=16).digest()
    is_vector = inputs.shape is not None and len(inputs.shape) == 1
    whole = None if is_vector else lambda image, seed: image  # a crop that keeps the whole image, whatever its size
    row = inputs.read(torch.tensor([index]), whole, [0])
    return f"{row.dtype} {list(row.shape)}".encode() + bytes(raw(row))


def _about(path: str, times: bool) -> bytes:
    try:
        stat = os.stat(path)
    except OSError:  # the error comes when it is read
        return b"gone"
    return f"{stat.st_size} {stat.st_mtime_ns if times else ''}".encode()


def raw(tensor: Tensor) -> memoryview | bytes:
    """A tensor's bytes, in the order of its values."""
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().data if flat.numel() else b""


def separate_data(overrides: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Separate the data object from a recipe's overrides, if ``data`` or ``data.name`` is one.

    Args:
        overrides: settings of a recipe.

    Returns:
        The object or None, and the other overrides.

    >>> separate_data({"seed": 1, "data": {"name": [1.0, 2.0], "size": 32}})
    ([1.0, 2.0], {'seed': 1, 'data': {'size': 32}})
    >>> separate_data({"data": "photos/"}), separate_data({"data": {"size": 32}})
    ((None, {'data': 'photos/'}), (None, {'data': {'size': 32}}))
    """
    rest = dict(overrides)
    source = None
    for key in ("data", "data.name"):
        value = rest.get(key)
        if isinstance(value, os.PathLike):
            rest[key] = os.fspath(value)
        elif _is_object(value):
            source = rest.pop(key)
        elif key == "data" and isinstance(value, Mapping):
            if isinstance(value.get("name"), os.PathLike):
                rest[key] = {**value, "name": os.fspath(value["name"])}
            elif _is_object(value.get("name")):
                source, rest[key] = value["name"], {k: v for k, v in value.items() if k != "name"}
    return source, rest


def _is_object(value: Any) -> bool:
    """Whether it is data, and not a name, a path, or settings of the data section."""
    if isinstance(value, Mapping):
        return any(key in KEYS or key in ALIASES for key in value)
    return not isinstance(value, str | os.PathLike | bool | int | float | None)


def bind(recipe: Recipe, source: Any) -> tuple[Recipe, DataSet]:
    """Load a data object as the recipe says, and write its description and digest into the recipe.

    Args:
        recipe: the recipe, whose data section says how to load.
        source: whatever `load` takes.

    Returns:
        The recipe with ``data.name``, ``data.given`` and ``data.digest``, and the data set.

    >>> from kontrast.data import load
    >>> recipe = Recipe.of({"method": "simclr", "train": {"epochs": 1}})
    >>> again, data_set = bind(recipe, load("digits", limit=100))
    >>> again.data.name, again.data.given
    ('digits', "the DataSet 'digits': 100 images (1, 8, 8), 360 for testing in 10 classes")
    >>> again.hash == bind(recipe, load("digits", limit=100))[0].hash, again.hash == recipe.hash
    (True, False)
    """
    options = {name: getattr(recipe.data, name) for name in ("size", "channels", "labelled")}
    if is_random(source):
        warnings.warn(
            f"the items of the {type(source).__name__} change from one reading to the next, so they are other data "
            "each time, and no run of them can be resumed. Leave random transforms out of it: kontrast's augmentations "
            "draw anew in every epoch",
            UserWarning,
            stacklevel=3,
        )
    data = load(source, root=recipe.run.data_root, cache=recipe.run.cache or None, **options)
    digest = digest_data(data)
    if recipe.data.digest not in (None, digest):
        warnings.warn(
            f"these data (digest {digest}) are not those of the recipe ({recipe.data.given}, digest "
            f"{recipe.data.digest}): it is another run, in a folder of its own",
            UserWarning,
            stacklevel=3,
        )
    settings = {"data.name": data.name, "data.given": describe_source(source), "data.digest": digest}
    return recipe.override(settings), data


def check_in_reach(recipe: Recipe) -> None:
    """Check that the recipe's data can be loaded from its own settings.

    Args:
        recipe: the recipe of a run.

    Raises:
        ValueError: the data were given from Python; no folder holds them.

    >>> check_in_reach(Recipe.of({"method": "simclr", "data": "digits", "train": {"epochs": 1}}))
    """
    if recipe.data.digest is not None:
        raise ValueError(
            f"the data of {recipe.folder} were given from Python ({recipe.data.given}, digest {recipe.data.digest}), "
            "and a run folder does not hold its data. Give them again, from Python: "
            f"kontrast.run({f'{recipe.run.out}/{recipe.folder}'!r}, data=…). Or name data that lie in files, for a run "
            "of its own: data=photos/"
        )


def digest_data(data: DataSet) -> str:
    """Compute 32 digits over the content of all splits, in order; the names of the set and of files do not count.

    >>> import torch
    >>> from kontrast.data import from_arrays
    >>> one, other = from_arrays(torch.eye(3)), from_arrays(np.eye(3), name="other")
    >>> digest_data(one) == digest_data(other), digest_data(one) == digest_data(from_arrays(torch.eye(3).flip(0)))
    (True, False)
    """
    digest = hashlib.blake2b(repr((data.kind, data.mean, data.std, data.class_names)).encode(), digest_size=16)
    for name in ("train", "test", "unlabelled"):
        split = getattr(data, name)
        digest.update(f"{name} {'none' if split is None else identity(split, whole=True)}".encode())
    return digest.hexdigest()


def describe_source(source: Any) -> str:
    """Describe an object in a few words, for the recipe's file.

    >>> describe_source([Image.new("RGB", (4, 4))] * 3), describe_source((np.zeros((5, 8)), [0, 1, 0, 1, 0]))
    ('a list of 3 PIL images', 'numpy float64 [5, 8] and labels')
    """
    if isinstance(source, DataSet):
        text = f"the {source!r}"
    elif isinstance(source, np.ndarray | Tensor):
        kind, dtype = "a tensor" if isinstance(source, Tensor) else "numpy", str(source.dtype).removeprefix("torch.")
        text = f"{kind} {dtype} {list(source.shape)}"
    elif isinstance(source, Mapping):
        text = f"a mapping with {', '.join(map(str, source))}"
    elif (paths := parse_paths(source)) is not None:
        text = f"a list of {len(paths[0]):,} image files" + (" and labels" if paths[1] is not None else "")
    elif isinstance(source, tuple) and len(source) == 2 and isinstance(source[0], np.ndarray | Tensor | list | tuple):
        text = describe_source(source[0]) + (" and labels" if source[1] is not None else "")
    elif isinstance(source, list | tuple):
        images = all(isinstance(item, Image.Image) for item in source)
        text = f"a list of {len(source):,} {'PIL images' if images else 'items'}"
    else:
        text = f"a {type(source).__name__} of {len(source):,} items" if hasattr(source, "__len__") else repr(source)
    return one_line(text)[:200]
