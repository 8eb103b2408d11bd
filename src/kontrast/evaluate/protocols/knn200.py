"""kNN with 200 neighbours: Wu et al.'s, Wang & Liu's monitor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kontrast.evaluate.protocols._knn import NearestNeighbours


@dataclass(frozen=True, kw_only=True)
class KNN200(NearestNeighbours):
    """Weighted kNN, k = 200, τ = 0.07; see `kontrast.evaluate.protocols._knn`.

    >>> KNN200()
    KNN200(k=200, temperature=0.07)
    """

    k: int = 200
    name: ClassVar[str] = "knn200"
