r"""AutoAugment's operations on whole levels 0…255, with a magnitude m for each sample.

Images [n, C, H, W] hold whole numbers as floats, before and after, so that every operation does what torchvision's
does on uint8. ⌊·⌋ cuts off the fraction, [·] restricts to 0…255, grey(x) = ⌊0.2989 r + 0.587 g + 0.114 b⌋:

    (1)  brightness  ⌊[(1+m) x]⌋                    contrast  ⌊[(1+m) x − m·mean grey(x)]⌋
    (2)  colour      ⌊[(1+m) x − m·grey(x)]⌋        sharpness ⌊[x − m (s(x) − x)]⌋ inside a border of one pixel,
         s(x) = the 3 × 3 mean with the middle counting five times, rounded
    (3)  posterise   the m highest bits             solarise  255 − x where x ≥ 255 m          invert  255 − x
    (4)  autocontrast  ⌊255 (x − min)/(max − min)⌋ in each channel that is not constant
    (5)  equalise    x ← ⌊(#{pixels < x} + ⌊q/2⌋) / q⌋ ≤ 255,  q = ⌊#{pixels < max}/255⌋, in each channel with q > 0
    (6)  shear, translate, rotate: the nearest pixel of the image before, black where there is none

(Cubuk et al. 2019 by way of torchvision.)
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from kontrast.augment._colour import grey

MOVES = ("ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate")


def change(x: Tensor, name: str, m: Tensor) -> Tensor:
    """The operation of this name on x [n, C, H, W] with magnitudes m [n] (CPU)."""
    wide = m.double()[:, None, None, None]
    # Factors are rounded to float32 once, as a Python number is: a last bit more or less would move whole levels.
    m, factor, rest = (t.float().to(x.device) for t in (wide, 1.0 + wide, 1.0 - (1.0 + wide)))
    match name:
        case "Brightness":
            return _whole(x * factor)  # (1)
        case "Contrast":
            return _blend(x, _grey(x).mean((1, 2, 3), keepdim=True), factor, rest)
        case "Color":
            return _blend(x, _grey(x), factor, rest) if x.shape[1] == 3 else x  # (2)
        case "Sharpness":
            return _sharpened(x, rest)
        case "Posterize":
            step = torch.exp2(8.0 - m)  # (3)
            return (x / step).floor_().mul_(step)
        case "Solarize":
            return torch.where(x >= 255.0 * m, 255.0 - x, x)
        case "Invert":
            return 255.0 - x
        case "AutoContrast":
            return _stretched(x)
        case "Equalize":
            return _equalised(x)
        case _:
            raise ValueError(f"no operation {name!r} on levels")


def _whole(x: Tensor) -> Tensor:
    return x.clamp_(0.0, 255.0).floor_()


def _grey(x: Tensor) -> Tensor:
    return grey(x).floor_() if x.shape[1] == 3 else x


def _blend(x: Tensor, other: Tensor, factor: Tensor, rest: Tensor) -> Tensor:
    return _whole(torch.addcmul(x * factor, other, rest))


def _sharpened(x: Tensor, amount: Tensor) -> Tensor:
    if min(x.shape[2:]) <= 2:
        return x
    middle = x[..., 1:-1, 1:-1]
    across = (x[..., :-2] + x[..., 1:-1]).add_(x[..., 2:])
    total = (across[..., :-2, :] + across[..., 1:-1, :]).add_(across[..., 2:, :]).add_(middle, alpha=4.0)
    blurred = total.div_(13.0).round_()
    out = x.clone()
    torch.addcmul(middle, blurred.sub_(middle), amount, out=out[..., 1:-1, 1:-1])
    return _whole(out)


def _stretched(x: Tensor) -> Tensor:
    low, high = x.amin((2, 3), keepdim=True), x.amax((2, 3), keepdim=True)  # (4)
    flat = high == low
    scale = torch.where(flat, 1.0, (high - low) * (1.0 / 255.0))
    return _whole((x - torch.where(flat, 0.0, low)).div_(scale))


def _equalised(x: Tensor) -> Tensor:
    n, c, h, w = x.shape
    start = torch.arange(0, n * c * 256, 256, device=x.device, dtype=torch.int32)
    flat = x.reshape(n * c, h * w)
    bins = flat.int().add_(start[:, None]).view(-1)
    count = torch.bincount(bins, minlength=n * c * 256).view(n * c, 256)
    below = count.cumsum(1).sub_(count)  # pixels darker than each level
    brightest = flat.amax(1).long()[:, None]
    step = below.gather(1, brightest).div_(255, rounding_mode="floor")  # q of (5)
    table = below.add_(step // 2).div_(step.clamp(min=1), rounding_mode="floor").clamp_(max=255)
    table = torch.where(step > 0, table, torch.arange(256, device=x.device))
    return table.float().view(-1).index_select(0, bins).view(x.shape)


def move(x: Tensor, names: list[str], m: Tensor, fill: float) -> Tensor:
    """(6): x [n, C, H, W] sheared, translated or rotated, each as its name says, by m [n] (CPU)."""
    n, _, h, w = x.shape
    theta = torch.tensor([_inverse(name, value, h, w) for name, value in zip(names, m.tolist(), strict=True)])
    xs = torch.linspace((1.0 - w) * 0.5, (w - 1.0) * 0.5, w)
    ys = torch.linspace((1.0 - h) * 0.5, (h - 1.0) * 0.5, h)
    base = torch.stack([xs.expand(h, w), ys[:, None].expand(h, w), torch.ones(h, w)], 2).view(1, h * w, 3)
    half = torch.tensor([0.5 * w, 0.5 * h])
    scaled = (theta.view(n, 2, 3).transpose(1, 2) / half).to(x.device)
    grid = torch.bmm(base.to(x.device).expand(n, -1, -1), scaled).view(n, h, w, 2)
    moved = F.grid_sample(x - fill, grid, mode="nearest", padding_mode="zeros", align_corners=False)
    return moved.add_(fill)


def _inverse(name: str, m: float, h: int, w: int) -> list[float]:
    """Where an output pixel comes from, in pixels from the centre: [xx, xy, x0, yx, yy, y0]."""
    match name:
        case "ShearX":
            return [1.0, m, m * h / 2, 0.0, 1.0, 0.0]
        case "ShearY":
            return [1.0, 0.0, 0.0, m, 1.0, m * w / 2]
        case "TranslateX":
            return [1.0, 0.0, -float(int(m)), 0.0, 1.0, 0.0]
        case "TranslateY":
            return [1.0, 0.0, 0.0, 0.0, 1.0, -float(int(m))]
        case "Rotate":
            cos, sin = math.cos(math.radians(m)), math.sin(math.radians(m))
            return [cos, -sin, 0.0, sin, cos, 0.0]
        case _:
            raise ValueError(f"no movement {name!r}")
