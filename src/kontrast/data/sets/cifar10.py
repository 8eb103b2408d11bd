"""CIFAR-10: 50,000 + 10,000 colour images of 32×32 pixels in 10 classes (Krizhevsky 2009).

The batches are pickles, and a pickle is a program that names functions and calls them. Each file must have its
published checksum, and is read without calling any function that it names: each is replaced by a stand-in that keeps
its arguments (an array's shape, type and bytes), and every other name is an error.

Mean and std are those of the papers' code (wang-liu, tcl and sce agree).

Deviates: the std they all use, (0.2023, …), is the mean of the deviations within each image; that of all pixels is
(0.2470, 0.2435, 0.2616).
"""

from __future__ import annotations

import io
import math
import pickle
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from kontrast.data.dataset import DataSet, Split
from kontrast.data.downloads import matches
from kontrast.data.sets._base import NamedSet


class CIFAR10(NamedSet):
    """``cifar-10-batches-py`` below the root; addresses and checksums are torchvision's.

    Args:
        options: how to load.
    """

    name = "cifar10"
    mean = (0.4914, 0.4822, 0.4465)
    std = (0.2023, 0.1994, 0.2010)
    note = "CIFAR-10, A. Krizhevsky 2009, www.cs.toronto.edu/~kriz/cifar.html; no licence stated, cite it"
    torchvision_name = "CIFAR10"

    def load(self) -> DataSet:
        """Both splits in memory."""
        import torchvision.datasets  # type: ignore[import-untyped]

        source: Any = getattr(torchvision.datasets, self.torchvision_name)
        folder = self.options.where / source.base_folder
        meta = (source.meta["filename"], source.meta["md5"])
        parts = (source.train_list, source.test_list)
        files = [name for name, _ in (*chain(*parts), meta)]

        def read() -> list[list[dict[str, Any]]]:
            return [[_read_file(folder / name, md5) for name, md5 in part] for part in (*parts, [meta])]

        def fetch() -> None:
            self.download_archive(source.url, source.filename, source.tgz_md5)

        train, test, (names,) = self.read_or_download(read, folder, files, source.url, fetch)
        first, second = (self._join(batches) for batches in (train, test))
        return self.assemble(first, second, names[source.meta["key"]])

    def _join(self, batches: list[dict[str, Any]]) -> Split:
        pixels = np.concatenate([batch["data"] for batch in batches]).reshape(-1, 3, 32, 32)
        labels = chain.from_iterable(batch.get("labels") or batch["fine_labels"] for batch in batches)
        return self.split(pixels, list(labels))


def _read_file(path: Path, md5: str) -> dict[str, Any]:
    """Read a published file; the bytes that are hashed are the bytes that are read."""
    content = path.read_bytes()
    if not matches(content, f"md5:{md5}"):
        raise OSError(f"{path} is not the published file")
    return read_batch(content)


class _StandIn:
    """A stand-in for an array or a number type: keeps its arguments and its state."""

    state: Any

    def __init__(self, *arguments: Any) -> None:
        self.arguments, self.state = arguments, None

    def __setstate__(self, state: Any) -> None:
        self.state = state


def _bytes(text: str, encoding: str) -> bytes:
    """Python 3 writes bytes in this form for readers of older versions."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"text in {encoding!r}")
    return text.encode("latin1")


_STAND_INS: dict[str, Any] = {
    "numpy.core.multiarray._reconstruct": _StandIn,
    "numpy._core.multiarray._reconstruct": _StandIn,
    "numpy.dtype": _StandIn,
    "numpy.ndarray": "numpy.ndarray",  # never called: it is an argument
    "_codecs.encode": _bytes,
}


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if f"{module}.{name}" not in _STAND_INS:
            raise pickle.UnpicklingError(f"it names {module}.{name}")
        return _STAND_INS[f"{module}.{name}"]


def read_batch(content: bytes) -> dict[str, Any]:
    """Read the dictionary of a batch: lists, numbers, strings, and uint8 arrays; anything else raises a ValueError.

    >>> read_batch(pickle.dumps({"data": np.eye(2, dtype=np.uint8), "labels": [3, 5]}))
    {'data': array([[1, 0],
           [0, 1]], dtype=uint8), 'labels': [3, 5]}
    >>> read_batch(pickle.dumps({"data": len}))
    Traceback (most recent call last):
        ...
    ValueError: it is no batch of CIFAR's (it names builtins.len); objects are never unpickled
    """
    try:
        batch = _Reader(io.BytesIO(content), encoding="latin1").load()
        if not isinstance(batch, dict):
            raise pickle.UnpicklingError(f"it holds a {type(batch).__name__}")
        return {str(key): _array(value) if isinstance(value, _StandIn) else value for key, value in batch.items()}
    except Exception as error:  # bytes that are no pickle fail in any way
        raise ValueError(f"it is no batch of CIFAR's ({error}); objects are never unpickled") from error


def _array(stand_in: _StandIn) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The array that numpy would have made."""
    _, shape, kind, by_columns, content = stand_in.state
    if not isinstance(kind, _StandIn) or kind.arguments[0] not in ("u1", "|u1") or by_columns:
        raise pickle.UnpicklingError("an array of other than uint8, row by row")
    content = content.encode("latin1") if isinstance(content, str) else bytes(content)
    if len(content) != math.prod(shape):
        raise pickle.UnpicklingError(f"an array {list(shape)} of {len(content)} bytes")
    return np.frombuffer(content, np.uint8).reshape(shape)
