r"""Changes of colour on pixels in 0…1, with a factor for each sample.

With grey(x) = 0.2989 r + 0.587 g + 0.114 b, its mean over the image m, and [·] the restriction to 0…1:

    (1)  brightness:  x ← [f x]
    (2)  contrast:    x ← [f x + (1 − f) m]
    (3)  saturation:  x ← [f x + (1 − f) grey(x)]
    (4)  hue:         x ← rgb(h + f, s, v) with (h, s, v) = hsv(x)

(1) to (3) are one affine map of the three channels, x ← [M x + c], M = a·I + b·1·(0.2989, 0.587, 0.114): one batched
product whatever each sample is to get. For (4), with v the largest channel, δ the largest less the smallest and
H = 6h modulo 6, the channels come back without a division of cases:

    (5)  r = v − δ + δ [|H − 3| − 1],   g = v − δ + δ [2 − |H − 2|],   b = v − δ + δ [2 − |H − 4|]

(Smith 1978; torchvision's functional tensor operations, which are modelled on Pillow's.)
"""

from __future__ import annotations

import torch
from torch import Tensor

LUMA = (0.2989, 0.587, 0.114)
BRIGHTNESS, CONTRAST, SATURATION, HUE = range(4)
IN_CACHE = 1 << 17  # pixels whose channels and intermediate results stay in a core's cache


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
    v = torch.maximum(r, g)
    low = torch.minimum(r, g)
    torch.maximum(v, b, out=v)
    torch.minimum(low, b, out=low)
    delta = v - low
    six = torch.where(
        v == r, g - b, torch.where(v == g, (b - r).add_(delta, alpha=2.0), (r - g).add_(delta, alpha=4.0))
    )
    six.div_(delta.clamp(min=1e-20)).add_(turns)  # where δ is 0 so is the numerator
    six.sub_(torch.floor(six * (1 / 6)).mul_(6.0))
    for channel, centre in ((r, 3.0), (g, 2.0), (b, 4.0)):  # (5)
        w = (six - centre).abs_()
        w = w.sub_(1.0) if centre == 3.0 else w.neg_().add_(2.0)
        torch.addcmul(low, delta, w.clamp_(0.0, 1.0), out=channel)
