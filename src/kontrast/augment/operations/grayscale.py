"""Random grayscale: with probability p all three channels become 0.2989 r + 0.587 g + 0.114 b.

Grey images stay as they are. As torchvision's RandomGrayscale.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kontrast.augment.operation import Operation, Params, Size, bernoulli, height_and_width, rgb_or_grey
from kontrast.augment.operations.color_jitter import grey
from kontrast.checks import number


@dataclass(frozen=True)
class RandomGrayscale(Operation):
    """Remove the colour; the number of channels stays.

    Args:
        p: the probability that an image becomes grey.

    Raises:
        ValueError: a value outside its range.

    >>> RandomGrayscale(p=1.0)(torch.tensor([1.0, 0.0, 0.0]).view(1, 3, 1, 1)).flatten()
    tensor([0.2989, 0.2989, 0.2989])
    """

    p: float = 0.1

    def __post_init__(self) -> None:
        number("p", self.p, least=0.0, most=1.0)

    def _draw(self, n: int, size: Size, generator: torch.Generator | None) -> Params:
        height_and_width("RandomGrayscale", size)
        return Params(n, {"on": bernoulli(n, self.p, generator)})

    def _apply(self, images: Tensor, params: Params) -> Tensor:
        on = params["on"].nonzero()[:, 0].to(images.device)
        if rgb_or_grey("RandomGrayscale", images) == 3 and len(on):
            images[on] = grey(images.index_select(0, on)).expand(-1, 3, -1, -1)
        return images
