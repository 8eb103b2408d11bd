r"""Points on the sphere over time: the widget that turns and plays them, and its still picture.

The points.npz of a task has the paths of N points (and of K class weights) over F frames. The page makes them small and
comparable:

    (1)  frames      at most `FRAMES` of them, evenly, with the first and the last
    (2)  rotated     by the orthonormal R that brings the last frame's class means nearest to a fixed regular simplex
                     (R = V Uᵀ of the singular value decomposition S^T M = U Σ Vᵀ), so that all settings face alike
    (3)  weights     divided by their optimal length r_W, so that they end on the sphere where theory puts them
    (4)  quantised   16 bits for each coordinate, on a screen a hundredth of a pixel

(2) changes no loss: they depend on inner products alone.

The script begins at the first frame; a page without script, and a printed one, show the last.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any

import numpy as np

from kontrast.files import read_npz
from kontrast.report.figures import COLOURS
from kontrast.report.page import Widget
from kontrast.runs import Run

FRAMES = 60
LIMIT = 2.0  # the largest coordinate: weights may be longer than their optimum
MOST_CLASSES = 6  # as many as there are colours
YAW, PITCH = -0.5, 0.3  # as sphere.js begins
CAPTION = (
    "Drag, or use the arrow keys, to turn the sphere; the slider and the button move time. What is behind is pale. "
    "Every setting is rotated so that its last class means lie nearest to the same simplex; the losses depend on inner "
    "products alone. The first seed of each setting."
)


@dataclass(frozen=True)
class PointPaths:
    """One setting's paths: ``points [F, N, 3]``, ``labels [N]`` from 0, loss and bound of each frame."""

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
        """The class means of each frame, ``[F, K, 3]``."""
        classes = range(int(self.labels.max()) + 1)
        return np.stack([self.points[:, self.labels == k].mean(1) for k in classes], axis=1)


def read(task: Run, name: str, seed: Any) -> PointPaths | None:
    """The paths of a task's points; None if a sphere cannot show them (3 dimensions, 2 to 6 classes)."""
    if not task.points_file.is_file():
        return None
    arrays = read_npz(task.points_file, "remove its folder, and it is made again")
    if not {"labels", "steps", "path", "values", "bounds"} <= set(arrays):
        return None
    path, labels = arrays["path"].astype(np.float64), np.unique(arrays["labels"], return_inverse=True)[1]
    if path.ndim != 3 or path.shape[2] != 3 or not 2 <= labels.max() + 1 <= MOST_CLASSES:
        return None
    frames = thinned(len(path))
    weights = arrays["weight_path"][frames].astype(np.float64) if "weight_path" in arrays else None
    paths = PointPaths(
        name=name,
        seed=seed,
        steps=arrays["steps"][frames],
        points=path[frames] / max(float(np.linalg.norm(path, axis=2).max()), 1e-9),
        labels=labels,
        values=arrays["values"][frames],
        bounds=arrays["bounds"][frames],
        weights=None if weights is None else weights / _weight_length(task, weights),  # (3)
    )
    return _face_simplex(paths)


def thinned(frames: int, most: int = FRAMES) -> np.ndarray:
    """Which frames are kept (1).

    >>> thinned(10, most=4), thinned(3, most=4)
    (array([0, 3, 6, 9]), array([0, 1, 2]))
    """
    return np.unique(np.linspace(0, frames - 1, min(frames, most)).round().astype(int))


def vertices(classes: int) -> np.ndarray:
    """The regular simplex ``[K, 3]`` that all settings are rotated to, its first vertex on top.

    Raises:
        ValueError: There are more than four classes.


    >>> v = vertices(4)
    >>> np.round(v @ v.T, 3)[0]
    array([ 1.   , -0.333, -0.333, -0.333])
    """
    if not 2 <= classes <= 4:
        raise ValueError(f"classes={classes}: must be 2, 3 or 4 for a regular simplex in three dimensions")
    low = -1 / (classes - 1)
    angles = 2 * math.pi * np.arange(classes - 1) / (classes - 1) + math.pi / 2 * (classes == 4)
    ring = math.sqrt(1 - low**2) * np.stack([np.cos(angles), np.sin(angles)], 1)
    rest = np.stack([ring[:, 0], np.full(classes - 1, low), ring[:, 1]], 1)
    return np.concatenate([[[0.0, 1.0, 0.0]], rest])


def data_of(paths: Sequence[PointPaths]) -> dict[str, Any]:
    """The data of the script: plain JSON, coordinates in base64."""
    return {"limit": LIMIT, "settings": [_setting(one) for one in paths]}


