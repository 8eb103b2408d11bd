r"""Points on the sphere over time: what the widget turns and plays, and its still.

A task folder's points.npz has the way of N points (and of K class weights) over F frames. Here it becomes small and
comparable:

    (1)  frames      at most `FRAMES` of them, evenly, the first and the last among them
    (2)  turned      by the orthonormal R that brings the last frame's class means nearest to a fixed regular simplex
                     (R = V Uᵀ of the singular value decomposition S^T M = U Σ Vᵀ), so that all settings face alike
    (3)  weights     over their optimal length r_W, so that they end on the sphere where the theory has them
    (4)  quantised   16 bits to a coordinate, which on a screen is a hundredth of a pixel

(2) leaves every loss as it is: they depend on inner products alone.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kontrast.files import read_npz, read_regular
from kontrast.plain import NOTHING, number

FRAMES = 60
LIMIT = 2.0  # a coordinate's largest size: weights may be longer than they should be
MOST_CLASSES = 6  # as many as there are colours


@dataclass(frozen=True)
class Way:
    """One setting's way: ``points [F, N, 3]``, ``labels [N]`` from 0, loss and bound of each frame."""

    name: str
    seed: Any
    steps: np.ndarray
    points: np.ndarray
    labels: np.ndarray
    values: np.ndarray
    bounds: np.ndarray
    weights: np.ndarray | None = None  # [F, K, 3]

    @property
    def means(self) -> np.ndarray:
        """``[F, K, 3]``."""
        classes = range(int(self.labels.max()) + 1)
        return np.stack([self.points[:, self.labels == k].mean(1) for k in classes], axis=1)


def read(folder: Path, name: str, seed: Any) -> Way | None:
    """The way in a task folder; None if there is none that a sphere can show (3 dimensions, 2 to 6 classes)."""
    file = folder / "points.npz"
    if not file.is_file():
        return None
    arrays = read_npz(file, "remove its folder, and it is made again")
    if not {"labels", "steps", "path", "values", "bounds"} <= set(arrays):
        return None
    path, labels = arrays["path"].astype(np.float64), np.unique(arrays["labels"], return_inverse=True)[1]
    if path.ndim != 3 or path.shape[2] != 3 or not 2 <= labels.max() + 1 <= MOST_CLASSES:
        return None
    chosen = thinned(len(path))
    weights = arrays["weight_path"][chosen].astype(np.float64) if "weight_path" in arrays else None
    made = Way(
        name=name,
        seed=seed,
        steps=arrays["steps"][chosen],
        points=path[chosen] / max(float(np.linalg.norm(path, axis=2).max()), 1e-9),
        labels=labels,
        values=arrays["values"][chosen],
        bounds=arrays["bounds"][chosen],
        weights=None if weights is None else weights / _weight_length(folder, weights),  # (3)
    )
    return _turned(made)


def thinned(frames: int, most: int = FRAMES) -> np.ndarray:
    """(1).

    >>> thinned(10, most=4), thinned(3, most=4)
    (array([0, 3, 6, 9]), array([0, 1, 2]))
    """
    return np.unique(np.linspace(0, frames - 1, min(frames, most)).round().astype(int))


def vertices(classes: int) -> np.ndarray:
    """The regular simplex ``[K, 3]`` that all settings are turned to, its first vertex on top; None beyond four.

    >>> v = vertices(4)
    >>> np.round(v @ v.T, 3)[0]
    array([ 1.   , -0.333, -0.333, -0.333])
    """
    if not 2 <= classes <= 4:
        raise ValueError(f"{classes} classes have no regular simplex in three dimensions; expected 2, 3 or 4")
    low = -1 / (classes - 1)
    angles = 2 * math.pi * np.arange(classes - 1) / (classes - 1) + math.pi / 2 * (classes == 4)
    ring = math.sqrt(1 - low**2) * np.stack([np.cos(angles), np.sin(angles)], 1)
    rest = np.stack([ring[:, 0], np.full(classes - 1, low), ring[:, 1]], 1)
    return np.concatenate([[[0.0, 1.0, 0.0]], rest])


def record(ways: Sequence[Way]) -> dict[str, Any]:
    """What the script gets: plain JSON, coordinates in base64."""
    return {"limit": LIMIT, "settings": [_setting(way) for way in ways]}


def _setting(way: Way) -> dict[str, Any]:
    classes = int(way.labels.max()) + 1
    return {
        "name": way.name,
        "seed": way.seed,
        "classes": classes,
        "labels": way.labels.tolist(),
        "steps": [int(step) for step in way.steps],
        "values": [float(f"{value:.9g}") for value in way.values],
        "bounds": [float(f"{bound:.9g}") for bound in way.bounds],
        "points": packed(way.points),
        "weights": None if way.weights is None else packed(way.weights),
        "optimum": vertices(classes).round(5).tolist() if classes <= 4 else None,
    }


def packed(x: np.ndarray) -> str:
    """(4): little-endian 16-bit whole numbers, base64; `LIMIT` is 32767."""
    small = np.clip(x / LIMIT, -1, 1) * 32767
    return base64.b64encode(small.round().astype("<i2").tobytes()).decode()


def _turned(way: Way) -> Way:
    """(2)."""
    classes = int(way.labels.max()) + 1
    if classes > 4:
        return way
    last = way.means[-1]
    unit = last / np.maximum(np.linalg.norm(last, axis=1, keepdims=True), 1e-9)
    u, _, v = np.linalg.svd(vertices(classes).T @ unit)
    turn = (u @ v).T
    weights = None if way.weights is None else way.weights @ turn
    return Way(way.name, way.seed, way.steps, way.points @ turn, way.labels, way.values, way.bounds, weights)


def _weight_length(folder: Path, weights: np.ndarray) -> float:
    """r_W where the task says it, else the longest."""
    try:
        found = json.loads(read_regular(folder / "result.json").decode())
        length = number(found.get("optimal_weight_radius"), "", [])
    except (OSError, ValueError, RecursionError, AttributeError):
        length = NOTHING
    return (
        float(length)
        if isinstance(length, int | float) and length
        else max(float(np.linalg.norm(weights, axis=2).max()), 1e-9)
    )
