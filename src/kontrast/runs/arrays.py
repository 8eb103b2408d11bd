"""analysis.npz: the arrays that a report draws. Each has a fixed kind and shape (`FORMS`). And features.npz.

Arrays that do not fit are left out and described, so that no reader has to check them again; arrays without rows are
left out silently.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from kontrast.files import RUN_AGAIN, read_npz, whole_file

WHOLE, BYTES, REAL, WORDS = "whole numbers", "bytes", "numbers", "words"
DTYPES = {WHOLE: "iu", BYTES: "u", REAL: "f", WORDS: "U"}
FORMS = {  # kind and axes; axes with the same letter have the same length, * any length
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

Arrays = dict[str, np.ndarray[Any, Any]]


def read_arrays(path: Path, messages: list[str] | None = None, names: Iterable[str] | None = None) -> Arrays:
    """Read analysis.npz; a missing file has no arrays.

    Args:
        path: The file.
        messages: None for strict reading; a list for tolerant reading, which adds a line for each array left out.
        names: The arrays to read; all of them by default.

    Raises:
        ValueError: Strict reading only: the file is damaged, or an array does not fit.
    """
    problems: list[str] = []
    try:
        arrays = fit_arrays(read_npz(path, RUN_AGAIN, names=FORMS if names is None else names), problems)
    except FileNotFoundError:
        return {}
    except ValueError as error:
        if messages is None:
            raise
        messages.append(str(error).replace(str(path), path.name))
        return {}
    if problems and messages is None:
        raise ValueError(f"{path} is damaged ({'; '.join(problems)}); {RUN_AGAIN}")
    if messages is not None:
        messages += [f"{path.name}: {problem}" for problem in problems]
    return arrays


def fit_arrays(arrays: Arrays, messages: list[str]) -> Arrays:
    """Keep the arrays that have the kind and shape of their name.

    >>> messages = []
    >>> arrays = {"features": np.zeros((4, 2)), "labels": np.arange(3), "rows": np.array(["a"] * 4)}
    >>> list(fit_arrays(arrays, messages)), messages
    (['features'], ['rows is <U1 [4]; expected whole numbers [4]', 'labels is int64 [3]; expected whole numbers [4]'])
    """
    lengths: dict[str, int] = {}
    result: Arrays = {}
    for name, (kind, axes) in FORMS.items():
        x = arrays.get(name)
        if x is None or not x.size:
            continue
        sizes = {axis: length for axis, length in zip(axes, x.shape, strict=False) if axis != "*"}
        fits = x.ndim == len(axes) and _has_kind(x, kind)
        if fits and all(lengths.get(axis, length) == length for axis, length in sizes.items()):
            lengths |= sizes
            result[name] = x
        else:
            form = ", ".join(str(lengths.get(axis, axis)) for axis in axes)
            messages.append(f"{name} is {x.dtype} {list(x.shape)}; expected {kind} [{form}]")
    rows = result.get("thumbnail_rows")
    if rows is not None and not (rows.min() >= 0 and rows.max() < len(result.get("features", ()))):
        messages.append("thumbnail_rows points to rows that do not exist")
        del result["thumbnail_rows"]
    return result


def _has_kind(x: np.ndarray[Any, Any], kind: str) -> bool:
    if x.dtype.kind not in DTYPES[kind] or (kind == BYTES and x.dtype != np.uint8):
        return False
    return kind != REAL or bool(np.isfinite(x).any())


def read_features(path: Path, key: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]] | None:
    """Read stored training and test features; None if the file is missing or damaged, or was written with another key.

    Args:
        path: features.npz, or another file that `write_features` wrote.
        key: A hash of what the features depend on.

    Returns:
        Training and test features, or None.
    """
    try:
        arrays = read_npz(path, "it is made anew")
        return (arrays["train"], arrays["test"]) if str(arrays["key"]) == key else None
    except (OSError, ValueError, KeyError):
        return None


def write_features(path: Path, key: str, train: np.ndarray[Any, Any], test: np.ndarray[Any, Any]) -> None:
    """Write training and test features for `read_features`; atomic.

    Args:
        path: The file; its folder is created.
        key: A hash of what the features depend on.
        train: Features of the training rows.
        test: Features of the test rows.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_features(Path(folder) / "features.npz", "a key", np.ones((3, 2)), np.ones((1, 2)))
    ...     [len(x) for x in read_features(Path(folder) / "features.npz", "a key")]
    [3, 1]
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        np.savez(file, key=np.array(key), train=train, test=test)
