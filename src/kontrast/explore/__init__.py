"""Explore data with an encoder: what is in them, what is twice in them, and which labels are wrong.

    features → neighbours → near-duplicates, outliers, label errors, overlapping classes, a map → page, lists

Each measure is a pure function of features (`kontrast.explore.duplicates`, `outliers`, `label_errors`, `overlaps`,
`projection`); `record.collect` calls them all, `page` and `writing` show and store what came out.

>>> import torch
>>> from kontrast.explore import Catalogue, collect
>>> x = torch.randn(60, 4, generator=torch.Generator().manual_seed(0)) + 5 * torch.eye(2, 4).repeat(30, 1)
>>> y = torch.arange(60) % 2
>>> y[7] = 0
>>> found = collect(Catalogue(x, ["train"] * 40 + ["test"] * 20, labels=y))
>>> found.label_errors[0]["name"], found.label_errors[0]["suggested"]
('train 7', '1')
"""

from __future__ import annotations

import os
from typing import Any

from kontrast.explore import reading, writing
from kontrast.explore.catalogue import Catalogue
from kontrast.explore.duplicates import Group, duplicates
from kontrast.explore.label_errors import LabelErrors, label_errors
from kontrast.explore.outliers import Outliers, outliers
from kontrast.explore.overlaps import Overlap, overlaps
from kontrast.explore.projection import project, trustworthiness
from kontrast.explore.record import Exploration, Progress, collect
from kontrast.files import expanded

__all__ = [
    "Catalogue",
    "Exploration",
    "Group",
    "LabelErrors",
    "Outliers",
    "Overlap",
    "collect",
    "duplicates",
    "explore",
    "label_errors",
    "outliers",
    "overlaps",
    "project",
    "trustworthiness",
]


def explore(
    encoder: Any,
    data: Any = None,
    out: str | os.PathLike[str] | None = None,
    *,
    pretrained: Any = None,
    split: str | None = None,
    limit: int | None = None,
    batch_size: int | None = None,
    device: str = "auto",
    workers: int = 0,
    index: str | os.PathLike[str] | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Exploration:
    """Explore data with an encoder, and write a page and the lists beside it.

    Args:
        encoder: A finished run, its folder, an encoder or its name (`kontrast.load`), or an .npz file of
            `kontrast embed`.
        data: What `kontrast.data.load` takes; None with a file of features.
        out: The page's file, or a folder; None writes nothing.
        pretrained: The weights of an encoder by name: True, a file, a run's folder, or a name.
        split: One split alone; None is all of them.
        limit: At most so many rows.
        batch_size: Rows that go through the encoder at once.
        device: ``auto``, ``cpu``, ``cuda``, …
        workers: Processes that read files.
        index: Write an index of the features to this file too (`kontrast.explore.faiss_index`).
        seed: Of the folds in which labels are judged.
        progress: Called with ``(what, done, of)``.

    Returns:
        What was found; its lists are lists of dictionaries.

    Raises:
        ValueError: The data do not fit the encoder, or a file cannot be written.
    """
    from kontrast.explore import faiss_index

    file = None if out is None else writing.check(expanded(out, "out"))
    where = None if index is None else faiss_index.check(expanded(index, "index"))
    rows = reading.read(
        encoder,
        data,
        pretrained=pretrained,
        split=split,
        limit=limit,
        batch_size=batch_size,
        device=device,
        workers=workers,
        progress=progress,
    )
    found = collect(rows, seed=seed, progress=progress)
    if file is not None:
        writing.write(found, file)
    if where is not None:
        faiss_index.write(rows.features, where)
    return found
