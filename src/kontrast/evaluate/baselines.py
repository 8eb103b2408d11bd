"""Raw pixels through the same protocols: what features must beat to be worth anything."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from torch import nn

from kontrast.data import DataSet
from kontrast.evaluate.protocols import evaluate
from kontrast.evaluate.result import Progress, Result
from kontrast.evaluate.subject import Subject


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
