"""Data sets from a folder of images, and from lists of image files.

    photos/cat/1.jpg  photos/dog/…                   two classes, training only
    photos/train/cat/1.jpg  photos/val/cat/…         the same with a test split (test, val, valid or validation)
    photos/1.jpg  photos/2.jpg …                     no labels
    photos/train/…  photos/unlabelled/…              a third split without labels

Classes are the first level of subfolders, sorted by name; deeper folders belong to them. A folder with one subfolder
has no labels, unless ``labelled=True``.

| list | meaning |
|---|---|
| ``["a.jpg", "b.png"]`` | images without labels |
| ``(["a.jpg", "b.png"], ["cat", "dog"])`` | images, and one label per image |
| ``[("a.jpg", "cat"), ("b.png", "dog")]`` | the same, as pairs |

A listed file that does not exist is an error. A file that exists and cannot be read is skipped together with its label,
with a warning, as in a folder.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kontrast.data.arrays import number_labels
from kontrast.data.dataset import DataSet, Options, Split, channel_statistics
from kontrast.data.image_files import SHOWN, Folder, Listing, list_images, store, warn_of_skipped
from kontrast.files import expanded
from kontrast.registry import one_line, quoted

TESTING = ("test", "val", "valid", "validation")
OTHER = "no image by its suffix"
UNLABELLED = ("unlabelled", "unlabeled")


@dataclass(frozen=True)
class Part:
    """One split of a folder: its images and labels, and the skipped files (named relative to the data set's folder)."""

    split: Split
    skipped: tuple[tuple[str, str], ...]


def from_folder(path: Path, options: Options) -> DataSet:
    """Make a data set of the images below ``path``.

    >>> import tempfile
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("cat", "dog"):
    ...         (Path(folder) / "pets" / name).mkdir(parents=True)
    ...         Image.new("RGB", (4, 4)).save(f"{folder}/pets/{name}/1.png")
    ...     from_folder(Path(folder) / "pets", Options())
    DataSet 'pets': 2 images (3, 4, 4) in 2 classes
    """
    if not path.is_dir():
        raise ValueError(f"{path}: must be a folder with images")
    inside = {entry.name.lower(): entry for entry in sorted(path.iterdir()) if entry.is_dir()}
    folders = {name for name in inside if not name.startswith(".")}
    # A class may be called "train" too: it is a split only beside other splits, or alone.
    has_splits = "train" in folders and (folders == {"train"} or not folders.isdisjoint((*TESTING, *UNLABELLED)))
    train = list_images(inside["train"] if has_splits else path)
    classes = class_folders(train, options.labelled)
    parts = {"train": read_user_part(train, classes, options, folder=path)}
    names = classes
    for name in TESTING if has_splits else ():
        if name in folders:
            test = list_images(inside[name])
            test_classes = class_folders(test, options.labelled)
            if classes is not None and test_classes is None:
                continue  # ImageNet's own test folder, flat: without labels it tests nothing
            names = names or test_classes
            parts["test"] = read_user_part(test, names if test_classes else None, options, folder=path)
            break
    for name in UNLABELLED if has_splits else ():
        if name in folders:
            parts["unlabelled"] = read_user_part(list_images(inside[name]), None, options, folder=path)
    others = sum(why == OTHER for part in parts.values() for _, why in part.skipped)
    note = f"images in the folder {one_line(path.resolve().name)}"
    note += f"; {others:,} files of other kinds beside them" if others else ""
    return assemble(path.resolve().name, parts, names, options, note=note)


def read_user_part(
    listing: Listing, classes: Collection[str] | None, options: Options, *, folder: Path | None = None
) -> Part:
    """Read a split of the user's own folder; files of other kinds are added to the skipped.

    ``folder`` is the data's folder, which the rows' names are relative to; None: the listing's.
    """
    part = read_part(listing, classes, options)
    if folder is not None and folder != listing.folder and part.split.names is not None:
        below = listing.folder.relative_to(folder).as_posix()
        part = replace(part, split=replace(part.split, names=[f"{below}/{name}" for name in part.split.names]))
    return replace(part, skipped=(*part.skipped, *((name, OTHER) for name in listing.others)))


def assemble(
    name: str,
    parts: dict[str, Part],
    class_names: list[str] | None,
    options: Options,
    *,
    statistics: tuple[tuple[float, ...], tuple[float, ...]] | None = None,
    note: str = "",
) -> DataSet:
    """Make a data set of its parts ``train``, ``test``, ``unlabelled``.

    Statistics are computed if they are not given, or given for other channels (RGB, where grey is requested).
    """
    train = parts["train"].split
    fit = statistics if statistics and len(statistics[0]) == (options.channels or 3) else None
    mean, std = fit or channel_statistics(train.inputs, size=options.size or 224)
    splits = {key: part.split for key, part in parts.items()}
    skipped = tuple((f"{key}: {file}", why) for key, part in parts.items() for file, why in part.skipped)
    return DataSet(
        name=name.encode(errors="backslashreplace").decode(),
        train=train,
        test=splits.get("test"),
        unlabelled=splits.get("unlabelled"),
        # Names need not be text, and reports and files of text hold them.
        class_names=class_names and [name.encode(errors="backslashreplace").decode() for name in class_names],
        kind="image",
        mean=mean,
        std=std,
        note=note,
        skipped=skipped,
    )


def class_folders(listing: Listing, labelled: bool | None = None) -> list[str] | None:
    """The subfolders with images, sorted, if they are classes; None if the folder has no labels.

    >>> class_folders(Listing(Path("."), ["dog/1.png", "cat/1.png", "cat/old/2.png"]))
    ['cat', 'dog']
    >>> class_folders(Listing(Path("."), ["1.png", "2.png"])) is None
    True
    """
    if labelled is False:
        return None
    folders = sorted({name.partition("/")[0] for name in listing.names if "/" in name})
    if labelled and not folders:
        raise ValueError(
            f"labelled=True: must have one subfolder per class, and {listing.folder} has no subfolders with images"
        )
    return folders if len(folders) > 1 or labelled else None


def read_part(listing: Listing, classes: Collection[str] | None, options: Options) -> Part:
    """Read the split of a listing; with ``classes``, the first level of folders gives the labels."""
    if classes is not None:
        stray = {i: "beside the class folders, in none" for i, name in enumerate(listing.names) if "/" not in name}
        unknown = sorted({n.partition("/")[0] for n in listing.names if "/" in n} - set(classes))
        if unknown:
            raise ValueError(
                f"{listing.folder} has classes that the training folder lacks: "
                f"{', '.join(map(one_line, unknown[:5]))}. Both must have the same subfolders"
            )
        if len(stray) > options.bad_limit(len(listing)):
            raise ValueError(
                f"{len(stray):,} images lie in {listing.folder} itself, beside {len(classes)} class folders. Move them "
                "into class folders, or load with labelled=False"
            )
        listing = listing.without(stray)
    files = len(listing) + len(listing.skipped)
    inputs, readable = store(listing, options)
    labels = None
    if classes is not None:
        place = {name: i for i, name in enumerate(sorted(classes))}
        labels = torch.tensor([place[name.partition("/")[0]] for name in readable.names])
        _warn_of_empty(listing, readable, place)
    if isinstance(inputs, Folder):
        inputs.labels = labels
    warn_of_skipped(readable.skipped, files, listing.folder)
    return Part(Split(inputs, labels, readable.names), tuple(readable.skipped))


def _warn_of_empty(listing: Listing, readable: Listing, classes: Collection[str]) -> None:
    """Warn about classes that have files in ``listing``, but no readable image."""
    files = [*listing.names, *(name for name, _ in listing.skipped)]
    classes_with_files = {name.partition("/")[0] for name in files if "/" in name} & set(classes)
    empty = sorted(classes_with_files - {name.partition("/")[0] for name in readable.names})
    if empty:
        names = ", ".join(map(one_line, empty[:5])) + (f" and {len(empty) - 5:,} more" if len(empty) > 5 else "")
        warnings.warn(
            f"{len(empty):,} of {len(classes):,} classes have no image in {listing.folder} that can be read, though "
            f"they count as classes: {names}",
            UserWarning,
            stacklevel=3,
        )


PathList = tuple[list[str], Any]
"""Paths, and their labels or None."""


def parse_paths(source: Any) -> PathList | None:
    """The paths and labels of one of the forms of the module's second table; None if it is none of them.

    >>> parse_paths(["a.jpg", "b.png"]), parse_paths([("a.jpg", 1), ("b.png", 0)])
    ((['a.jpg', 'b.png'], None), (['a.jpg', 'b.png'], [1, 0]))
    >>> parse_paths([1.5, 2.5]) is None
    True
    """
    if isinstance(source, np.ndarray) and source.dtype.kind == "U" and source.ndim == 1:
        source = source.tolist()
    if not isinstance(source, list | tuple) or not source:
        return None
    if _is_pair(source):
        rows, labels = source
        paths_of_rows = parse_paths(rows)
        if paths_of_rows is not None and (labels is None or isinstance(labels, list | tuple | np.ndarray | Tensor)):
            return paths_of_rows[0], labels
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
        f"item {other} of the list is {quoted(source[other])}, and others are paths: all items must be paths, or all "
        "(path, label)"
    )


