"""Features and labels from files. Nothing pickled is ever loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def load_features(features: Path, labels: Path | None) -> tuple[Array, Array | None]:
    """From a file or a run's folder; labels may lie in the same .npz."""
    if features.is_dir():
        if not (features / "analysis.npz").exists():
            raise ValueError(f"{features} is a folder without analysis.npz: pass a finished run, or a file of features")
        features = features / "analysis.npz"
    if features.suffix != ".npz":
        return load_array(features), None if labels is None else load_array(labels)
    x = load_array(features, "features")
    if labels is not None:
        return x, load_array(labels)
    with np.load(features, allow_pickle=False) as archive:
        return x, archive.get("labels")


def load_array(path: Path, key: str | None = None) -> Array:
    """A .npy file, or one array of an .npz; nothing pickled is ever loaded."""
    if path.suffix not in (".npy", ".npz"):
        raise ValueError(f"{path} is neither .npy nor .npz: save arrays with numpy.save or numpy.savez")
    if not path.exists():
        raise ValueError(f"there is no file {path}")
    try:
        loaded = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(
            f"{path} cannot be read as a numpy file ({error}): is it whole, and an array of numbers?"
        ) from None
    if isinstance(loaded, np.ndarray):
        return loaded
    with loaded:
        names = list(loaded.files)
        if key is None and len(names) == 1:
            key = names[0]
        if key not in names:
            raise ValueError(
                f"{path} holds {', '.join(names) or 'nothing'}; expected an array named {key or 'features'!r}"
            )
        array: Array = loaded[key]
        return array
