r"""Colour jitter: random changes of brightness, contrast, saturation and hue, in random order.

    factor of brightness, contrast, saturation ~ U(max(0, 1 − amount), 1 + amount);   hue shift ~ U(−amount, amount)
    the order is one of the 24, drawn for each sample

With probability 1 − p a sample stays unchanged. Grey images have neither saturation nor hue: those two do nothing.
(As torchvision's ColorJitter inside RandomApply.)

With grey(x) = 0.2989 r + 0.587 g + 0.114 b, its mean over the image m, and [·] the restriction to 0…1:

    (1)  brightness:  x ← [f x]
    (2)  contrast:    x ← [f x + (1 − f) m]
    (3)  saturation:  x ← [f x + (1 − f) grey(x)]
    (4)  hue:         x ← rgb(h + f, s, v) with (h, s, v) = hsv(x)

(1) to (3) are one affine map of the three channels, x ← [M x + c], M = a·I + b·1·(0.2989, 0.587, 0.114): one batched
product, whichever of them each sample gets. For (4), with v the largest channel, l the smallest, δ = v − l and H = 6h
modulo 6, RGB and H follow from each other without a case distinction; at an angle |H| ≤ 3 from red, towards green or
blue:

    (5)  r = l + δ [|H − 3| − 1],   g = v − δ [|H − 2| − 1],   b = v − δ [|H − 4| − 1]
    (6)  δ |H| = v − r + g + b − 2 l,   H has the sign of g − b

(6) holds case by case: from red to yellow (v = r, l = b) it is g − b; from yellow to green (v = g, l = b) it is
δ + v − r; from green to cyan (v = g, l = r) it is 2δ + b − r; on the other side green and blue change places. Comparing
and selecting (torch.where) would cost five times as much as an addition.

How: the changes before the hue and those after it are affine maps of the channels. Samples are sorted by the place of
the hue in their order, so that each of the three affine places is one run of samples before the hue and one run after
it, and the hue, the most expensive, is computed once for all samples.

(Smith 1978; torchvision's functional tensor operations, which follow Pillow's.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from kontrast.augment.operation import Operation, Params, Size, bernoulli, height_and_width, rgb_or_grey, uniform
from kontrast.checks import number

LUMA = (0.2989, 0.587, 0.114)
BRIGHTNESS, CONTRAST, SATURATION, HUE = range(4)
IN_CACHE = 1 << 18  # pixels whose channels and intermediate results stay in a core's cache


def grey(x: Tensor) -> Tensor:
    """[n, 1, …] from [n, 3, …]."""
    r, g, b = x.unbind(1)
    return (r * LUMA[0]).add_(g, alpha=LUMA[1]).add_(b, alpha=LUMA[2]).unsqueeze(1)


def mix_(x: Tensor, kind: Tensor, factor: Tensor) -> None:
    """(1), (2) or (3), whichever ``kind [n]`` says, with ``factor [n]`` (both CPU), in place on x [n, 3 or 1, P]."""
    channels = x.shape[1]
    luma = torch.tensor(LUMA if channels == 3 else (1.0,))
    rest = 1.0 - factor
    b = torch.where(kind == SATURATION, rest, 0.0)
    matrix = factor[:, None, None] * torch.eye(channels) + b[:, None, None] * luma
    offset = torch.where(kind == CONTRAST, rest, 0.0).to(x.device)
    if bool((kind == CONTRAST).any()):
        offset = offset * (x.mean(2) @ luma.to(x.device))
    out = torch.baddbmm(offset[:, None, None], matrix.to(x.device), x)
    torch.clamp(out, 0.0, 1.0, out=x)


def hue_(x: Tensor, shift: Tensor) -> None:
    """(4) with ``shift [n]`` in turns of the colour circle, in place on x [n, 3, P]."""
    step = max(1, IN_CACHE // x.shape[2])
    turns = (6.0 * shift).to(x.device)[:, None]
    for i in range(0, len(x), step):
        _hue_(x[i : i + step], turns[i : i + step])


def _hue_(x: Tensor, turns: Tensor) -> None:
    r, g, b = x.unbind(1)
    high, low, delta, six, w = x.new_empty(5, len(x), x.shape[2])  # reused by every line, so it stays in the cache
    torch.maximum(torch.maximum(g, b, out=high), r, out=high)
    torch.minimum(torch.minimum(g, b, out=low), r, out=low)
    torch.sub(high, low, out=delta)
    torch.add(g, b, out=six).sub_(r).add_(high).sub_(low, alpha=2.0)  # (6)
    torch.clamp(delta, min=1e-20, out=w)
    six.div_(w)  # where δ is 0 so is the numerator
    torch.copysign(six, torch.sub(g, b, out=w), out=six).add_(turns)
    six.sub_(torch.mul(six, 1 / 6, out=w).floor_(), alpha=6.0)
    torch.addcmul(low, delta, _ramp(six, 3.0, w), out=r)  # (5)
    torch.addcmul(high, delta, _ramp(six, 2.0, w), value=-1.0, out=g)
    torch.addcmul(high, delta, _ramp(six, 4.0, w), value=-1.0, out=b)


def _ramp(six: Tensor, centre: float, out: Tensor) -> Tensor:
    """[|H − centre| − 1] of (5)."""
    return torch.sub(six, centre, out=out).abs_().sub_(1.0).clamp_(0.0, 1.0)


FACTORS = ("brightness", "contrast", "saturation", "hue")


@dataclass(frozen=True)
class ColorJitter(Operation):
    """Random brightness, contrast, saturation and hue; amounts as in torchvision.

    Args:
        brightness: the largest change of the factor, 0 or more.
        contrast: the same.
        saturation: the same.
        hue: the largest shift, at most 0.5, half the colour circle.
        p: the probability that an image is changed.

    Raises:
        ValueError: a value outside its range.

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
        for name in FACTORS[:3]:
            number(name, getattr(self, name), least=0.0)
        number("hue", self.hue, least=0.0, most=0.5)
        number("p", self.p, least=0.0, most=1.0)

    @property
    def strength(self) -> Literal["none", "weak", "strong"]:
        """None where all amounts are 0."""
        return "strong" if self.p and any((self.brightness, self.contrast, self.saturation, self.hue)) else "none"

    def _draw(self, n: int, size: Size, generator: torch.Generator | None) -> Params:
        height_and_width("ColorJitter", size)
        draws = {"on": bernoulli(n, self.p, generator), "order": torch.rand(n, 4, generator=generator).argsort(1)}
        for name in FACTORS[:3]:
            amount = getattr(self, name)
            draws[name] = uniform(n, max(0.0, 1.0 - amount), 1.0 + amount, generator)
        draws["hue"] = uniform(n, -self.hue, self.hue, generator)
        return Params(n, draws)

    def _apply(self, images: Tensor, params: Params) -> Tensor:
        is_rgb = rgb_or_grey("ColorJitter", images) == 3
        on = params["on"].nonzero()[:, 0]
        if not len(on):
            return images
        order = params["order"][on]
        place = (order == HUE).int().argmax(1)  # of the hue, 0 … 3
        if self.hue == 0.0 or not is_rgb:
            place = torch.zeros_like(place)
        place, by_place = place.sort(stable=True)
        on, order = on[by_place], order[by_place]
        device_on = on.to(images.device)
        x = images.index_select(0, device_on).flatten(2)
        affine = order[order != HUE].view(-1, 3)
        factors = torch.stack([params[name][on] for name in FACTORS[:3]], 1)
        ends = [int((place <= j).sum()) for j in range(3)]  # up to here the hue comes before affine place j
        for j in range(3):
            self._affine(x, affine[:, j], factors, slice(ends[j], None), is_rgb)
        if self.hue and is_rgb:
            hue_(x, params["hue"][on])
        for j in range(3):
            self._affine(x, affine[:, j], factors, slice(0, ends[j]), is_rgb)
        images[device_on] = x.view(len(on), *images.shape[1:])
        return images

    @staticmethod
    def _affine(x: Tensor, kind: Tensor, factors: Tensor, rows: slice, is_rgb: bool) -> None:
        kind, factors = kind[rows], factors[rows]
        if len(kind):
            factor = factors.gather(1, kind[:, None])[:, 0]
            mix_(x[rows], kind, factor if is_rgb else torch.where(kind == SATURATION, 1.0, factor))