def from_paths(train: PathList, options: Options, *, test: PathList | None = None) -> DataSet:
    """Make a data set of lists of image files.

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
    for key, (paths, y) in splits.items():
        parts[key], labels[key] = _read_files(key, paths, None if options.labelled is False else y, options)
    y_train, y_test, names = number_labels(labels["train"], labels.get("test"))
    for key, y in (("train", y_train), ("test", y_test)):
        if key in parts:
            parts[key] = replace(parts[key], split=parts[key].split.with_labels(y))
    count = sum(len(paths) for paths, _ in splits.values())
    return assemble("files", parts, names, options, note=f"a list of {count:,} files from Python")


def _read_files(key: str, paths: Sequence[str], labels: Any, options: Options) -> tuple[Part, list[Any] | None]:
    """Read the files that can be read, with their labels."""
    if labels is not None and len(labels) != len(paths):
        raise ValueError(f"y_{key}: must have {len(paths)} labels, one for each file; got {len(labels)}")
    full = [Path(os.path.abspath(expanded(path, "a path"))) for path in paths]
    absent = [name for name, path in zip(paths, full, strict=True) if not path.is_file()]
    if absent:
        names = ", ".join(map(one_line, absent[:SHOWN])) + (" …" if len(absent) > SHOWN else "")
        raise ValueError(f"{len(absent):,} of {len(paths):,} paths are not files: {names}. They must be image files")
    folder = Path(os.path.commonpath([path.parent for path in full]))
    listing = Listing(folder, [path.relative_to(folder).as_posix() for path in full])
    inputs, readable = store(listing, options)
    warn_of_skipped(readable.skipped, len(listing), folder)
    bad = {name for name, _ in readable.skipped}
    values = labels.tolist() if isinstance(labels, np.ndarray | Tensor) else labels
    rest = None if values is None else [y for y, name in zip(values, listing.names, strict=True) if name not in bad]
    return Part(Split(inputs, None, readable.names), tuple(readable.skipped)), rest


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
