"""Write the features of any data, by a run's encoder, into a file."""

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
from kontrast.train.encoder_files import crop_of, load, read_card
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
    """Write the features of a split of the data.

    The inputs get the encoder's channels, size and normalisation, as in the run's evaluation: the features of an image
    do not depend on the other images. Features are written batch by batch, so data larger than memory work too.

    Args:
        run: The finished run, or its folder.
        data: What `kontrast.data.load` takes: a set's name, a folder, an array file, an image file or a list of them,
            or an object.
        to: The file; its name ends in ``.npy``, ``.npz`` or ``.parquet`` (`kontrast.train.feature_files`).
        split: ``train``, ``test`` or ``unlabelled``; None is train, and a warning names the other splits of the data.
        batch_size: Rows that go through the encoder at once; None measures one row and chooses.
        workers: Processes that read files.
        device: ``auto``, ``cpu``, ``cuda``, …
        limit: Keep at most so many rows, classes even.
        progress: Called as the work proceeds.

    Returns:
        The numbers of rows and columns.

    Raises:
        ValueError: The data do not fit the encoder or lack the split, or the file's name has another ending.
    """
    target = expanded(to)
    feature_files.check(target)
    run = Run(run)
    card, encoder, place = read_card(run), load(run), pick_device(device)
    inputs = card["input"]
    fraction = crop_of(run, inputs)
    data_set = _load(data, split or TRAIN, inputs, fraction)
    if split is None:
        split = TRAIN
        _warn_of_others(data_set, data)
    rows: Split = getattr(data_set, split)
    rows = rows if limit is None else rows.limited(limit)
    batches = features_of(
        encoder,
        rows,
        mean=inputs["mean"],
        std=inputs["std"],
        size=inputs["shape"][1] if inputs["kind"] == "image" else None,
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
        class_names=None if rows.labels is None else data_set.class_names,
        paths=_paths(rows.inputs, data),
        about={"data": data_set.name, "split": split, "limit": limit, "run": card["hash"], "card": card},
    )
    return feature_files.write(target, table)


def _warn_of_others(data_set: DataSet, data: Any) -> None:
    """Warn if the data have other splits, and no split was named."""
    counts = {name: len(rows) for name in SPLITS if name != TRAIN and (rows := getattr(data_set, name)) is not None}
    if counts:
        others = " and ".join(f"{name} ({count:,})" for name, count in counts.items())
        warnings.warn(
            f"{_describe(data)}: only the split train ({len(data_set.train):,} rows) is embedded, not {others}. Use "
            f"--split {next(iter(counts))} (split= in Python) for the others, --split {TRAIN} to hide this warning",
            stacklevel=3,
        )


def _load(data: Any, split: str, inputs: dict[str, Any], fraction: float | None) -> DataSet:
    """Load the data with the encoder's channels and, if the run's loader resized images, the encoder's size."""
    is_image = inputs["kind"] == "image"
    options: dict[str, Any] = {"channels": inputs["shape"][0]} if is_image else {}
    if fraction == 1:
        options["size"] = inputs["shape"][1]
    files = _files(data)
    if files is not None:
        options["max_bad"] = 0  # who names a file wants its features
    if files is not None or (isinstance(data, str | os.PathLike) and expanded(data).is_dir()):
        options["memory"] = 0  # each file is read once, and keeps its name
    data_set = load_data(data, **options)
    splits = [name for name in SPLITS if getattr(data_set, name) is not None]
    if split not in splits:
        raise ValueError(f"{_describe(data)} has no split {split!r}; it has {', '.join(splits)}")
    rows: Split = getattr(data_set, split)
    shape, expected = rows.inputs.shape, tuple(inputs["shape"])
    if data_set.kind != inputs["kind"] or (not is_image and shape != expected):
        what = f"{data_set.kind}s {'of several sizes' if shape is None else shape}"
        raise ValueError(f"{_describe(data)} holds {what}; this encoder takes {inputs['kind']}s {expected}")
    if is_image and fraction is None and shape is not None and shape[1:] != expected[1:]:  # an older run
        data_set = load_data(data, size=expected[1], **options)
    return data_set


def _files(data: Any) -> list[str] | None:
    """The image files, if the data are a list of them or one; None for anything else."""
    if isinstance(data, str | os.PathLike):
        path = expanded(data)
        return [os.fspath(data)] if path.is_file() and path.suffix.lower() in suffixes() else None
    paths = parse_paths(data)
    return None if paths is None else paths[0]


def _describe(data: Any) -> str:
    return os.fspath(data) if isinstance(data, str | os.PathLike) else describe_source(data)


def _paths(inputs: Inputs, data: Any) -> list[str] | None:
    """The files of the rows, as in the list or relative to the data's folder; None if the rows are not files."""
    if isinstance(inputs, Rows):
        paths = _paths(inputs.inputs, data)
        return None if paths is None else [paths[i] for i in inputs.rows.tolist()]
    if not isinstance(inputs, Folder):
        return None
    files = _files(data)
    if files is not None:
        names = {os.path.abspath(expanded(name)): name for name in files}
        return [os.fsencode(names[path]).decode(errors="replace") for path in inputs.paths]
    folder = expanded(data) if isinstance(data, str | os.PathLike) else Path()
    if not isinstance(data, str | os.PathLike) or not folder.is_dir():  # a set by name, wherever its files lie
        folder = Path(os.path.commonpath([os.path.dirname(path) for path in inputs.paths]))
    # A name that is not UTF-8 comes from Python with surrogates, which no file of strings takes.
    return [os.fsencode(os.path.relpath(path, folder)).decode(errors="replace") for path in inputs.paths]
