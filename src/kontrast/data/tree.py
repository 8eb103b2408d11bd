"""A folder of images as a data set: its subfolders are the classes; without subfolders it has no labels.

    photos/cat/1.jpg  photos/dog/…                   two classes, training only
    photos/train/cat/1.jpg  photos/val/cat/…         the same with testing (test, val, valid or validation)
    photos/1.jpg  photos/2.jpg …                     no labels, and none are made up
    photos/train/…  photos/unlabelled/…              a third split without labels

Classes are the first level of subfolders, sorted by name; what lies deeper belongs to them. A single subfolder is no
division into classes: such a folder has no labels either (``labelled=True`` insists).
"""

from __future__ import annotations

import warnings
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from kontrast.data.folder import Folder
from kontrast.data.listing import Listing, list_images, warn_of_skipped
from kontrast.data.options import Options
from kontrast.data.records import DataSet, Split
from kontrast.data.statistics import channel_statistics
from kontrast.data.storage import store
from kontrast.registry import one_line

TESTING = ("test", "val", "valid", "validation")
OTHER = "no image by its suffix"
UNLABELLED = ("unlabelled", "unlabeled")


@dataclass(frozen=True)
class Part:
    """One split of a folder: its images, labels, and what was skipped (named from the data set's folder)."""

    split: Split
    skipped: tuple[tuple[str, str], ...]


def from_folder(path: Path, options: Options) -> DataSet:
    """The images below ``path`` as a data set.

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
        raise ValueError(f"{path} is no folder; expected one with images in it")
    inside = {entry.name.lower(): entry for entry in sorted(path.iterdir()) if entry.is_dir()}
    folders = {name for name in inside if not name.startswith(".")}
    known = {"train", *TESTING, *UNLABELLED}
    # A class may be called "train" too: it is a split only beside other splits, or alone.
    has_splits = "train" in folders and (bool(folders & (known - {"train"})) or folders == {"train"})
    listed = replace(options, check="names")
    train = list_images(inside["train"] if has_splits else path, listed)
    classes = class_folders(train, options.labelled)
    parts = {"train": own_part(train, classes, options, folder=path)}
    names = classes
    for name in TESTING if has_splits else ():
        if name in folders:
            found = list_images(inside[name], listed)
            theirs = class_folders(found, options.labelled)
            if classes is not None and theirs is None:
                continue  # ImageNet's own test folder, flat: without labels it tests nothing
            names = names or theirs
            parts["test"] = own_part(found, names if theirs else None, options, folder=path)
            break
    for name in UNLABELLED if has_splits else ():
        if name in folders:
            parts["unlabelled"] = own_part(list_images(inside[name], listed), None, options, folder=path)
    others = sum(why == OTHER for part in parts.values() for _, why in part.skipped)
    note = f"images in the folder {one_line(path.resolve().name)}"
    note += f"; {others:,} files of other kinds beside them" if others else ""
    return assembled(path.resolve().name, parts, names, options, note=note)


def own_part(
    listing: Listing, classes: Collection[str] | None, options: Options, *, folder: Path | None = None
) -> Part:
    """The split of a listing of the user's own, what is no image by its suffix listed with the skipped.

    ``folder`` is the data's, which the rows' names begin below; None: the listing's.
    """
    part = read_part(listing, classes, options)
    if folder is not None and folder != listing.folder and part.split.names is not None:
        below = listing.folder.relative_to(folder).as_posix()
        part = replace(part, split=replace(part.split, names=[f"{below}/{name}" for name in part.split.names]))
    return replace(part, skipped=(*part.skipped, *((name, OTHER) for name in listing.others)))


def assembled(
    name: str,
    parts: dict[str, Part],
    class_names: list[str] | None,
    options: Options,
    *,
    statistics: tuple[tuple[float, ...], tuple[float, ...]] | None = None,
    note: str = "",
) -> DataSet:
    """A data set of its parts ``train``, ``test``, ``unlabelled``.

    Statistics are computed if not given, or given for other channels (RGB, where grey was asked for).
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
    """The subfolders that hold images, sorted, if they are classes; None if the folder has no labels.

    >>> class_folders(Listing(Path("."), ["dog/1.png", "cat/1.png", "cat/old/2.png"]))
    ['cat', 'dog']
    >>> class_folders(Listing(Path("."), ["1.png", "2.png"])) is None
    True
    """
    if labelled is False:
        return None
    found = sorted({name.partition("/")[0] for name in listing.names if "/" in name})
    if labelled and not found:
        raise ValueError(f"labelled=True, but {listing.folder} has no subfolders with images; expected one a class")
    return found if len(found) > 1 or labelled else None


def read_part(listing: Listing, classes: Collection[str] | None, options: Options) -> Part:
    """The split of a listing; with ``classes``, its first level of folders gives the labels."""
    if classes is not None:
        stray = {i: "beside the class folders, in none" for i, name in enumerate(listing.names) if "/" not in name}
        unknown = sorted({n.partition("/")[0] for n in listing.names if "/" in n} - set(classes))
        if unknown:
            raise ValueError(
                f"{listing.folder} has classes that training has not: {', '.join(map(one_line, unknown[:5]))}; "
                "expected the same folders"
            )
        if len(stray) > options.bad_limit(len(listing)):
            raise ValueError(
                f"{len(stray):,} images lie in {listing.folder} itself, beside {len(classes)} class folders; put them "
                "into classes, or load with labelled=False"
            )
        listing = listing.without(stray)
    files = len(listing) + len(listing.skipped)
    inputs, kept = store(listing, options)
    labels = None
    if classes is not None:
        place = {name: i for i, name in enumerate(sorted(classes))}
        labels = torch.tensor([place[name.partition("/")[0]] for name in kept.names])
        _warn_of_empty(listing, kept, place)
    if isinstance(inputs, Folder):
        inputs.labels = labels
    warn_of_skipped(kept.skipped, files, listing.folder)
    return Part(Split(inputs, labels, kept.names), tuple(kept.skipped))


def _warn_of_empty(listing: Listing, kept: Listing, classes: Collection[str]) -> None:
    """A warning that names the classes which have files in ``listing`` but no image that could be read."""
    named = [*listing.names, *(name for name, _ in listing.skipped)]
    had = {name.partition("/")[0] for name in named if "/" in name} & set(classes)
    empty = sorted(had - {name.partition("/")[0] for name in kept.names})
    if empty:
        listed = ", ".join(map(one_line, empty[:5])) + (f" and {len(empty) - 5:,} more" if len(empty) > 5 else "")
        warnings.warn(
            f"{len(empty):,} of {len(classes):,} classes have no image in {listing.folder} that can be read, though "
            f"they count as classes: {listed}",
            UserWarning,
            stacklevel=3,
        )
