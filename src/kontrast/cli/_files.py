"""Features and labels from files, for every command that takes them. Pickled objects are never loaded.

features.npy [N, D] and labels.npy [N]          whole numbers or strings
an .npz with features and labels                as `kontrast embed` writes it, with class_names
an .npz with x_train, y_train (x_test, y_test)  or another of the usual names (`kontrast.data.arrays`)
a run's folder                                  its analysis.npz
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from kontrast.files import DAMAGE, npz_names, open_regular, read_npz
from kontrast.registry import one_line
from kontrast.runs import Run

Array = np.ndarray[Any, Any]
HINT = "save arrays of numbers with numpy.savez again"


@dataclass(frozen=True)
class Arrays:
    """Features and labels, those for testing, and the classes' names; None for what the file lacks."""

    x: Array
    y: Array | None = None
    x_test: Array | None = None
    y_test: Array | None = None
    class_names: list[str] | None = None

    def with_test(self, other: Arrays) -> Arrays:
        """Add the features of another file to test on; labels that are indices into class names become names.

        >>> here = Arrays(np.eye(2), np.array([0, 1]), class_names=["cat", "dog"])
        >>> here.with_test(Arrays(np.eye(2), np.array([0, 0]), class_names=["dog", "owl"])).y_test.tolist()
        ['dog', 'dog']
        """
        x, y = (other.x, other.y) if other.x_test is None else (other.x_test, other.y_test)
        differ = None not in (self.class_names, other.class_names) and self.class_names != other.class_names
        words = any(labels is not None and labels.dtype.kind in "US" for labels in (self.y, y))
        if not differ and not words:
            return replace(self, x_test=x, y_test=y)
        return Arrays(self.x, _by_name(self.y, self.class_names), x, _by_name(y, other.class_names))


def load_arrays(features: Path, labels: Path | None = None) -> Arrays:
    """Read a file of features, or a run's folder; labels may be in another file."""
    if features.is_dir():
        run, features = features, Run(features).arrays_file
        if not features.exists():
            raise ValueError(f"{run} has no {features.name}: must be a finished run, or a file of features")
    arrays = _read_arrays(features)
    return arrays if labels is None else replace(arrays, y=load_array(labels, "labels"), class_names=None)


def load_features(features: Path, labels: Path | None) -> tuple[Array, Array | None]:
    """Features and labels as whole numbers from 0, without those for testing."""
    from kontrast.data.arrays import number_labels

    arrays = load_arrays(features, labels)
    y, _, _ = number_labels(arrays.y, None, arrays.class_names)
    return arrays.x, None if y is None else y.numpy()


def load_array(path: Path, name: str) -> Array:
    """Read an .npy file, or from an .npz the array of this name (or the only one)."""
    array = _read_npy(path)
    if array is not None:
        return array
    names = npz_names(path, HINT)
    key = names[0] if len(names) == 1 else name
    if key not in names:
        raise ValueError(f"{path} holds {_listing(names)}: must hold an array named {name}, or one array alone")
    return read_npz(path, HINT, names=(key,))[key]


def _read_npy(path: Path) -> Array | None:
    """The array of an .npy file; None for an .npz."""
    if path.suffix not in (".npy", ".npz"):
        raise ValueError(f"{path} is neither .npy nor .npz: save arrays with numpy.save or numpy.savez")
    if not path.exists():
        raise ValueError(f"there is no file {path}; expected an array that numpy saved, .npy or .npz")
    with open_regular(path) as file:
        if zipfile.is_zipfile(file):
            return None
        file.seek(0)
        try:
            array: Array = np.load(file, allow_pickle=False)
            if file.read(1):
                raise ValueError("it has more bytes than its header says")
        except DAMAGE as error:
            text = one_line(str(error)[:200])  # numpy quotes a header that it cannot read, kilobytes of it
            raise ValueError(f"{path} cannot be read as a numpy file ({text}); save it with numpy.save again") from None
        return array


def _read_arrays(path: Path) -> Arrays:
    array = _read_npy(path)
    if array is not None:
        return Arrays(array)
    names = npz_names(path, HINT)
    keys = {"x": _key(path, names, "x_train", "features"), "y": _key(path, names, "y_train", "labels")}
    keys |= {name: name if name in names else None for name in ("x_test", "y_test", "class_names")}
    if keys["x"] is None:
        raise ValueError(
            f"{path} holds {_listing(names)}: must hold features and labels, or x_train, y_train, x_test, y_test"
        )
    arrays = read_npz(path, HINT, names=[key for key in keys.values() if key is not None])
    fields: dict[str, Any] = {field: arrays[key] for field, key in keys.items() if key is not None}
    classes = fields.pop("class_names", None)
    return Arrays(**fields, class_names=None if classes is None or classes.ndim != 1 else [str(c) for c in classes])


def _key(path: Path, names: list[str], name: str, usual: str) -> str | None:
    """The key of an array by any of its aliases; a ValueError if there are several."""
    from kontrast.data.arrays import ALIASES

    keys = [key for key in names if ALIASES.get(key, key) == name]
    keys = [key for key in keys if key in (name, usual)] or keys
    if len(keys) > 1:
        raise ValueError(f"{path} holds {' and '.join(keys)}, which mean the same: must hold one of them")
    return keys[0] if keys else None


def _listing(names: list[str]) -> str:
    return ", ".join(names) or "nothing"


def _by_name(labels: Array | None, names: list[str] | None) -> Array | None:
    """Indices into names as the names; labels of another kind as they are."""
    if labels is None or names is None or labels.dtype.kind not in "iu":
        return labels
    if len(labels) and not 0 <= labels.min() <= labels.max() < len(names):
        raise ValueError(f"labels={labels.min()} … {labels.max()}: must be indices into the {len(names)} class_names")
    return np.array(names)[labels]
