"""kNN with 20 neighbours: the default here: close to the data, and quick."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kontrast.evaluate.protocols._knn import NearestNeighbours


@dataclass(frozen=True, kw_only=True)
class KNN20(NearestNeighbours):
    """Weighted kNN, k = 20, τ = 0.07; see `kontrast.evaluate.protocols._knn`.

    >>> KNN20()
    KNN20(k=20, temperature=0.07)
    """

    k: int = 20
    name: ClassVar[str] = "knn20"
