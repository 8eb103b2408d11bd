"""Gaussian noise on feature vectors: x ← x + std·ε, ε ~ N(0, 1) for each entry.

With probability 1 − p a vector stays unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from kontrast.augment.operation import Operation, Params, Size, bernoulli, vector_length
from kontrast.checks import number


@dataclass(frozen=True)
class GaussianNoise(Operation):
    """Add Gaussian noise to feature vectors.

    Args:
        std: standard deviation in the features' units (after a `Normalize`: in standard deviations).
        p: the probability that a vector is changed.

    Raises:
        ValueError: a value outside its range.

    >>> x = torch.zeros(1000, 8)
    >>> round(float(GaussianNoise(0.5)(x, torch.Generator().manual_seed(0)).std()), 2)
    0.5
    """

    kind = "vector"
    std: float = 0.1
    p: float = 1.0

    def __post_init__(self) -> None:
        number("std", self.std, least=0.0)
        number("p", self.p, least=0.0, most=1.0)

    @property
    def strength(self) -> Literal["none", "weak", "strong"]:
        """Weak below 0.02 standard deviations."""
        return "none" if not (self.std and self.p) else "weak" if self.std < 0.02 else "strong"

    def _draw(self, n: int, size: Size, generator: torch.Generator | None) -> Params:
        noise = torch.randn(n, vector_length("GaussianNoise", size), generator=generator)
        return Params(n, {"on": bernoulli(n, self.p, generator), "noise": noise})

    def _apply(self, images: Tensor, params: Params) -> Tensor:
        scale = self.std * params["on"].float()[:, None]
        return images.add_((params["noise"] * scale).to(images.device))
