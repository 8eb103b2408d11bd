"""Normalisation: x ← (x − mean) / std, channel by channel. The last of every preset; nothing is drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from kontrast.augment._inputs import Size, height_and_width
from kontrast.augment.operation import Operation, Params


class Normalize(Operation):
    """``mean`` and ``std`` of the pixels in 0…1, a number a channel or one for all.

    >>> Normalize(mean=(0.5, 0.4, 0.3), std=0.25)(torch.full((1, 3, 1, 1), 0.5)).flatten()
    tensor([0.0000, 0.4000, 0.8000])
    """

    def __init__(self, mean: float | Sequence[float], std: float | Sequence[float]) -> None:
        self.mean, self.std = _channels("mean", mean), _channels("std", std)
        if not all(s > 0 for s in self.std):
            raise ValueError(f"std must be above 0 in every channel, got {std!r}")

    def __repr__(self) -> str:
        return f"Normalize(mean={self.mean}, std={self.std})"

    def _draw(self, n: int, size: Size, generator: torch.Generator | None) -> Params:
        height_and_width("Normalize", size)
        return Params(n)

    def _apply(self, images: Tensor, params: Params) -> Tensor:
        mean, std = (self._fitting(name, images) for name in ("mean", "std"))
        return images.sub_(mean).div_(std)

    def _fitting(self, name: str, images: Tensor) -> Tensor:
        values: tuple[float, ...] = getattr(self, name)
        if images.ndim != 4 or len(values) not in (1, images.shape[1]):
            raise ValueError(
                f"{name} has {len(values)} numbers for images of shape {list(images.shape)}: one a channel"
            )
        return torch.tensor(values, device=images.device).view(1, -1, 1, 1)


def _channels(name: str, value: float | Sequence[float]) -> tuple[float, ...]:
    several = value.view(-1) if isinstance(value, Tensor) else value if isinstance(value, Sequence) else [value]
    values = tuple(float(v) for v in several)
    if not values or not all(math.isfinite(v) for v in values):
        raise ValueError(f"{name} must be a finite number or one a channel, got {value!r}")
    return values
