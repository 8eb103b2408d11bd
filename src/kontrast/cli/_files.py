"""Features and labels from files, for every command that takes them. Nothing pickled is ever loaded.

features.npy [N, D] and labels.npy [N]          whole numbers or strings
an .npz with features and labels                as `kontrast embed` writes it, with class_names
an .npz with x_train, y_train (x_test, y_test)  or another of the usual names (`kontrast.data.arrays`)
a run's folder                                  its analysis.npz
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from kontrast.files import DAMAGE, npz_names, open_regular, read_npz
from kontrast.registry import one_line

Array = np.ndarray[Any, Any]
WHOLE = "is it whole, and arrays of numbers?"


@dataclass(frozen=True)
class Arrays:
    """What a file holds: features and labels, those for testing, and the classes' names, as far as it has them."""

    x: Array
    y: Array | None = None
    x_test: Array | None = None
    y_test: Array | None = None
    class_names: list[str] | None = None

    def with_test(self, other: Arrays) -> Arrays:
        """These features to learn from, another file's to test on. Labels that are places in names are told by names.

        >>> here = Arrays(np.eye(2), np.array([0, 1]), class_names=["cat", "dog"])
        >>> here.with_test(Arrays(np.eye(2), np.array([0, 0]), class_names=["dog", "owl"])).y_test.tolist()
        ['dog', 'dog']
        """
        x, y = (other.x, other.y) if other.x_test is None else (other.x_test, other.y_test)
        differ = None not in (self.class_names, other.class_names) and self.class_names != other.class_names
        words = any(labels is not None and labels.dtype.kind in "US" for labels in (self.y, y))
        if not differ and not words:
            return replace(self, x_test=x, y_test=y)
        return Arrays(self.x, _named(self.y, self.class_names), x, _named(y, other.class_names))


def load_arrays(features: Path, labels: Path | None = None) -> Arrays:
    """All that a file of features, or a run's folder, has; labels may lie in a file of their own."""
    if features.is_dir():
        if not (features / "analysis.npz").exists():
            raise ValueError(f"{features} is a folder without analysis.npz: pass a finished run, or a file of features")
        features = features / "analysis.npz"
    found = _arrays(features)
    return found if labels is None else replace(found, y=load_array(labels, "labels"), class_names=None)


def load_features(features: Path, labels: Path | None) -> tuple[Array, Array | None]:
    """Features and labels, these as whole numbers from 0; of a file that has rows for testing too, the others."""
    from kontrast.data.arrays import number_labels

    found = load_arrays(features, labels)
    y, _, _ = number_labels(found.y, None, found.class_names)
    return found.x, None if y is None else y.numpy()


def load_array(path: Path, name: str) -> Array:
    """A .npy file, or of an .npz the array of this name (or the only one)."""
    with _opened(path) as found:
        if isinstance(found, np.ndarray):
            return found
        key = found.files[0] if len(found.files) == 1 else name
        if key not in found.files:
            raise ValueError(f"{path} holds {_listed(found)}; expected an array named {name}, or one array alone")
        array: Array = found[key]
        return array


def _arrays(path: Path) -> Arrays:
    """Only what is wanted is read: an archive may have much beside."""
    with _opened(path) as found:
        if isinstance(found, np.ndarray):
            return Arrays(found)
        x, y = _chosen(path, found, "x_train", "features"), _chosen(path, found, "y_train", "labels")
        if x is None:
            raise ValueError(
                f"{path} holds {_listed(found)}; expected features and labels, or x_train, y_train, x_test, y_test"
            )
        x_test, y_test, names = (found.get(key) for key in ("x_test", "y_test", "class_names"))
        listed = None if names is None or names.ndim != 1 else [str(name) for name in names.tolist()]
        return Arrays(x, y, x_test, y_test, listed)


def _chosen(path: Path, found: Any, name: str, usual: str) -> Array | None:
    """The array of a name, by whichever of its names it has; an error if it has several that mean the same."""
    from kontrast.data.arrays import ALIASES

    keys = [key for key in found.files if ALIASES.get(key, key) == name]
    keys = [key for key in keys if key in (name, usual)] or keys
    if len(keys) > 1:
        raise ValueError(f"{path} holds {' and '.join(keys)}, which mean the same; expected one of them")
    return found[keys[0]] if keys else None


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """The array of an .npy file, or the archive of an .npz; what is wrong in either is a ValueError with its name."""
    if path.suffix not in (".npy", ".npz"):
        raise ValueError(f"{path} is neither .npy nor .npz: save arrays with numpy.save or numpy.savez")
    if not path.exists():
        raise ValueError(f"there is no file {path}; expected an array that numpy saved, .npy or .npz")
    with open_regular(path) as file:
        if zipfile.is_zipfile(file):
            yield _Archive(path)
            return
        file.seek(0)
        try:
            loaded = np.load(file, allow_pickle=False)
            if file.read(1):
                raise ValueError("it has more bytes than its head says")
        except DAMAGE as error:
            said = one_line(str(error)[:200])  # numpy quotes a head that it cannot read, kilobytes of it
            raise ValueError(
                f"{path} cannot be read as a numpy file ({said}): is it whole, and an array of numbers?"
            ) from None
        yield loaded


class _Archive:
    """An .npz, of which each array is read when asked for, to its end, where its checksum stands."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files = npz_names(path, WHOLE)

    def __getitem__(self, name: str) -> Array:
        return read_npz(self.path, WHOLE, names=(name,))[name]

    def get(self, name: str) -> Array | None:
        """The array, if there is one."""
        return self[name] if name in self.files else None


def _listed(found: Any) -> str:
    return ", ".join(found.files) or "nothing"


def _named(labels: Array | None, names: list[str] | None) -> Array | None:
    """Places in names as the names; labels of another kind as they are."""
    if labels is None or names is None or labels.dtype.kind not in "iu":
        return labels
    if len(labels) and not 0 <= labels.min() <= labels.max() < len(names):
        raise ValueError(
            f"labels run from {labels.min()} to {labels.max()}; expected places in {len(names)} class_names"
        )
    return np.array(names)[labels]
