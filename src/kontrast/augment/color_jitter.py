r"""Colour jitter: brightness, contrast, saturation and hue changed by random amounts, in random order.

    factor of brightness, contrast, saturation ~ U(max(0, 1 − amount), 1 + amount);   hue shift ~ U(−amount, amount)
    the order of the four is one of the 24, each sample's its own; what they do: equations (1) to (4) of `_colour`

With probability 1 − p a sample stays as it is. Grey images know neither saturation nor hue: those two leave them alone.
(As torchvision's ColorJitter inside RandomApply.)

How: what stands before the hue in a sample's order and what stands after it are affine maps of the channels. Samples
are sorted by the place of the hue, so that each of the three affine places is a run of samples before the hue and a
run after it, and the hue, the dear one, is computed for all at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kontrast.augment._colour import HUE, SATURATION, hue_, mix_
from kontrast.augment._inputs import Size, height_and_width, number, rgb_or_grey
from kontrast.augment.operation import Operation, Params, chosen, uniform

FACTORS = ("brightness", "contrast", "saturation", "hue")


@dataclass(frozen=True)
class ColorJitter(Operation):
    """Amounts as torchvision has them; ``hue`` at most 0.5, half the colour circle.

    >>> jitter = ColorJitter(brightness=0.4, contrast=0.4, saturation=0.4, hue=0.1, p=0.8)
    >>> params = jitter.draw(1000, (32, 32), torch.Generator().manual_seed(0))
    >>> params["order"][0].sort().values
    tensor([0, 1, 2, 3])
    >>> round(float(params["on"].float().mean()), 1), round(float(params["hue"].abs().max()), 2)
    (0.8, 0.1)
    """

    brightness: float = 0.0
    contrast: float = 0.0
    saturation: float = 0.0
    hue: float = 0.0
    p: float = 1.0

    def __post_init__(self) -> None:
        for name in FACTORS:
            if name != "hue":
                number(name, getattr(self, name), least=0.0)
        number("hue", self.hue, least=0.0, most=0.5)
        number("p", self.p, least=0.0, most=1.0)

    def _draw(self, n: int, size: Size, generator: torch.Generator | None) -> Params:
        height_and_width("ColorJitter", size)
        found = {"on": chosen(n, self.p, generator), "order": torch.rand(n, 4, generator=generator).argsort(1)}
        for name in FACTORS[:3]:
            amount = getattr(self, name)
            found[name] = uniform(n, max(0.0, 1.0 - amount), 1.0 + amount, generator)
        found["hue"] = uniform(n, -self.hue, self.hue, generator)
        return Params(n, found)

    def _apply(self, images: Tensor, params: Params) -> Tensor:
        coloured = rgb_or_grey("ColorJitter", images) == 3
        on = params["on"].nonzero()[:, 0]
        if not len(on):
            return images
        order = params["order"][on]
        place = (order == HUE).int().argmax(1)  # of the hue, 0 … 3
        if self.hue == 0.0 or not coloured:
            place = torch.zeros_like(place)
        place, by_place = place.sort(stable=True)
        on, order = on[by_place], order[by_place]
        device_on = on.to(images.device)
        x = images.index_select(0, device_on).flatten(2)
        affine = order[order != HUE].view(-1, 3)
        factors = torch.stack([params[name][on] for name in FACTORS[:3]], 1)
        kept = [(place <= j).sum().item() for j in range(3)]  # up to here the hue comes before affine place j
        for j in range(3):
            self._affine(x, affine[:, j], factors, slice(int(kept[j]), None), coloured)
        if self.hue and coloured:
            hue_(x, params["hue"][on])
        for j in range(3):
            self._affine(x, affine[:, j], factors, slice(0, int(kept[j])), coloured)
        images[device_on] = x.view(len(on), *images.shape[1:])
        return images

    @staticmethod
    def _affine(x: Tensor, kind: Tensor, factors: Tensor, run: slice, coloured: bool) -> None:
        kind, factors = kind[run], factors[run]
        if len(kind):
            factor = factors.gather(1, kind[:, None])[:, 0]
            mix_(x[run], kind, factor if coloured else torch.where(kind == SATURATION, 1.0, factor))
