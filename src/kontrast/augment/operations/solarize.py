"""Random solarise: with probability p, pixels from the threshold on are inverted, x ← 1 − x where x ≥ threshold.

As torchvision's RandomSolarize; 0.5 is 128 of 255.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kontrast.augment.operation import Operation, Params, Size, bernoulli, height_and_width
from kontrast.checks import number


@dataclass(frozen=True)
class Solarize(Operation):
    """Invert bright pixels.

    Args:
        threshold: pixels from this value on are inverted, in 0…1.
        p: the probability that an image is changed.

    Raises:
        ValueError: a value outside its range.

    >>> Solarize(p=1.0)(torch.tensor([0.25, 0.5, 1.0]).view(1, 3, 1, 1)).flatten()
    tensor([0.2500, 0.5000, 0.0000])
    """

    threshold: float = 0.5
    p: float = 0.5

    def __post_init__(self) -> None:
        number("threshold", self.threshold, least=0.0, most=1.0)
        number("p", self.p, least=0.0, most=1.0)

    def _draw(self, n: int, size: Size, generator: torch.Generator | None) -> Params:
        height_and_width("Solarize", size)
        return Params(n, {"on": bernoulli(n, self.p, generator)})

    def _apply(self, images: Tensor, params: Params) -> Tensor:
        on = params["on"].nonzero()[:, 0].to(images.device)
        if len(on):
            x = images.index_select(0, on)
            images[on] = torch.where(x >= self.threshold, 1.0 - x, x)
        return images
