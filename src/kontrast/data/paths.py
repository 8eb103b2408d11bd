"""Lists of image files, with or without labels, as data sets.

| form | what it is |
|---|---|
| ``["a.jpg", "b.png"]`` | images without labels |
| ``(["a.jpg", "b.png"], ["cat", "dog"])`` | images, and a label each |
| ``[("a.jpg", "cat"), ("b.png", "dog")]`` | the same, pair by pair |

A file that is not there is an error. One that is there and cannot be read as an image is skipped with a warning, and
its label with it, as in a folder (``max_bad``).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from kontrast.data.arrays import numbered
from kontrast.data.listing import SHOWN, Listing, warn_of_skipped
from kontrast.data.options import Options
from kontrast.data.records import DataSet, Split
from kontrast.data.storage import store
from kontrast.data.tree import Part, assembled
from kontrast.files import expanded
from kontrast.registry import one_line, quoted

Listed = tuple[list[str], Any]
"""Paths, and the labels, or None."""


def listed_paths(source: Any) -> Listed | None:
    """The paths and labels of one of the forms above; None if it is none of them.

    >>> listed_paths(["a.jpg", "b.png"]), listed_paths([("a.jpg", 1), ("b.png", 0)])
    ((['a.jpg', 'b.png'], None), (['a.jpg', 'b.png'], [1, 0]))
    >>> listed_paths([1.5, 2.5]) is None
    True
    """
    if isinstance(source, np.ndarray) and source.dtype.kind == "U" and source.ndim == 1:
        source = source.tolist()
    if not isinstance(source, list | tuple) or not source:
        return None
    if _is_pair(source):
        rows, labels = source
        found = listed_paths(rows)
        if found is not None and (labels is None or isinstance(labels, list | tuple | np.ndarray | Tensor)):
            return found[0], labels
        return None
    paths, items = [_is_path(item) for item in source], [_is_item(item) for item in source]
    if not any(paths) and not any(items):
        return None
    if all(paths):
        return [os.fspath(path) for path in source], None
    if all(items):
        return [os.fspath(item[0]) for item in source], [item[1] for item in source]
    kind = paths if any(paths) else items
    other = next(i for i, is_one in enumerate(kind) if not is_one)
    raise ValueError(
        f"item {other} of the list is {quoted(source[other])}, and others are paths; expected paths, or (path, label), "
        "for every item"
    )


def from_paths(train: Listed, options: Options, *, test: Listed | None = None) -> DataSet:
    """The images of lists of files as a data set.

    >>> import tempfile
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = [f"{folder}/{name}.png" for name in ("a", "b")]
    ...     for file in files:
    ...         Image.new("RGB", (4, 4)).save(file)
    ...     from_paths((files, ["cat", "dog"]), Options())
    DataSet 'files': 2 images (3, 4, 4) in 2 classes
    """
    splits = {"train": train} if test is None else {"train": train, "test": test}
    parts: dict[str, Part] = {}
    labels: dict[str, Any] = {}
    for key, (paths, given) in splits.items():
        parts[key], labels[key] = _read(key, paths, None if options.labelled is False else given, options)
    y_train, y_test, names = numbered(labels["train"], labels.get("test"))
    for key, y in (("train", y_train), ("test", y_test)):
        if key in parts:
            found = parts[key]
            parts[key] = Part(Split(found.split.inputs, y, found.split.names), found.skipped)
    count = sum(len(paths) for paths, _ in splits.values())
    return assembled("files", parts, names, options, note=f"a list of {count:,} files from Python")


def _read(key: str, paths: Sequence[str], labels: Any, options: Options) -> tuple[Part, list[Any] | None]:
    """The images of the files that can be read, and their labels."""
    if labels is not None and len(labels) != len(paths):
        raise ValueError(f"y_{key} has {len(labels)} labels for {len(paths)} files; expected one label a file")
    full = [Path(os.path.abspath(expanded(path, "a path"))) for path in paths]
    missing = [given for given, path in zip(paths, full, strict=True) if not path.is_file()]
    if missing:
        shown = ", ".join(one_line(name) for name in missing[:SHOWN]) + (" …" if len(missing) > SHOWN else "")
        raise ValueError(f"{len(missing):,} of {len(paths):,} paths are no files: {shown}; expected image files")
    folder = Path(os.path.commonpath([path.parent for path in full]))
    listing = Listing(folder, [path.relative_to(folder).as_posix() for path in full])
    inputs, kept = store(listing, options)
    warn_of_skipped(kept.skipped, len(listing), folder)
    bad = {name for name, _ in kept.skipped}
    values = labels.tolist() if isinstance(labels, np.ndarray | Tensor) else labels
    left = None if values is None else [y for y, name in zip(values, listing.names, strict=True) if name not in bad]
    return Part(Split(inputs, None, kept.names), tuple(kept.skipped)), left


def _is_path(item: Any) -> bool:
    return isinstance(item, str | os.PathLike)


def _is_pair(source: Any) -> bool:
    """Whether it is (paths, labels), such as ``(["a.jpg", "b.jpg"], [0, 1])``; a tuple of two (path, label) is not."""
    if not isinstance(source, tuple) or len(source) != 2 or _is_path(source[0]):
        return False
    return not isinstance(source[0], tuple) or not _is_item(source[0])


def _is_item(item: Any) -> bool:
    """Whether it is (path, label); two paths would be a list of paths."""
    if not isinstance(item, list | tuple) or len(item) != 2 or not _is_path(item[0]):
        return False
    return not isinstance(item[1], list | tuple | dict) and getattr(item[1], "ndim", 0) == 0
