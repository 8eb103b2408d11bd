"""The features of any data, by any encoder: in memory (`features`) or in a file (`embed`)."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kontrast import models
from kontrast.data import DataSet, Folder, Inputs, Rows, Split
from kontrast.data import load as load_data
from kontrast.data.folder import parse_paths
from kontrast.data.identity import describe_source
from kontrast.data.image_files import suffixes
from kontrast.evaluate.features import FRACTION, features_of, fraction_of
from kontrast.evaluate.result import Progress
from kontrast.files import expanded
from kontrast.runs import Run
from kontrast.train import feature_files, preparing
from kontrast.train.encoder_files import crop_of, load, read_card
from kontrast.train.job import LARGE
from kontrast.train.machine import pick_device

TRAIN = "train"
SPLITS = (TRAIN, "test", "unlabelled")


@dataclass(frozen=True, eq=False)
class Prepared:
    """An encoder, and data that are read as it takes them.

    Attributes:
        encoder: In eval mode.
        data: The data, with the encoder's channels, size, crop, interpolation, mean and std.
        size: Pixels of the side; None for vectors, and where images of one size go in whole.
        card: The content of model.json of a run; None for an encoder by name.
    """

    encoder: models.Encoder
    data: DataSet
    size: int | None
    card: dict[str, Any] | None = None


@dataclass(frozen=True, eq=False)
class Embedded:
    """The features of a split, and the split.

    Attributes:
        features: float32 ``[N, D]``.
        rows: The split: labels, and the rows' file names where they are files.
        data: The data set, with the names of the classes.
        paths: The files, as they were given or relative to the data's folder; None if the rows are not files.
    """

    features: Tensor
    rows: Split
    data: DataSet
    paths: list[str] | None


def prepare(source: str | os.PathLike[str] | Run | models.Encoder, data: Any, **options: Any) -> Prepared:
    """Load data as an encoder takes them.

    A run's encoder and one with published weights read images as their own did. Weights that do not say how read them
    as a run that starts from them would: with the mean and std of the data, at the images' own size, or 224 if they
    have several.

    Args:
        source: A finished run, its folder, or an encoder (`kontrast.load`).
        data: What `kontrast.data.load` takes: a set's name, a folder, an array file, an image file or a list of them,
            or an object.
        **options: Those of `kontrast.data.load`.

    Returns:
        The encoder and the data.

    Raises:
        ValueError: The data do not fit the encoder.
    """
    run = None if isinstance(source, models.Encoder) else Run(source)
    encoder = source if isinstance(source, models.Encoder) else load(source)
    card = None if run is None else read_card(run)
    how, statistics = encoder.preprocessing, encoder.standardisation
    is_image = how is not None or isinstance(encoder, models.ImageEncoder)
    channels = getattr(encoder, "in_channels", 3 if how is None else len(how.mean))
    of_image: dict[str, Any] = {"channels": channels} if is_image else {}
    files = _files(data)
    if files is not None:
        of_image["max_bad"] = 0  # who names a file wants its features
    if files is not None or (isinstance(data, str | os.PathLike) and expanded(data).is_dir()):
        of_image["memory"] = 0  # each file is read once, and keeps its name
    data_set = load_data(data, **{**of_image, **options})
    length = None if statistics is None else len(statistics[0])
    _check_kind(data_set, data, "image" if is_image else "vector", card, length)
    if statistics is not None and not is_image:
        data_set = replace(data_set, mean=tuple(statistics[0]), std=tuple(statistics[1]))
    if not is_image:
        return Prepared(encoder.eval(), data_set, None, card)
    shape = data_set.train.inputs.shape
    if how is None:
        return Prepared(encoder.eval(), data_set, LARGE if fraction_of(data_set) is not None else None, card)
    data_set = preparing.prepare(data_set, how)
    if run is not None and card is not None and crop_of(run, card["input"]) is None:  # an older run
        data_set = replace(data_set, crop=FRACTION if shape is None else 1.0)
    return Prepared(encoder.eval(), data_set, how.size, card)


def features(
    source: str | os.PathLike[str] | Run | models.Encoder,
    data: Any,
    *,
    split: str = TRAIN,
    batch_size: int | None = None,
    workers: int = 0,
    device: str = "auto",
    limit: int | None = None,
    progress: Progress | None = None,
) -> Embedded:
    """The features of a split of any data, by any encoder.

    Args:
        source: A finished run, its folder, or an encoder (`kontrast.load`).
        data: As for `prepare`.
        split: ``train``, ``test`` or ``unlabelled``.
        batch_size: Rows that go through the encoder at once; None measures one row and chooses.
        workers: Processes that read files.
        device: ``auto``, ``cpu``, ``cuda``, …
        limit: Keep at most so many rows, classes even.
        progress: Called as the work proceeds.

    Returns:
        The features with the rows' labels and names.

    Raises:
        ValueError: The data do not fit the encoder, or lack the split.
    """
    place, prepared = pick_device(device), prepare(source, data)
    rows = _rows(prepared.data, data, split, limit)
    batches = list(_batches(prepared, rows, batch_size, workers, place, progress))
    return Embedded(torch.cat(batches), rows, prepared.data, _paths(rows.inputs, data))


def embed(
    source: str | os.PathLike[str] | Run | models.Encoder,
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
        source: The finished run, its folder, or an encoder (`kontrast.load`).
        data: As for `prepare`.
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
    place, prepared = pick_device(device), prepare(source, data)
    data_set = prepared.data
    if split is None:
        split = TRAIN
        _warn_of_others(data_set, data)
    rows = _rows(data_set, data, split, limit)
    batches = _batches(prepared, rows, batch_size, workers, place, progress)
    about: dict[str, Any] = {"data": data_set.name, "split": split, "limit": limit}
    if prepared.card is not None:
        about |= {"run": prepared.card["hash"], "card": prepared.card}
    else:
        about |= describe(prepared.encoder)
    table = feature_files.Table(
        features=(batch.numpy() for batch in batches),
        rows=len(rows),
        labels=None if rows.labels is None else rows.labels.numpy(),
        class_names=None if rows.labels is None else data_set.class_names,
        paths=_paths(rows.inputs, data),
        about=about,
    )
    return feature_files.write(target, table)


def describe(encoder: models.Encoder) -> dict[str, Any]:
    """The weights of an encoder and its preprocessing, for JSON."""
    loaded, how = encoder.loaded, encoder.preprocessing
    return {
        "weights": None if loaded is None else loaded.record(),
        "preprocessing": None if how is None else how.record(),
    }


def _batches(
    prepared: Prepared,
    rows: Split,
    batch_size: int | None,
    workers: int,
    device: torch.device,
    progress: Progress | None,
) -> Iterator[Tensor]:
    data = prepared.data
    return features_of(
        prepared.encoder,
        rows,
        mean=data.mean,
        std=data.std,
        size=prepared.size,
        fraction=None if prepared.size is None else fraction_of(data),
        interpolation=data.interpolation,
        batch_size=batch_size,
        workers=workers,
        device=device,
        progress=progress,
    )


def _rows(data_set: DataSet, data: Any, split: str, limit: int | None) -> Split:
    splits = [name for name in SPLITS if getattr(data_set, name) is not None]
    if split not in splits:
        raise ValueError(f"{_describe(data)} has no split {split!r}; it has {', '.join(splits)}")
    rows: Split = getattr(data_set, split)
    return rows if limit is None else rows.limited(limit)


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


def _check_kind(data_set: DataSet, data: Any, kind: str, card: dict[str, Any] | None, length: int | None) -> None:
    """Raise if the data are images and the encoder takes vectors, or the reverse, or vectors of another length."""
    shape = data_set.train.inputs.shape
    expected = tuple(card["input"]["shape"]) if card is not None else None if length is None else (length,)
    if data_set.kind == kind and (kind == "image" or expected is None or shape == expected):
        return
    what = f"{data_set.kind}s {'of several sizes' if shape is None else shape}"
    raise ValueError(
        f"{_describe(data)} holds {what}; this encoder takes {kind}s{'' if expected is None else f' {expected}'}"
    )


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
