"""Feature dropout: each entry of a vector becomes 0 with probability ``rate``; the others stay (no rescaling).

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
class FeatureDropout(Operation):
    """Set random entries of feature vectors to 0.

    Args:
        rate: the probability of each entry.
        p: the probability that a vector is changed.

    Raises:
        ValueError: a value outside its range.

    >>> x = torch.ones(1000, 8)
    >>> round(float(FeatureDropout(0.2)(x, torch.Generator().manual_seed(0)).mean()), 2)
    0.8
    """

    kind = "vector"
    rate: float = 0.2
    p: float = 1.0

    def __post_init__(self) -> None:
        number("rate", self.rate, least=0.0, most=1.0)
        number("p", self.p, least=0.0, most=1.0)

    @property
    def strength(self) -> Literal["none", "weak", "strong"]:
        """None where all amounts are 0."""
        return "strong" if self.rate and self.p else "none"

    def _draw(self, n: int, size: Size, generator: torch.Generator | None) -> Params:
        mask = torch.rand(n, vector_length("FeatureDropout", size), generator=generator) < self.rate
        return Params(n, {"on": bernoulli(n, self.p, generator), "dropped": mask})

    def _apply(self, images: Tensor, params: Params) -> Tensor:
        mask = params["dropped"] & params["on"][:, None]
        return images.masked_fill_(mask.to(images.device), 0.0)
