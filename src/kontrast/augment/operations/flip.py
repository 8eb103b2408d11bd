"""Horizontal flip: left becomes right, with probability p. As torchvision's RandomHorizontalFlip."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from kontrast.augment.operation import Maps, Params, Separable, Size, bernoulli, height_and_width
from kontrast.checks import number


@dataclass(frozen=True)
class HorizontalFlip(Separable):
    """Mirror images left to right.

    Args:
        p: the probability that an image is mirrored.

    Raises:
        ValueError: a value outside its range.

    >>> HorizontalFlip(p=1.0)(torch.tensor([[[[0.0, 0.5, 1.0]]]]))
    tensor([[[[1.0000, 0.5000, 0.0000]]]])
    """

    p: float = 0.5

    def __post_init__(self) -> None:
        number("p", self.p, least=0.0, most=1.0)

    @property
    def strength(self) -> Literal["none", "weak", "strong"]:
        """A mirror image."""
        return "weak" if self.p else "none"

    def _draw(self, n: int, size: Size, generator: torch.Generator | None) -> Params:
        height_and_width("HorizontalFlip", size)
        return Params(n, {"on": bernoulli(n, self.p, generator)})

    def fold(self, maps: Maps, params: Params, size: Size, device: torch.device) -> Maps:
        """These maps with the order of the output's columns reversed."""
        columns = maps.columns
        if columns is None:
            columns = torch.eye(size[1], device=device).repeat(len(params), 1, 1)
        which = params["on"].nonzero()[:, 0].to(device)
        columns[which] = columns[which].flip(1)
        return Maps(maps.rows, columns)

    def _one_by_one(self, images: Tensor, params: Params) -> Tensor:
        out = images.clone()
        for i in params["on"].nonzero()[:, 0].tolist():
            out[i] = images[i].flip(2)
        return out
