r"""The theory's corners: rows that all lie at the point of their class, and the points form a regular simplex.

Vertices lie √(2K/(K − 1)) apart. Two rows drawn at random are of one class with the chance Σ_k p_k², p_k the classes'
shares, which is 1/K where classes have one size; so tolerance is 1, and uniformity

    (1)  U = log( Σ p² + (1 − Σ p²) exp(−4K/(K − 1)) )

In fewer than K − 1 dimensions there is no such simplex, and features ≥ 0 cannot reach it: the corner is left out. The
nearest that features ≥ 0 can come is an orthogonal frame, whose points lie √2 apart:

    (2)  U = log( Σ p² + (1 − Σ p²) exp(−4) )
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def simplex_uniformity(classes: int, same: float | None = None) -> float:
    """(1); ``same`` is Σ p², 1/K if it is left out.

    >>> round(simplex_uniformity(2), 3), round(simplex_uniformity(2, same=1.0), 3)
    (-0.693, 0.0)
    """
    same = 1 / classes if same is None else same
    return math.log(same + (1 - same) * math.exp(-4 * classes / (classes - 1)))


def frame_uniformity(classes: int, same: float | None = None) -> float:
    """(2); ``same`` is Σ p², 1/K if it is left out.

    >>> round(frame_uniformity(2), 3), round(frame_uniformity(2, same=1.0), 3)
    (-0.675, 0.0)
    """
    same = 1 / classes if same is None else same
    return math.log(same + (1 - same) * math.exp(-4))


def simplex_corner(record: Mapping[str, Any] | None, labels: NDArray[Any] | None) -> tuple[int, float] | None:
    """K and (1), with the class shares of the labels; None if there is no such simplex.

    ``record`` is the simplex geometry of the features or the embeddings, from analysis.json.

    >>> simplex_corner({"num_classes": 100, "reachable": False}, None)
    """
    record = record or {}
    return _corner(record, labels, simplex_uniformity) if record.get("reachable", True) else None


def frame_corner(record: Mapping[str, Any] | None, labels: NDArray[Any] | None) -> tuple[int, float] | None:
    """K and (2) for features ≥ 0 with room for an orthogonal frame; else None.

    >>> frame_corner({"num_classes": 2, "reachable": False, "nonnegative": True, "least": 0.7071}, None)
    (2, -0.674...)
    """
    record = record or {}
    has_frame = bool(record.get("nonnegative")) and record.get("least") is not None
    return _corner(record, labels, frame_uniformity) if has_frame else None


def _corner(
    record: Mapping[str, Any], labels: NDArray[Any] | None, uniformity: Callable[..., float]
) -> tuple[int, float] | None:
    classes = record.get("num_classes")
    if not isinstance(classes, int) or classes < 2:
        return None
    if labels is None or not len(labels):
        return classes, uniformity(classes)
    shares = np.unique(labels, return_counts=True)[1] / len(labels)
    return classes, uniformity(classes, float(shares @ shares))
