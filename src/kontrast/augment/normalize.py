"""Normalisation: x ← (x − mean) / std, channel by channel of images, feature by feature of vectors; nothing is drawn.

The last of every preset for images, whose pixels are changed in 0…1; the first for vectors, so that what is added or
left out afterwards counts in standard deviations.

A feature that never changes in the training set has a std of 0 (up to rounding: at most 1.2e-7 of its mean, where
float32 has no values between). It is divided by 1 instead, so that it becomes 0 and not NaN, and where it does change
later it keeps its own units. For images a std of 0 is an error: no channel of a data set is constant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from kontrast.augment._inputs import Size
from kontrast.augment.operation import Operation, Params

Numbers = float | Sequence[float] | Tensor


class Normalize(Operation):
    """``mean`` and ``std``, one for all or a number each: of the channels, for pixels in 0…1, or of the features.

    >>> Normalize(mean=(0.5, 0.4, 0.3), std=0.25)(torch.full((1, 3, 1, 1), 0.5)).flatten()
    tensor([0.0000, 0.4000, 0.8000])
    >>> Normalize(mean=(1.0, 5.0), std=(2.0, 0.0))(torch.tensor([[3.0, 5.0], [1.0, 5.5]]))
    tensor([[1.0000, 0.0000],
            [0.0000, 0.5000]])
    """

    def __init__(self, mean: Numbers, std: Numbers) -> None:
        self.mean, self.std = _values("mean", mean), _values("std", std)
        if min(self.std) < 0 or self.std == (0.0,):
            raise ValueError(f"std must be above 0 in every channel, got {std!r}")

    def __repr__(self) -> str:
        return f"Normalize(mean={self.mean}, std={self.std})"

    def check_images(self) -> None:
        """Refuse what only vectors may have, a std of 0."""
        if min(self.std) <= 0:
            raise ValueError(f"std must be above 0 in every channel of images, got {self.std}")

    def _draw(self, n: int, size: Size, generator: torch.Generator | None) -> Params:
        if len(size) == 2:
            self.check_images()
        return Params(n)

    def _apply(self, images: Tensor, params: Params) -> Tensor:
        mean, std = (self._fitting(name, images) for name in ("mean", "std"))
        if images.ndim == 2:
            constant = std <= mean.abs() * torch.finfo(torch.float32).eps
            std = torch.where(constant, 1.0, std)
        return images.sub_(mean).div_(std)

    def _fitting(self, name: str, batch: Tensor) -> Tensor:
        values: tuple[float, ...] = getattr(self, name)
        if len(values) not in (1, batch.shape[1]):
            kind, each = ("images", "channel") if batch.ndim == 4 else ("vectors", "feature")
            shape = list(batch.shape)
            raise ValueError(
                f"{name} has {len(values)} numbers for {kind} of shape {shape}: one a {each}, or one for all"
            )
        return torch.tensor(values, device=batch.device).view(1, -1, *[1] * (batch.ndim - 2))


def _values(name: str, value: Numbers) -> tuple[float, ...]:
    """A number, a sequence, an array or a tensor, as a tuple."""
    try:
        several = (
            value.detach() if isinstance(value, Tensor) else torch.tensor(value, dtype=torch.float64, device="cpu")
        )
        values = tuple(several.double().reshape(-1).tolist())
    except (TypeError, ValueError, RuntimeError):
        values = ()
    if not values or not all(math.isfinite(v) for v in values):
        raise ValueError(f"{name} must be a finite number, or one each of the channels or features, got {value!r}")
    return values
