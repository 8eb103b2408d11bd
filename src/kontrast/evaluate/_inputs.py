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

from kontrast.losses._inputs import finite
from kontrast.registry import quoted

CHUNK = 8192  # rows looked at in one go


def feature_rows(name: str, given: Any) -> Tensor:
    """Features ``[N, D]`` as float32 on the CPU, finite; float32 is not copied."""
    if isinstance(given, np.ndarray):
        if given.dtype.kind not in "fiub":
            raise ValueError(f"{name} is an array of {given.dtype}; expected numbers [N, D]")
        native = np.ascontiguousarray(given, dtype=np.float32)
        given = torch.from_numpy(native if native.flags.writeable else native.copy())  # torch warns of read-only memory
    try:
        x = given.detach() if isinstance(given, Tensor) else torch.as_tensor(given)
    except (RuntimeError, TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} is {quoted(given)}; expected an array or a tensor of numbers [N, D]") from None
    if x.ndim != 2 or x.is_complex() or 0 in x.shape:
        raise ValueError(f"{name} has shape {list(x.shape)} of {x.dtype}; expected features [N, D], at least one row")
    x = x.to("cpu", torch.float32)
    bad = sum(int((~part.isfinite()).any(1).sum()) for part in chunks(x))
    if bad:
        raise ValueError(
            f"{name} holds NaN or infinity in {bad} of {len(x)} rows; expected finite numbers. Leave those rows out, "
            "or see why the encoder makes them"
        )
    return x


def chunks(x: Tensor, height: int = CHUNK) -> Iterator[Tensor]:
    """The rows a part at a time."""
    return iter(torch.split(x, height))


def whole(name: str, value: Any, least: int = 1) -> int:
    """A whole number in its range."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise ValueError(f"{name} is {quoted(value)}; expected a whole number of at least {least}")
    return int(value)


def positive(name: str, value: Any, *, zero: bool = False) -> float:
    """A finite number above 0, or 0 too."""
    real = isinstance(value, numbers.Real) and not isinstance(value, bool) and finite(value)
    if not real or value < 0 or (value == 0 and not zero):
        raise ValueError(f"{name} is {quoted(value)}; expected a number {'of at least' if zero else 'above'} 0")
    return float(value)
