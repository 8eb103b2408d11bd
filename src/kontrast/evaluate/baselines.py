"""Baselines: raw pixels through the same protocols, which features must beat."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from torch import nn

from kontrast.data import DataSet
from kontrast.evaluate.protocols import PROTOCOLS, evaluate
from kontrast.evaluate.result import Progress, Result
from kontrast.evaluate.subject import Subject

MOST_BYTES = 256 * 2**20
"""All rows as float32, which are in memory at once: 800 photos of 224 × 224 pixels would be 480 MB without copies."""


def affordable(data: DataSet, protocols: Sequence[str] = ("knn20", "probe")) -> list[str]:
    """The protocols that take only seconds on raw pixels (`Protocol.is_cheap`).

    None of them if the rows take more than `MOST_BYTES` of memory, if images have several sizes (all would be decoded
    once more), or without test rows.

    Args:
        data: Images or vectors.
        protocols: Names of protocols.

    Returns:
        The names of those protocols.

    >>> from kontrast import data
    >>> affordable(data.load("digits")), affordable(data.load("fashion-mini"))
    (['knn20', 'probe'], ['knn20'])
    """
    shape = data.train.inputs.shape
    if shape is None or data.test is None:
        return []
    train_rows, test_rows, values = len(data.train), len(data.test), math.prod(shape)
    if 4 * (train_rows + test_rows) * values > MOST_BYTES:
        return []
    return [name for name in protocols if PROTOCOLS[name].is_cheap(train_rows, test_rows, values)]


def baselines(
    data: DataSet,
    protocols: Sequence[str] = ("knn20", "probe"),
    *,
    seed: int = 0,
    size: int | None = None,
    batch_size: int | None = None,
    workers: int = 0,
    progress: Progress | None = None,
    **options: Any,
) -> list[Result]:
    """Evaluate the inputs themselves, normalised with mean and std and flattened; named "raw pixels: …".

    Args:
        data: Images or vectors with labels and test rows.
        protocols: Names of protocols that need no encoder.
        seed: Of everything that is drawn.
        size: Pixels of the side, for images of several sizes.
        batch_size: Rows that are read at once; None decides by their bytes.
        workers: Processes that read images.
        progress: Called with ``(what, done, of)``.
        **options: Of every protocol.

    Returns:
        A result for each protocol.

    >>> from kontrast import data
    >>> (result,) = baselines(data.load("digits"), ["knn20"])
    >>> print(result)
    95.56 % ± 1.09: raw pixels: kNN, k = 20, weights exp(s/0.07), cosine; train: 1,437 rows, test: 360 rows, seed 0
    """
    raw = Subject.from_encoder(nn.Flatten(), data, size=size, batch_size=batch_size, workers=workers)
    what = "raw pixels" if data.kind == "image" else "raw vectors"
    results = [evaluate(raw, name, seed=seed, progress=progress, **options) for name in protocols]
    return [dataclasses.replace(r, name=f"{what}: {r.name}", protocol=f"{what}: {r.protocol}") for r in results]
