"""The widget of the sphere: its markup with the last frame as a still, its script, its data.

The script begins at the first frame; a page without script, and a printed one, show the last.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import resources

import numpy as np

from kontrast.report.experiment import sphere
from kontrast.report.experiment.sphere import Way
from kontrast.report.figures import COLOURS
from kontrast.report.page import Widget

YAW, PITCH = -0.5, 0.3  # as sphere.js begins

CAPTION = (
    "Drag, or use the arrow keys, to turn the sphere; the slider and the button move time. What is behind is pale. "
    "Every setting is turned so that its last class means lie nearest to the same simplex; the losses depend on inner "
    "products alone. The first seed of each setting."
)


def widget(ways: Sequence[Way]) -> Widget:
    """The sphere of at least one way."""
    files = resources.files("kontrast.report.experiment")
    html = files.joinpath("sphere.html").read_text(encoding="utf-8").replace("STILL", still(ways[0]))
    script = files.joinpath("sphere.js").read_text(encoding="utf-8")
    return Widget("sphere", html, script, sphere.record(ways), CAPTION)


def still(way: Way) -> str:
    """The last frame as SVG: numbers alone, no user's words."""
    places, means = _turned(way.points[-1]), _turned(way.means[-1])
    classes = len(means)
    tips = None if way.weights is None else _turned(way.weights[-1])
    best = _turned(sphere.vertices(classes)) if classes <= 4 else None
    made = ""
    for side in ("far", "near"):
        inside = ""
        for k in range(classes):
            paint = f'stroke="{COLOURS[k]}"'
            mine = places[(way.labels == k) & _on(places, side)]
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
        made += f'<g class="{side}">{inside}</g>'
    return made


def _turned(x: np.ndarray) -> np.ndarray:
    """``[n, 3]``: right, down, towards the eye."""
    c, s, p, q = math.cos(YAW), math.sin(YAW), math.cos(PITCH), math.sin(PITCH)
    u, w = c * x[:, 0] + s * x[:, 2], c * x[:, 2] - s * x[:, 0]
    return np.stack([u, -(p * x[:, 1] - q * w), p * w + q * x[:, 1]], 1)


def _on(x: np.ndarray, side: str) -> np.ndarray:
    near: np.ndarray = x[:, 2] >= 0
    return near if side == "near" else ~near


def _at(place: Sequence[float] | np.ndarray) -> str:
    return f"{place[0]:.4f} {place[1]:.4f}"
