"""From an encoder and data to a catalogue: every split through the encoder, and a small picture of every image.

Features may also come from a file of `kontrast embed`. Its rows are found in the data by their files' names, or by
their order where it has no names; without data there are no pictures.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kontrast import models
from kontrast.data import DataSet, Rows, Split
from kontrast.data import load as load_data
from kontrast.data.arrays import number_labels
from kontrast.evaluate import extract
from kontrast.evaluate.features import fraction_of
from kontrast.explore import thumbnails
from kontrast.explore.catalogue import NO_LABEL, Catalogue
from kontrast.explore.thumbnails import Thumbnails
from kontrast.files import expanded, read_npz
from kontrast.registry import one_line
from kontrast.runs import Run
from kontrast.train import embedding, load, pick_device
from kontrast.train.loading import is_run

SPLITS = ("train", "test", "unlabelled")
ONE_FILE = 5000  # rows whose pictures stand inside the page
MOST_BYTES = 16_000_000  # of these pictures: in base64, and with the chart library, a page stays below 25 MB
Progress = Callable[[str, int, int], object]


@dataclass(frozen=True)
class _Part:
    """A split, or some of its rows."""

    name: str
    rows: Split
    numbers: Tensor  # of these rows in the split


def read(
    encoder: Any,
    data: Any = None,
    *,
    pretrained: Any = None,
    split: str | None = None,
    limit: int | None = None,
    batch_size: int | None = None,
    device: str = "auto",
    workers: int = 0,
    progress: Progress | None = None,
) -> Catalogue:
    """Embed data and read its thumbnails.

    Args:
        encoder: A finished run, its folder, an encoder or its name (`kontrast.load`); or an .npz file that
            `kontrast embed` wrote, whose features are taken.
        data: What `kontrast.data.load` takes; None with a file of features, for its rows without pictures.
        pretrained: The weights of an encoder by name.
        split: One split alone; None is all of them.
        limit: At most so many rows altogether, of each split its share, classes even.
        batch_size: Rows that go through the encoder at once; None measures one row and chooses.
        device: ``auto``, ``cpu``, ``cuda``, …
        workers: Processes that read files for the encoder, and threads for thumbnails.
        progress: Called with ``(what, done, of)``.

    Returns:
        The catalogue.

    Raises:
        ValueError: The data do not fit the encoder or the features, or lack the split.
    """
    if limit is not None and limit < 1:
        raise ValueError(f"limit={limit}: must be at least 1. Leave it out for all rows")
    if isinstance(encoder, str | os.PathLike) and expanded(encoder).suffix == ".npz":
        return _of_file(expanded(encoder), data, split, limit, workers, progress)
    if data is None:
        raise ValueError("data: must be given with an encoder: a folder of images, an array file, or a set's name")
    prepared = _prepare(encoder, pretrained, data)
    data_set = prepared.data
    parts = _parts(data_set, split, limit)
    done, of = 0, sum(len(part.numbers) for part in parts)
    features = []
    for part in parts:

        def report(_: str, at: int, __: int, before: int = done) -> None:
            if progress is not None:
                progress("features", before + at, of)

        rows = extract(
            prepared.encoder,
            part.rows,
            mean=data_set.mean,
            std=data_set.std,
            size=prepared.size,
            fraction=None if prepared.size is None else fraction_of(data_set),
            interpolation=data_set.interpolation,
            batch_size=batch_size,
            device=pick_device(device),
            workers=workers,
            progress=report,
        )
        features.append(rows)
        done += len(part.numbers)
    return Catalogue(
        features=torch.cat(features),
        splits=[part.name for part in parts for _ in part.numbers],
        names=_names(parts),
        labels=_labels(parts),
        class_names=data_set.class_names,
        thumbnails=_thumbnails(data_set, parts, workers, progress),
        title=data_set.name,
        encoder=_describe(encoder),
    )


def _prepare(encoder: Any, pretrained: Any, data: Any) -> embedding.Prepared:
    """The encoder, and the data as it takes them."""
    if isinstance(encoder, str | os.PathLike) and (pretrained is not None or not is_run(encoder)):
        encoder = load(encoder, pretrained=pretrained)
    return embedding.prepare(encoder, data)


def _load(data: Any, **options: Any) -> DataSet:
    """Load data; files of a folder are read when they are needed, and keep their names."""
    if isinstance(data, str | os.PathLike) and expanded(data).is_dir():
        options["memory"] = 0
    return load_data(data, **options)


def _of_file(
    path: Path, data: Any, split: str | None, limit: int | None, workers: int, progress: Progress | None
) -> Catalogue:
    """The catalogue of a file of features."""
    arrays = read_npz(path, "write it again with kontrast embed", names=("features", "labels", "class_names", "paths"))
    if "features" not in arrays or arrays["features"].ndim != 2:
        raise ValueError(f"{path} has no features [N, D]: must be an .npz file that kontrast embed wrote")
    features = torch.from_numpy(np.asarray(arrays["features"], dtype=np.float32))
    paths = [str(name) for name in arrays["paths"]] if "paths" in arrays else None
    if data is not None:
        data_set = _load(data)
        parts, kept = _match(features, paths, _parts(data_set, split, None), path)
        parts, kept = _limited(parts, kept, limit)
        return Catalogue(
            features=features[kept],
            splits=[part.name for part in parts for _ in part.numbers],
            names=_names(parts),
            labels=_labels(parts),
            class_names=data_set.class_names,
            thumbnails=_thumbnails(data_set, parts, workers, progress),
            title=data_set.name,
            encoder=path.name,
        )
    names = [str(name) for name in arrays["class_names"]] if "class_names" in arrays else None
    labels, _, class_names = number_labels(arrays.get("labels"), None, names)
    rows = torch.arange(len(features))
    if limit is not None and limit < len(rows):
        rows = Split(_Numbers(len(rows)), labels).limited(limit).inputs.rows  # type: ignore[attr-defined]
    return Catalogue(
        features=features[rows],
        splits=[split or "train"] * len(rows),
        names=[f"row {row}" if paths is None else paths[row] for row in rows.tolist()],
        labels=None if labels is None else labels[rows],
        class_names=class_names,
        title=path.name,
        encoder=path.name,
    )


class _Numbers:
    """Inputs of which only the row numbers count."""

    shape = None

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def read(self, indices: Tensor, crop: Any = None, seeds: Any = None) -> Tensor:
        return indices


def _match(
    features: Tensor, paths: Sequence[str] | None, parts: Sequence[_Part], path: Path
) -> tuple[list[_Part], Tensor]:
    """The rows of the data that the features are of, and the rows of the features in their order."""
    if paths is not None and all(part.rows.names is not None for part in parts):
        place = {name: row for row, name in enumerate(paths)}
        found, kept = [], []
        for part in parts:
            names = part.rows.names or ()
            inside = [i for i, name in enumerate(names) if name in place]
            if inside:
                found.append(_subset(part, torch.tensor(inside)))
                kept += [place[names[i]] for i in inside]
        if not kept:
            raise ValueError(f"none of the files in {path} is in the data: {one_line(paths[0])}, for example")
        return found, torch.tensor(kept)
    if len(features) != sum(len(part.rows) for part in parts):
        counts = ", ".join(f"{part.name} {len(part.rows):,}" for part in parts)
        raise ValueError(
            f"{path} has {len(features):,} rows and no files' names, and the data have {counts}: name the split that "
            "was embedded (--split)"
        )
    return list(parts), torch.arange(len(features))


def _limited(parts: Sequence[_Part], kept: Tensor, limit: int | None) -> tuple[list[_Part], Tensor]:
    total = sum(len(part.rows) for part in parts)
    if limit is None or limit >= total:
        return list(parts), kept
    smaller, rows, start = [], [], 0
    for part in parts:
        some = _some(part.rows, max(1, limit * len(part.rows) // total))
        smaller.append(_subset(part, some))
        rows.append(kept[start : start + len(part.rows)][some])
        start += len(part.rows)
    return smaller, torch.cat(rows)


def _parts(data: DataSet, split: str | None, limit: int | None) -> list[_Part]:
    """The splits that are explored, or their share of ``limit`` rows."""
    there = [name for name in SPLITS if getattr(data, name) is not None]
    if split is not None and split not in there:
        raise ValueError(f"split={split!r}: must be one of the data's: {', '.join(there)}")
    parts = []
    for name in there if split is None else [split]:
        rows: Split = getattr(data, name)
        parts.append(_Part(name, rows, torch.arange(len(rows))))
    return _limited(parts, torch.arange(sum(len(part.rows) for part in parts)), limit)[0]


def _some(rows: Split, count: int) -> Tensor:
    """Which rows `Split.limited` keeps."""
    inputs = Split(Rows(rows.inputs, torch.arange(len(rows))), rows.labels).limited(count).inputs
    assert isinstance(inputs, Rows)
    return inputs.rows


def _subset(part: _Part, rows: Tensor) -> _Part:
    return _Part(part.name, part.rows.subset(rows), part.numbers[rows])


def _names(parts: Sequence[_Part]) -> list[str]:
    """The files, or the split and the row's number there."""
    names: list[str] = []
    for part in parts:
        if part.rows.names is not None:
            names += part.rows.names
        else:
            names += [f"{part.name} {number}" for number in part.numbers.tolist()]
    return names


def _labels(parts: Sequence[_Part]) -> Tensor | None:
    if all(part.rows.labels is None for part in parts):
        return None
    none = [torch.full((len(part.rows),), NO_LABEL) for part in parts]
    return torch.cat([y if (y := part.rows.labels) is not None else no for part, no in zip(parts, none, strict=True)])


def _thumbnails(data: DataSet, parts: Sequence[_Part], workers: int, progress: Progress | None) -> Thumbnails | None:
    if data.kind != "image":
        return None
    rows = sum(len(part.rows) for part in parts)
    return thumbnails.read(
        [part.rows.inputs for part in parts],
        most_bytes=MOST_BYTES if rows <= ONE_FILE else float("inf"),
        workers=workers,
        progress=None if progress is None else lambda done, of: progress("thumbnails", done, of),
    )


def _describe(encoder: Any) -> str:
    """What the features are from, in a few words."""
    if isinstance(encoder, models.Encoder):
        return type(encoder).__name__
    return Run(encoder).path.name if is_run(encoder) else str(encoder)
