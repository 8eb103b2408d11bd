"""A run's encoder over any data, into a file."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

from kontrast.data import DataSet, Folder, Inputs, Rows, Split
from kontrast.data import load as load_data
from kontrast.data.folder import parse_paths
from kontrast.data.identity import describe_source
from kontrast.data.image_files import suffixes
from kontrast.evaluate.features import features_of
from kontrast.evaluate.result import Progress
from kontrast.files import expanded
from kontrast.runs import Run
from kontrast.train import feature_files
from kontrast.train.export import crop_of, read_card, rebuild
from kontrast.train.machine import pick_device

TRAIN = "train"
SPLITS = (TRAIN, "test", "unlabelled")


def embed(
    run: str | os.PathLike[str] | Run,
    data: Any,
    to: str | os.PathLike[str],
    *,
    split: str | None = None,
    batch_size: int | None = None,
    workers: int = 0,
    device: str = "auto",
    limit: int | None = None,
    progress: Progress | None = None,
) -> tuple[int, int]:
    """Write the features of a split of the data; returns rows and columns.

    ``data`` is what `kontrast.data.load` takes: a set's name, a folder, an array file, an image file or a list of them,
    or an object. The inputs are brought to the encoder's channels and size, and normalised, as the run did it in its
    evaluation: an image's features are the same whatever others lie beside it. ``to`` ends in ``.npy``, ``.npz`` or
    ``.parquet`` (`kontrast.train.feature_files`); features go there batch by batch, so that data larger than memory
    need no more of it. ``batch_size`` is how many rows go through the encoder at once; None measures it on one row, so
    that large images go in small batches. ``limit`` keeps at most so many rows, classes even. Without ``split`` it is
    train, and a warning names the others that the data have.
    """
    target = expanded(to)
    feature_files.check(target)
    run = run if isinstance(run, Run) else Run(run)
    card, encoder, place = read_card(run), rebuild(run), pick_device(device)
    given = card["input"]
    fraction = crop_of(run, given)
    found = _found(data, split or TRAIN, given, fraction)
    if split is None:
        split = TRAIN
        _warn_of_others(found, data)
    rows: Split = getattr(found, split)
    rows = rows if limit is None else rows.limited(limit)
    batches = features_of(
        encoder,
        rows,
        mean=given["mean"],
        std=given["std"],
        size=given["shape"][1] if given["kind"] == "image" else None,
        fraction=fraction,
        batch_size=batch_size,
        workers=workers,
        device=place,
        progress=progress,
    )
    table = feature_files.Table(
        features=(batch.numpy() for batch in batches),
        rows=len(rows),
        labels=None if rows.labels is None else rows.labels.numpy(),
        class_names=None if rows.labels is None else found.class_names,
        paths=_paths(rows.inputs, data),
        about={"data": found.name, "split": split, "limit": limit, "run": card["hash"], "card": card},
    )
    return feature_files.write(target, table)


def _warn_of_others(found: DataSet, data: Any) -> None:
    """A warning where the data have rows that nobody asked for or against."""
    counts = {name: len(rows) for name in SPLITS if name != TRAIN and (rows := getattr(found, name)) is not None}
    if counts:
        others = " and ".join(f"{name} ({count:,})" for name, count in counts.items())
        warnings.warn(
            f"{_told(data)}: only the split train ({len(found.train):,} rows) is embedded, not {others}. Use --split "
            f"{next(iter(counts))} (split= in Python) for the others, --split {TRAIN} to leave this warning out",
            stacklevel=3,
        )


def _found(data: Any, split: str, given: dict[str, Any], fraction: float | None) -> DataSet:
    """The data as the encoder takes them: its channels, its length; its size, if the run had it so from the loader."""
    image = given["kind"] == "image"
    options: dict[str, Any] = {"channels": given["shape"][0]} if image else {}
    if fraction == 1:
        options["size"] = given["shape"][1]
    files = _files(data)
    if files is not None:
        options["max_bad"] = 0  # who names a file wants its features
    if files is not None or (isinstance(data, str | os.PathLike) and expanded(data).is_dir()):
        options["memory"] = 0  # each file is read once, and keeps its name
    found = load_data(data, **options)
    have = [name for name in SPLITS if getattr(found, name) is not None]
    if split not in have:
        raise ValueError(f"{_told(data)} has no split {split!r}; it has {', '.join(have)}")
    rows: Split = getattr(found, split)
    shape, wanted = rows.inputs.shape, tuple(given["shape"])
    if found.kind != given["kind"] or (not image and shape != wanted):
        what = f"{found.kind}s {'of several sizes' if shape is None else shape}"
        raise ValueError(f"{_told(data)} holds {what}; this encoder takes {given['kind']}s {wanted}")
    if image and fraction is None and shape is not None and shape[1:] != wanted[1:]:  # a run that does not say
        found = load_data(data, size=wanted[1], **options)
    return found


def _files(data: Any) -> list[str] | None:
    """The image files that were named one by one; None for anything else."""
    if isinstance(data, str | os.PathLike):
        path = expanded(data)
        return [os.fspath(data)] if path.is_file() and path.suffix.lower() in suffixes() else None
    found = parse_paths(data)
    return None if found is None else found[0]


def _told(data: Any) -> str:
    return os.fspath(data) if isinstance(data, str | os.PathLike) else describe_source(data)


def _paths(inputs: Inputs, data: Any) -> list[str] | None:
    """The files of the rows: as they were named, or from the data's folder on; None if they are no files."""
    if isinstance(inputs, Rows):
        every = _paths(inputs.inputs, data)
        return None if every is None else [every[i] for i in inputs.rows.tolist()]
    if not isinstance(inputs, Folder):
        return None
    files = _files(data)
    if files is not None:
        named = {os.path.abspath(expanded(name)): name for name in files}
        return [os.fsencode(named[path]).decode(errors="replace") for path in inputs.paths]
    folder = expanded(data) if isinstance(data, str | os.PathLike) else Path()
    if not isinstance(data, str | os.PathLike) or not folder.is_dir():  # a set by name, wherever its files lie
        folder = Path(os.path.commonpath([os.path.dirname(path) for path in inputs.paths]))
    # A name that is not UTF-8 comes from Python with surrogates, which no file of strings takes.
    return [os.fsencode(os.path.relpath(path, folder)).decode(errors="replace") for path in inputs.paths]
