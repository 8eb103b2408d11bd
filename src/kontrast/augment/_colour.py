r"""Changes of colour on pixels in 0…1, with a factor for each sample.

With grey(x) = 0.2989 r + 0.587 g + 0.114 b, its mean over the image m, and [·] the restriction to 0…1:

    (1)  brightness:  x ← [f x]
    (2)  contrast:    x ← [f x + (1 − f) m]
    (3)  saturation:  x ← [f x + (1 − f) grey(x)]
    (4)  hue:         x ← rgb(h + f, s, v) with (h, s, v) = hsv(x)

(1) to (3) are one affine map of the three channels, x ← [M x + c], M = a·I + b·1·(0.2989, 0.587, 0.114): one batched
product whatever each sample is to get. For (4), with v the largest channel, l the smallest, δ = v − l and H = 6h modulo
6, the channels come back without a division of cases, and H comes out of them without one too: at an angle |H| ≤ 3 from
red, to the side of green or of blue,

    (5)  r = l + δ [|H − 3| − 1],   g = v − δ [|H − 2| − 1],   b = v − δ [|H − 4| − 1]
    (6)  δ |H| = v − r + g + b − 2 l,   H has the sign of g − b

(6) holds case by case: from red to yellow (v = r, l = b) it is g − b; from yellow to green (v = g, l = b) it is
δ + v − r; from green to cyan (v = g, l = r) it is 2δ + b − r; green and blue change places on the other side. Comparing
and selecting (torch.where) costs five times as much as an addition.

(Smith 1978; torchvision's functional tensor operations, which are modelled on Pillow's.)
"""

from __future__ import annotations

import torch
from torch import Tensor

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
