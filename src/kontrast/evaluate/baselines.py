"""Raw pixels through the same protocols: what features must beat to be worth anything."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from torch import nn

from kontrast.data import DataSet
from kontrast.evaluate.protocols import evaluate
from kontrast.evaluate.result import Progress, Result
from kontrast.evaluate.subject import Subject

MOST_PAIRS = 20_000_000_000
"""Training rows × test rows × values of a row for kNN of raw pixels: about two seconds on a core."""
MOST_VALUES = 4_000_000
"""Training rows × values of a row for the probe of raw pixels: about five seconds on a core."""
MOST_BYTES = 256 * 2**20
"""All rows as float32, which are held at once: 800 photos of 224 × 224 pixels would be 480 MB, copies aside."""


def affordable(data: DataSet, protocols: Sequence[str] = ("knn20", "probe")) -> list[str]:
    """The protocols that cost seconds on raw pixels: ``knn20`` up to `MOST_PAIRS`, ``probe`` up to `MOST_VALUES`.

    None of them where the rows take more than `MOST_BYTES` of memory, for images of several sizes, which would all be
    decoded once more, or without test rows. Other protocols train an encoder's worth, and are left to ``baselines``.

    >>> from kontrast import data
    >>> affordable(data.load("digits")), affordable(data.load("fashion-mini"))
    (['knn20', 'probe'], ['knn20'])
    """
    shape = data.train.inputs.shape
    if shape is None or data.test is None:
        return []
    values = len(data.train) * math.prod(shape)
    if 4 * (values + len(data.test) * math.prod(shape)) > MOST_BYTES:
        return []
    cheap = {"knn20": values * len(data.test) <= MOST_PAIRS, "probe": values <= MOST_VALUES}
    return [name for name in protocols if cheap.get(name)]


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
    """The data's inputs, normalised with mean and std and flattened, by each protocol; named "raw pixels: …".

    ``size`` goes with images of several sizes, ``batch_size`` is how many rows are read at once (None: by their bytes);
    ``options`` go to every protocol.

    >>> from kontrast import data
    >>> (found,) = baselines(data.load("digits"), ["knn20"])
    >>> print(found)
    95.56 % ± 1.09: raw pixels: kNN, k = 20, weights exp(s/0.07), cosine; train: 1,437 rows, test: 360 rows, seed 0
    """
    raw = Subject.from_encoder(nn.Flatten(), data, size=size, batch_size=batch_size, workers=workers)
    what = "raw pixels" if data.kind == "image" else "raw vectors"
    found = [evaluate(raw, name, seed=seed, progress=progress, **options) for name in protocols]
    return [dataclasses.replace(r, name=f"{what}: {r.name}", protocol=f"{what}: {r.protocol}") for r in found]
