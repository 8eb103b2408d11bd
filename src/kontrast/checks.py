"""Argument checks, written once for every stage.

Each returns the checked value in the type that the caller computes with, or raises a `ValueError` of one form:
``name=value: must be …``. Values are shown on one line and cut short where they are long.

>>> number("temperature", 0.1, above=0)
0.1
>>> number("temperature", -1, above=0)
Traceback (most recent call last):
    ...
ValueError: temperature=-1: must be a finite number above 0
>>> whole_number("hard_negatives", 2.5, least=1)
Traceback (most recent call last):
    ...
ValueError: hard_negatives=2.5: must be a whole number of at least 1
"""

from __future__ import annotations

import functools
import math
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kontrast.registry import quoted

COLDEST, HOTTEST = 9.999999e-7, 1e15
"""Limits of temperatures, 1e-6 in float32 too: beyond them float32 cannot tell quotients apart."""

# ------------------------------------------------------------------------------------------------- numbers and names


def one_of(name: str, value: Any, allowed: Sequence[str]) -> str:
    """Check that ``value`` is one of ``allowed``."""
    if value not in allowed:
        raise ValueError(f"{name}={quoted(value)}: must be one of {', '.join(map(repr, allowed))}")
    return str(value)


def true_or_false(name: str, value: Any) -> bool:
    """Check that ``value`` is True or False: a word such as "no" would count as True."""
    if not isinstance(value, bool):
        raise ValueError(f"{name}={quoted(value)}: must be True or False")
    return value


def is_finite(value: Any) -> bool:
    """Whether a real number is finite as a float."""
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that no float holds
        return False


def number(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
) -> float:
    """Check a finite number in its range; any kind of real number, but not a bool or a tensor.

    Args:
        name: What the error calls it.
        value: The number.
        above: It must be larger than this.
        least: It must be at least this.
        below: It must be smaller than this.
        most: It must be at most this.

    Returns:
        The number as a float.
    """
    fits = isinstance(value, numbers.Real) and not isinstance(value, bool) and is_finite(value)
    fits = fits and (above is None or value > above) and (least is None or value >= least)
    if not (fits and (below is None or value < below) and (most is None or value <= most)):
        bounds = [
            f"{word} {bound:g}"
            for word, bound in (("above", above), ("of at least", least), ("below", below), ("of at most", most))
            if bound is not None
        ]
        raise ValueError(f"{name}={quoted(value)}: must be a finite number {' and '.join(bounds)}".rstrip())
    return float(value)


def whole_number(name: str, value: Any, *, least: int, most: int | None = None) -> int:
    """Check an integer of any kind in its range; returns an int."""
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not whole or int(value) < least or (most is not None and int(value) > most):
        limit = "" if most is None else f" and at most {most:,}"
        raise ValueError(f"{name}={quoted(value)}: must be a whole number of at least {least}{limit}")
    return int(value)


def size(name: str, value: Any, most: int = 2**31 - 1) -> int:
    """Check a number of rows, columns, channels or layers: a whole number of at least 1."""
    return whole_number(name, value, least=1, most=most)


def temperature_now(temperature: float | Tensor) -> float:
    """Check a temperature, a number or a scalar tensor that may be learned; returns its present value."""
    if isinstance(temperature, Tensor):
        if temperature.numel() != 1:
            raise ValueError(f"temperature has shape {list(temperature.shape)}: must be a number or a scalar tensor")
        temperature = float(temperature.detach())
    value = temperature if type(temperature) is float else number("temperature", temperature, above=0.0)
    if not 0.0 < value < math.inf:  # also what is no number
        number("temperature", value, above=0.0)
    if not COLDEST <= value <= HOTTEST:
        raise ValueError(f"temperature={value:g}: must lie between {COLDEST:g} and {HOTTEST:g}")
    return value


# ------------------------------------------------------------------------------------------------ tensors and arrays


