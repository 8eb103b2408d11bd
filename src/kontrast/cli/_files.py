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
    content = _open(path)
    if isinstance(content, np.ndarray):
        return content
    key = content.names[0] if len(content.names) == 1 else name
    if key not in content.names:
        raise ValueError(f"{path} holds {content.listing}: must hold an array named {name}, or one array alone")
    return content[key]


class _Archive:
    """An .npz file; each array is read when it is needed, to its end, where its checksum is."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.names = npz_names(path, HINT)

    def __getitem__(self, name: str) -> Array:
        return read_npz(self.path, HINT, names=(name,))[name]

    def get(self, name: str) -> Array | None:
        return self[name] if name in self.names else None

    @property
    def listing(self) -> str:
        return ", ".join(self.names) or "nothing"

    def find(self, name: str, usual: str) -> Array | None:
        """The array by any of its aliases; a ValueError if there are several."""
        from kontrast.data.arrays import ALIASES

        keys = [key for key in self.names if ALIASES.get(key, key) == name]
        keys = [key for key in keys if key in (name, usual)] or keys
        if len(keys) > 1:
            raise ValueError(f"{self.path} holds {' and '.join(keys)}, which mean the same: must hold one of them")
        return self[keys[0]] if keys else None


def _open(path: Path) -> Array | _Archive:
    """The array of an .npy file, or the archive of an .npz; a ValueError with the path if it is damaged."""
    if path.suffix not in (".npy", ".npz"):
        raise ValueError(f"{path} is neither .npy nor .npz: save arrays with numpy.save or numpy.savez")
    if not path.exists():
        raise ValueError(f"there is no file {path}; expected an array that numpy saved, .npy or .npz")
    with open_regular(path) as file:
        if zipfile.is_zipfile(file):
            return _Archive(path)
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
    content = _open(path)
    if isinstance(content, np.ndarray):
        return Arrays(content)
    x, y = content.find("x_train", "features"), content.find("y_train", "labels")
    if x is None:
        raise ValueError(
            f"{path} holds {content.listing}: must hold features and labels, or x_train, y_train, x_test, y_test"
        )
    x_test, y_test, names = (content.get(key) for key in ("x_test", "y_test", "class_names"))
    class_names = None if names is None or names.ndim != 1 else [str(name) for name in names.tolist()]
    return Arrays(x, y, x_test, y_test, class_names)


def _by_name(labels: Array | None, names: list[str] | None) -> Array | None:
    """Indices into names as the names; labels of another kind as they are."""
    if labels is None or names is None or labels.dtype.kind not in "iu":
        return labels
    if len(labels) and not 0 <= labels.min() <= labels.max() < len(names):
        raise ValueError(f"labels={labels.min()} … {labels.max()}: must be indices into the {len(names)} class_names")
    return np.array(names)[labels]
