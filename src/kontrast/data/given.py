"""Data given from Python as an object: known by their content, and written into the recipe by its digest.

A recipe names its data by a set's name or a path. An object has neither, so the recipe holds what the object was
(``data.given``) and a digest of its content (``data.digest``), which is part of the hash: other data are another run,
the same data again are the same run, whatever object they come in.

| object | what is digested |
|---|---|
| in memory (arrays, tensors, images of one size) | every pixel or number, and the labels |
| image files | the bytes of every file |
| a torch ``Dataset`` or list whose items stay there | every item |
| all | mean and std, class names, the order of rows |
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from PIL import Image
from torch import Tensor

from kontrast.data.arrays import ALIASES, KEYS
from kontrast.data.identity import identity
from kontrast.data.loading import load
from kontrast.data.objects import is_random
from kontrast.data.paths import listed_paths
from kontrast.data.records import DataSet
from kontrast.recipe import Recipe
from kontrast.registry import one_line


def taken(overrides: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The object among a recipe's overrides, if ``data`` or ``data.name`` is one, and the other overrides.

    >>> taken({"seed": 1, "data": {"name": [1.0, 2.0], "size": 32}})
    ([1.0, 2.0], {'seed': 1, 'data': {'size': 32}})
    >>> taken({"data": "photos/"}), taken({"data": {"size": 32}})
    ((None, {'data': 'photos/'}), (None, {'data': {'size': 32}}))
    """
    rest = dict(overrides)
    found = None
    for key in ("data", "data.name"):
        value = rest.get(key)
        if isinstance(value, os.PathLike):
            rest[key] = os.fspath(value)
        elif _is_object(value):
            found = rest.pop(key)
        elif key == "data" and isinstance(value, Mapping):
            if isinstance(value.get("name"), os.PathLike):
                rest[key] = {**value, "name": os.fspath(value["name"])}
            elif _is_object(value.get("name")):
                found, rest[key] = value["name"], {k: v for k, v in value.items() if k != "name"}
    return found, rest


def _is_object(value: Any) -> bool:
    """Whether it is data, and not a name, a path, or settings of the data section."""
    if isinstance(value, Mapping):
        return any(key in KEYS or key in ALIASES for key in value)
    return not isinstance(value, str | os.PathLike | bool | int | float | None)


def bound(recipe: Recipe, source: Any) -> tuple[Recipe, DataSet]:
    """The recipe with what the data are written into it, and the data set, loaded as the recipe asks.

    >>> from kontrast.data import load
    >>> recipe = Recipe.of({"method": "simclr", "train": {"epochs": 1}})
    >>> again, found = bound(recipe, load("digits", limit=100))
    >>> again.data.name, again.data.given
    ('digits', "the DataSet 'digits': 100 images (1, 8, 8), 360 for testing in 10 classes")
    >>> again.hash == bound(recipe, load("digits", limit=100))[0].hash, again.hash == recipe.hash
    (True, False)
    """
    wanted = recipe.data
    options = {name: getattr(wanted, name) for name in ("size", "channels", "labelled")}
    if is_random(source):
        warnings.warn(
            f"the items of the {type(source).__name__} change from one reading to the next, so they are other data "
            "each time, and no run of them can be resumed. Leave random transforms out of it: kontrast's augmentations "
            "draw anew in every epoch",
            UserWarning,
            stacklevel=3,
        )
    data = load(source, root=recipe.run.data_root, cache=recipe.run.cache or None, **options)
    digest = digest_of(data)
    if wanted.digest not in (None, digest):
        warnings.warn(
            f"these data (digest {digest}) are not those of the recipe ({wanted.given}, digest {wanted.digest}): it is "
            "another run, in a folder of its own",
            UserWarning,
            stacklevel=3,
        )
    said = {"data.name": data.name, "data.given": what_it_is(source), "data.digest": digest}
    return recipe.override(said), data


def check_in_reach(recipe: Recipe) -> None:
    """An error if the recipe's data were given from Python: no folder holds them."""
    if recipe.data.digest is not None:
        raise ValueError(
            f"the data of {recipe.folder} were given from Python ({recipe.data.given}, digest {recipe.data.digest}), "
            "and a run folder does not hold its data. Give them again, from Python: "
            f"kontrast.run({f'{recipe.run.out}/{recipe.folder}'!r}, data=…). Or name data that lie in files, for a run "
            "of its own: data=photos/"
        )


def digest_of(data: DataSet) -> str:
    """32 digits over the content of all splits, in their order; the set's name and the files' names do not count.

    >>> import torch
    >>> from kontrast.data import from_arrays
    >>> one, other = from_arrays(torch.eye(3)), from_arrays(np.eye(3), name="other")
    >>> digest_of(one) == digest_of(other), digest_of(one) == digest_of(from_arrays(torch.eye(3).flip(0)))
    (True, False)
    """
    seen = hashlib.blake2b(repr((data.kind, data.mean, data.std, data.class_names)).encode(), digest_size=16)
    for name in ("train", "test", "unlabelled"):
        split = getattr(data, name)
        seen.update(f"{name} {'none' if split is None else identity(split, whole=True)}".encode())
    return seen.hexdigest()


def what_it_is(source: Any) -> str:
    """An object in a few words, for the recipe's file.

    >>> what_it_is([Image.new("RGB", (4, 4))] * 3), what_it_is((np.zeros((5, 8)), [0, 1, 0, 1, 0]))
    ('a list of 3 PIL images', 'numpy float64 [5, 8] and labels')
    """
    if isinstance(source, DataSet):
        said = f"the {source!r}"
    elif isinstance(source, np.ndarray | Tensor):
        said = f"{'a tensor' if isinstance(source, Tensor) else 'numpy'} {_dtype(source)} {list(source.shape)}"
    elif isinstance(source, Mapping):
        said = f"a mapping with {', '.join(map(str, source))}"
    elif (paths := listed_paths(source)) is not None:
        said = f"a list of {len(paths[0]):,} image files" + (" and labels" if paths[1] is not None else "")
    elif isinstance(source, tuple) and len(source) == 2 and isinstance(source[0], np.ndarray | Tensor | list | tuple):
        said = what_it_is(source[0]) + (" and labels" if source[1] is not None else "")
    elif isinstance(source, list | tuple):
        images = all(isinstance(item, Image.Image) for item in source)
        said = f"a list of {len(source):,} {'PIL images' if images else 'items'}"
    else:
        said = f"a {type(source).__name__} of {len(source):,} items" if hasattr(source, "__len__") else repr(source)
    return one_line(said)[:200]


def _dtype(source: np.ndarray[Any, Any] | Tensor) -> str:
    return str(source.dtype).removeprefix("torch.")