def _setting(one: PointPaths) -> dict[str, Any]:
    classes = int(one.labels.max()) + 1
    return {
        "name": one.name,
        "seed": one.seed,
        "classes": classes,
        "labels": one.labels.tolist(),
        "steps": [int(step) for step in one.steps],
        "values": [float(f"{value:.9g}") for value in one.values],
        "bounds": [float(f"{bound:.9g}") for bound in one.bounds],
        "points": packed(one.points),
        "weights": None if one.weights is None else packed(one.weights),
        "optimum": vertices(classes).round(5).tolist() if classes <= 4 else None,
    }


def packed(x: np.ndarray) -> str:
    """(4): little-endian 16-bit whole numbers, base64; `LIMIT` is 32767."""
    small = np.clip(x / LIMIT, -1, 1) * 32767
    return base64.b64encode(small.round().astype("<i2").tobytes()).decode()


def _face_simplex(one: PointPaths) -> PointPaths:
    """Rotate the paths towards the regular simplex (2)."""
    classes = int(one.labels.max()) + 1
    if classes > 4:
        return one
    last = one.means[-1]
    unit = last / np.maximum(np.linalg.norm(last, axis=1, keepdims=True), 1e-9)
    u, _, v = np.linalg.svd(vertices(classes).T @ unit)
    turn = (u @ v).T
    weights = None if one.weights is None else one.weights @ turn
    return replace(one, points=one.points @ turn, weights=weights)


def _weight_length(task: Run, weights: np.ndarray) -> float:
    """r_W if the task's result has it, else the longest weight."""
    try:
        length = task.result.get("optimal_weight_radius")
    except (OSError, ValueError):
        length = None
    if isinstance(length, int | float) and length > 0:
        return float(length)
    return max(float(np.linalg.norm(weights, axis=2).max()), 1e-9)


# --------------------------------------------------------------------------------------------------------- the widget


def widget(paths: Sequence[PointPaths]) -> Widget:
    """The sphere with the paths of at least one setting."""
    files = resources.files("kontrast.report.experiment")
    html = files.joinpath("sphere.html").read_text(encoding="utf-8").replace("STILL", still(paths[0]))
    script = files.joinpath("sphere.js").read_text(encoding="utf-8")
    return Widget("sphere", html, script, data_of(paths), CAPTION)


def still(one: PointPaths) -> str:
    """The last frame as SVG: numbers only, no user's words."""
    places, means = _view(one.points[-1]), _view(one.means[-1])
    classes = len(means)
    tips = None if one.weights is None else _view(one.weights[-1])
    best = _view(vertices(classes)) if classes <= 4 else None
    svg = ""
    for side in ("far", "near"):
        inside = ""
        for k in range(classes):
            paint = f'stroke="{COLOURS[k]}"'
            mine = places[(one.labels == k) & _on(places, side)]
            inside += f'<path class="points" {paint} d="{"".join(f"M{_at(p)}h0" for p in mine)}"/>'
            if best is not None and _on(best, side)[k]:
                x, y, _ = best[k]
                inside += f'<path class="best" {paint} d="M0 0L{_at(best[k])}"/>'
                inside += f'<path class="diamond" {paint} d="M{_at((x, y - 0.1))}l.1 .1l-.1 .1l-.1 -.1z"/>'
            if tips is not None and _on(tips, side)[k]:
                inside += f'<path class="weight" {paint} d="M0 0L{_at(tips[k])}m-.03 -.03h.06v.06h-.06z"/>'
        for k in range(classes):
            if _on(means, side)[k]:
                x, y, _ = means[k]
                inside += f'<circle class="mean" cx="{x:.4f}" cy="{y:.4f}" r=".055" fill="{COLOURS[k]}"/>'
                inside += f'<text x="{x:.4f}" y="{y + 0.026:.4f}">{k + 1}</text>'
        svg += f'<g class="{side}">{inside}</g>'
    return svg


def _view(x: np.ndarray) -> np.ndarray:
    """Coordinates for the screen, ``[n, 3]``: right, down, towards the eye."""
    c, s, p, q = math.cos(YAW), math.sin(YAW), math.cos(PITCH), math.sin(PITCH)
    u, w = c * x[:, 0] + s * x[:, 2], c * x[:, 2] - s * x[:, 0]
    return np.stack([u, -(p * x[:, 1] - q * w), p * w + q * x[:, 1]], 1)


def _on(x: np.ndarray, side: str) -> np.ndarray:
    near: np.ndarray = x[:, 2] >= 0
    return near if side == "near" else ~near


def _at(place: Sequence[float] | np.ndarray) -> str:
    return f"{place[0]:.4f} {place[1]:.4f}"