def rows(name: str, x: Tensor, *, like: Tensor | None = None, ndim: tuple[int, ...] = (2,)) -> Tensor:
    """An embedding tensor in computing precision: fp16 and bf16 become fp32, fp32 and fp64 stay."""
    accepted = "[N, D]" if ndim == (2,) else "[N, V, D]" if ndim == (3,) else "[N, D] or [N, V, D]"
    if not isinstance(x, Tensor):
        raise ValueError(f"{name} must be a tensor of shape {accepted}, got {type(x).__name__}")
    if x.is_nested or x.layout != torch.strided or x.is_meta:
        _refuse_sparse(name, x, accepted)
    if x.ndim not in ndim:
        raise ValueError(f"{name} has shape {list(x.shape)}; accepted: {accepted}")
    if not x.is_floating_point():
        raise ValueError(f"{name} must hold floating point numbers, got {x.dtype}")
    if 0 in x.shape[1:]:
        raise ValueError(
            f"{name} has shape {list(x.shape)}: no views or no dimensions to compare; accepted: {accepted}, none empty"
        )
    if like is not None and x.shape[-1] != like.shape[-1]:
        raise ValueError(
            f"{name} has shape {list(x.shape)}, which does not fit {list(like.shape)}: the last sizes must agree"
        )
    return x if x.dtype in (torch.float32, torch.float64) else x.float()


def _refuse_sparse(name: str, x: Tensor, accepted: str) -> None:
    kind = "nested" if x.is_nested else "on the meta device, without values" if x.is_meta else f"of {x.layout}"
    raise ValueError(f"{name} is a tensor {kind}; expected an ordinary dense one of shape {accepted}")


def same_dtype(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors in the widest of their precisions, so that a float32 queue goes with float64 queries."""
    widest = functools.reduce(torch.promote_types, (t.dtype for t in tensors))
    return tuple(t.to(widest) for t in tensors)


def same_shape(name: str, x: Tensor, other_name: str, other: Tensor) -> None:
    """Two tensors whose rows belong together."""
    if x.shape != other.shape:
        raise ValueError(
            f"{name} has shape {list(x.shape)} and {other_name} {list(other.shape)}; they must be the same, "
            f"row i of one belonging to row i of the other"
        )


def not_empty(name: str, size: int) -> None:
    """A batch with at least one row (over all ranks)."""
    if size == 0:
        raise ValueError(f"{name} is empty: a loss needs at least one row")


def unmasked(name: str, given: Any) -> None:
    """A NumPy array that hides nothing: made a tensor, what is masked would come to light again."""
    masked = isinstance(given, np.ma.MaskedArray) and given.dtype.names is None  # records are refused as such
    hidden = int(np.ma.getmaskarray(given).sum()) if masked else 0
    if hidden:
        raise ValueError(f"{name} has {hidden} masked entries; expected none. Leave those rows out, or fill them")


def integer_labels(name: str, labels: Any, length: int, device: torch.device) -> Tensor:
    """Labels as int64: any integer dtype, any values, also a list or an array."""
    if not isinstance(labels, Tensor):
        unmasked(name, labels)
        try:
            array = np.array(labels)  # a copy: of any byte order and strides, and writable
        except ValueError:
            raise ValueError(f"{name} is a nest of lists of several lengths; expected integers [{length}]") from None
        if array.dtype.kind not in "iub" and array.size:
            seen = "none" if labels is None else f"{type(labels).__name__} of {array.dtype}"
            raise ValueError(f"{name} must be integers, one a row, got {seen}")
        labels = torch.from_numpy(array.astype(np.int64))
    if labels.is_nested or labels.layout != torch.strided or labels.is_meta:
        _refuse_sparse(name, labels, f"[{length}]")
    if labels.numel() and (labels.is_floating_point() or labels.is_complex()):
        raise ValueError(f"{name} must be integers, got {labels.dtype}: convert with {name}.long() if they are")
    if labels.shape != (length,):
        raise ValueError(f"{name} has shape {list(labels.shape)}; expected [{length}], one a row of the embeddings")
    # A copy, because a loss may read them again in backward.
    copy: Tensor = labels.to(device, torch.int64, copy=True)
    return copy
