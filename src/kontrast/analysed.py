"""analysis.npz, read: only arrays of the kind and shape that a run writes (`kontrast.train.analysis` says which).

The others are left out and named, so that nobody who draws them need ask; those without rows are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from kontrast.files import RUN_AGAIN, read_npz

WHOLE, BYTES, REAL, WORDS = "whole numbers", "bytes", "numbers", "words"
KINDS = {WHOLE: "iu", BYTES: "u", REAL: "f", WORDS: "U"}
FORMS = {  # what they hold, and their axes: those of one letter are of one length, * of any
    "features": (REAL, "nd"), "rows": (WHOLE, "n"), "labels": (WHOLE, "n"),
    "predictions": (WHOLE, "t"), "test_labels": (WHOLE, "t"),
    "query_rows": (WHOLE, "q"), "neighbours": (WHOLE, "qk"),
    "query_labels": (WHOLE, "q"), "neighbour_labels": (WHOLE, "qk"),
    "query_names": (WORDS, "q"), "neighbour_names": (WORDS, "qk"), "names": (WORDS, "n"),
    "query_images": (BYTES, "q***"), "neighbour_images": (BYTES, "qk***"),
    "sample_images": (BYTES, "s***"), "sample_views": (BYTES, "sv***"),
    "thumbnail_rows": (WHOLE, "m"), "thumbnails": (BYTES, "m***"),
    "positive": (REAL, "p"), "nearest": (REAL, "pc"),
    "bank_positive": (REAL, "e"), "bank_nearest": (REAL, "ea"),
    "between_means": (REAL, "b"), "between_weights": (REAL, "w"), "within": (REAL, "i"),
}  # fmt: skip

NUMBERS = tuple(name for name, (kind, _) in FORMS.items() if kind != WORDS)
"""The names of the arrays that are not words."""


def read(path: Path, troubles: list[str], names: Iterable[str] = FORMS) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of these names, as far as the file has them; what is left out is told in ``troubles``."""
    return fitting(read_npz(path, RUN_AGAIN, names=names), troubles)


def fitting(arrays: dict[str, np.ndarray[Any, Any]], troubles: list[str]) -> dict[str, np.ndarray[Any, Any]]:
    """Those that are what their names say.

    >>> troubles = []
    >>> found = fitting({"features": np.zeros((4, 2)), "labels": np.arange(3), "rows": np.array(["a"] * 4)}, troubles)
    >>> list(found), troubles
    (['features'], ['rows is <U1 [4]; expected whole numbers [4]', 'labels is int64 [3]; expected whole numbers [4]'])
    """
    lengths: dict[str, int] = {}
    kept = {}
    for name, (kind, axes) in FORMS.items():
        if name not in arrays:
            continue
        x = arrays[name]
        if not x.size:
            continue
        seen = {axis: length for axis, length in zip(axes, x.shape, strict=False) if axis != "*"}
        fits = x.ndim == len(axes) and _holds(x, kind)
        if fits and all(lengths.get(axis, length) == length for axis, length in seen.items()):
            lengths |= seen
            kept[name] = x
        else:
            form = ", ".join(str(lengths.get(axis, axis)) for axis in axes)
            troubles.append(f"{name} is {x.dtype} {list(x.shape)}; expected {kind} [{form}]")
    return _inside(kept, "thumbnail_rows", len(kept.get("features", ())), troubles)


def _holds(x: np.ndarray[Any, Any], kind: str) -> bool:
    if x.dtype.kind not in KINDS[kind] or (kind == BYTES and x.dtype != np.uint8):
        return False
    return kind != REAL or bool(np.isfinite(x).any())


def _inside(kept: dict[str, Any], name: str, count: int, troubles: list[str]) -> dict[str, Any]:
    """Without the array of a name if it points to rows that there are not."""
    rows = kept.get(name)
    if rows is not None and len(rows) and not (rows.min() >= 0 and rows.max() < count):
        troubles.append(f"{name} points to rows that there are not")
        del kept[name]
    return kept
