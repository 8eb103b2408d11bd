"""What comes into an evaluation: features and options, checked.

Every error here is a ``ValueError`` that says what was seen and what is accepted.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kontrast.checks import is_finite, unmasked
from kontrast.registry import quoted

CHUNK, NUMBERS = 8192, 2**24  # rows looked at in one go, and the most numbers in them


def feature_rows(name: str, given: Any) -> Tensor:
    """Features ``[N, D]`` as float32 on the CPU, finite; float32 is not copied. Doubles beyond it are made smaller."""
    x = _tensor(name, given)
    return _rows(name, x, _size(x))


def both_rows(train: Any, test: Any) -> tuple[Tensor, Tensor]:
    """The same of two that belong together: made smaller, they are by one factor."""
    x, x_test = _tensor("train", train), _tensor("test", test)
    size = _size(x, x_test)
    return _rows("train", x, size), _rows("test", x_test, size)


def _tensor(name: str, given: Any) -> Tensor:
    if isinstance(given, np.ndarray):
        unmasked(name, given)
        if given.dtype.kind not in "fiub":
            raise ValueError(f"{name} is an array of {given.dtype}; expected numbers [N, D]")
        double = given.dtype.kind == "f" and given.dtype.itemsize > 4
        native = np.ascontiguousarray(given, dtype=np.float64 if double else np.float32)
        given = torch.from_numpy(native if native.flags.writeable else native.copy())  # torch warns of read-only memory
    try:
        x: Tensor = given.detach() if isinstance(given, Tensor) else torch.as_tensor(given)
    except (RuntimeError, TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} is {quoted(given)}; expected an array or a tensor of numbers [N, D]") from None
    if x.ndim != 2 or x.is_complex() or 0 in x.shape:
        raise ValueError(f"{name} has shape {list(x.shape)} of {x.dtype}; expected features [N, D], at least one row")
    return x


def _size(*features: Tensor) -> float:
    """The largest entry of features that float32 does not hold; else 1."""
    entries = [float(v.abs()) for x in features if x.dtype == torch.float64 for v in x.aminmax()]
    largest = max(entries, default=1.0)
    return 1.0 if largest == 0 or not is_finite(largest) or 1e-30 <= largest <= 1e30 else largest


def _rows(name: str, x: Tensor, size: float) -> Tensor:
    x = (x if size == 1 else x.double() / size).to("cpu", torch.float32)
    bad = sum(int((~part.isfinite()).any(1).sum()) for part in chunks(x))
    if bad:
        raise ValueError(
            f"{name} holds NaN or infinity in {bad} of {len(x)} rows; expected finite numbers. Leave those rows out, "
            "or see why the encoder makes them"
        )
    return x


def chunks(x: Tensor) -> Iterator[Tensor]:
    """The rows a part at a time; raw pixels of large images, fewer of them."""
    return iter(torch.split(x, max(1, min(CHUNK, NUMBERS // x.shape[1]))))


def whole(name: str, value: Any, least: int = 1) -> int:
    """A whole number in its range."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise ValueError(f"{name} is {quoted(value)}; expected a whole number of at least {least}")
    return int(value)


def positive(name: str, value: Any, *, zero: bool = False) -> float:
    """A finite number above 0, or 0 too."""
    real = isinstance(value, numbers.Real) and not isinstance(value, bool) and is_finite(value)
    if not real or value < 0 or (value == 0 and not zero):
        raise ValueError(f"{name} is {quoted(value)}; expected a number {'of at least' if zero else 'above'} 0")
    return float(value)
