"""What comes into an augmentation: checked, and brought to float32.

Every error here is a ``ValueError`` that says what was seen and what is accepted.
"""

from __future__ import annotations

import math
import numbers
from typing import Any

import torch
from torch import Tensor

from kontrast.registry import quoted

Size = tuple[int, ...]
OUTSIDE = 1e-3  # how far resizing and half precision may carry pixels beyond 0…1


def finite(value: Any) -> bool:
    """Whether a real number is finite as a float."""
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that no float holds
        return False


def number(name: str, value: Any, *, least: float, most: float = math.inf) -> float:
    """A finite number in its range, as a float."""
    real = isinstance(value, numbers.Real) and not isinstance(value, bool) and finite(value)
    if not (real and least <= value <= most):
        bounds = f"of at least {least:g}" if most == math.inf else f"between {least:g} and {most:g}"
        raise ValueError(f"{name} must be a number {bounds}, got {quoted(value)}")
    return float(value)


def interval(name: str, value: Any, *, above: float = 0.0, most: float = math.inf) -> tuple[float, float]:
    """A range (low, high) of positive numbers, as floats."""
    try:
        low, high = (float(v) for v in value)
    except (TypeError, ValueError):
        low, high = math.nan, math.nan
    if not above < low <= high <= most:
        limit = "" if most == math.inf else f" ≤ {most:g}"
        raise ValueError(f"{name} must be a pair (low, high) with {above:g} < low ≤ high{limit}, got {value!r}")
    return low, high


def image_size(name: str, value: Any) -> tuple[int, int]:
    """Height and width of an image; one number means a square."""
    both = (value, value) if isinstance(value, numbers.Integral) else tuple(value) if hasattr(value, "__len__") else ()
    whole = all(isinstance(v, numbers.Integral) and not isinstance(v, bool) and int(v) > 0 for v in both)
    if len(both) != 2 or not whole:
        raise ValueError(f"{name} must be a number of pixels or a pair (height, width), got {quoted(value)}")
    return int(both[0]), int(both[1])


def generator_on_cpu(generator: torch.Generator | None) -> torch.Generator | None:
    """Draws come from the CPU, so that they are the same whatever device the batch lies on."""
    if generator is not None and generator.device.type != "cpu":
        raise ValueError(
            f"the generator lives on {generator.device}; draws are made on the CPU so that they do not depend on the "
            f"device: pass torch.Generator().manual_seed(…)"
        )
    return generator


def as_floats(batch: Any) -> Tensor:
    """A batch in float32: uint8 images [n, C, H, W] become 0…1; floats keep their values, and those of images must be
    in 0…1. Never copies float32."""
    if not isinstance(batch, Tensor):
        raise ValueError(f"expected a tensor, images [n, C, H, W] or vectors [n, D], got {type(batch).__name__}")
    if batch.ndim not in (2, 4):
        hint = "; add a first dimension to a single image: image[None]" if batch.ndim == 3 else ""
        raise ValueError(f"a batch has shape {list(batch.shape)}; expected images [n, C, H, W] or vectors [n, D]{hint}")
    if 0 in batch.shape[1:]:
        raise ValueError(f"a batch has shape {list(batch.shape)}: its samples are empty")
    if batch.dtype == torch.uint8:
        if batch.ndim == 2:
            raise ValueError("vectors must hold floating point numbers, got torch.uint8; call .float() on them")
        return batch.float().div_(255.0)
    if not batch.is_floating_point():
        raise ValueError(f"a batch must be uint8 or floating point, got {batch.dtype}")
    if batch.ndim == 4 and batch.numel():
        low, high = (float(v) for v in batch.detach().aminmax())
        if not (low >= -OUTSIDE and high <= 1 + OUTSIDE):  # NaN too
            raise ValueError(
                f"images hold floats from {low:g} to {high:g}; expected 0…1. Divide levels 0…255 by 255 or pass uint8; "
                "normalise after augmenting (mean= and std= of a preset, or Normalize as the last operation)"
            )
    return batch.float()


def rgb_or_grey(operation: str, images: Tensor) -> int:
    """The number of channels, 1 or 3, of an operation on colours."""
    if images.ndim != 4 or images.shape[1] not in (1, 3):
        raise ValueError(f"{operation} takes images [n, 1 or 3, H, W], got shape {list(images.shape)}")
    return images.shape[1]


def height_and_width(operation: str, size: Size) -> tuple[int, int]:
    """The size of images, as opposed to that of vectors."""
    if len(size) != 2:
        raise ValueError(f"{operation} takes images, whose size is (height, width); got size {tuple(size)}")
    return int(size[0]), int(size[1])
