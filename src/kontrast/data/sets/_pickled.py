"""What CIFAR's publishers pickled, read without letting the pickle make anything.

A pickle is a program that names functions and calls them. Of those that their files name, each is replaced by a
stand-in that keeps what it is told (an array's shape, type and bytes); every other name is an error. No function that a
file chooses is ever called, numpy's own included: its arrays can be told states that are none.
"""

from __future__ import annotations

import io
import math
import pickle
from typing import Any

import numpy as np


class _Told:
    """An array or a type of numbers: what it is made with, and told."""

    state: Any

    def __init__(self, *made: Any) -> None:
        self.made, self.state = made, None

    def __setstate__(self, state: Any) -> None:
        self.state = state


def _bytes(text: str, encoding: str) -> bytes:
    """Python 3 writes bytes so for readers of older versions."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"text in {encoding!r}")
    return text.encode("latin1")


STAND_INS: dict[str, Any] = {
    "numpy.core.multiarray._reconstruct": _Told,
    "numpy._core.multiarray._reconstruct": _Told,
    "numpy.dtype": _Told,
    "numpy.ndarray": "numpy.ndarray",  # never called: it is an argument
    "_codecs.encode": _bytes,
}


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if f"{module}.{name}" not in STAND_INS:
            raise pickle.UnpicklingError(f"it names {module}.{name}")
        return STAND_INS[f"{module}.{name}"]


def read(content: bytes) -> dict[str, Any]:
    """The dictionary of a batch: lists, numbers, texts, and arrays of uint8; an error if it holds anything else.

    >>> read(pickle.dumps({"data": np.eye(2, dtype=np.uint8), "labels": [3, 5]}))
    {'data': array([[1, 0],
           [0, 1]], dtype=uint8), 'labels': [3, 5]}
    >>> read(pickle.dumps({"data": len}))
    Traceback (most recent call last):
        ...
    ValueError: it is no batch of CIFAR's (it names builtins.len); objects are never unpickled
    """
    try:
        found = _Reader(io.BytesIO(content), encoding="latin1").load()
        if not isinstance(found, dict):
            raise pickle.UnpicklingError(f"it holds a {type(found).__name__}")
        return {str(key): _array(value) if isinstance(value, _Told) else value for key, value in found.items()}
    except Exception as error:  # bytes that are no pickle fail in any way
        raise ValueError(f"it is no batch of CIFAR's ({error}); objects are never unpickled") from error


def _array(told: _Told) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The array that numpy would have made of it."""
    _, shape, kind, by_columns, content = told.state
    if not isinstance(kind, _Told) or kind.made[0] not in ("u1", "|u1") or by_columns:
        raise pickle.UnpicklingError("an array of other than uint8, row by row")
    content = content.encode("latin1") if isinstance(content, str) else bytes(content)
    if len(content) != math.prod(shape):
        raise pickle.UnpicklingError(f"an array {list(shape)} of {len(content)} bytes")
    return np.frombuffer(content, np.uint8).reshape(shape)
