r"""AutoAugment with the policy found on CIFAR-10: 25 sub-policies of two operations each.

    (1)  each sample draws one of the 25 sub-policies; each of its two operations is then applied with the probability
         in the table below, at the magnitude of the level beside it (0 … 9)
    (2)  movements and blends (shear, translate, rotate; brightness, colour, contrast, sharpness) draw a sign, too

The operations work on whole levels 0…255, held as floats, so that each does what torchvision's does on uint8. Values in
0…1 are rounded to levels first. With a magnitude m for each sample, ⌊·⌋ cutting off the fraction, [·] the restriction
to 0…255, and grey(x) = ⌊0.2989 r + 0.587 g + 0.114 b⌋:

    (3)  brightness  ⌊[(1+m) x]⌋                    contrast  ⌊[(1+m) x − m·mean grey(x)]⌋
    (4)  colour      ⌊[(1+m) x − m·grey(x)]⌋        sharpness ⌊[x − m (s(x) − x)]⌋ inside a border of one pixel,
         s(x) = the 3 × 3 mean with the middle counting five times, rounded
    (5)  posterise   the m highest bits             solarise  255 − x where x ≥ 255 m          invert  255 − x
    (6)  autocontrast  ⌊255 (x − min)/(max − min)⌋ in each channel that is not constant
    (7)  equalise    x ← ⌊(#{pixels < x} + ⌊q/2⌋) / q⌋ ≤ 255,  q = ⌊#{pixels < max}/255⌋, in each channel with q > 0
    (8)  shear, translate, rotate: the nearest pixel of the image before, black where there is none

(Cubuk et al. 2019, Table 7 of the appendix, as torchvision has it. Magnitudes are the float32 numbers of
``torchvision.transforms.v2.AutoAugment``, because the last bit can decide whether a pixel or a level moves.)

Deviates: DeepVoltaire's code, from which many copies descend, fills the pixels that a movement leaves empty with grey
(128, 128, 128); torchvision, and ours by default (``fill``), with black.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from kontrast.augment.operation import Operation, Params, Size, height_and_width, rgb_or_grey
from kontrast.augment.operations.color_jitter import grey
from kontrast.checks import number

MOVES = ("ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate")


def change(x: Tensor, name: str, m: Tensor) -> Tensor:
    """The operation of this name on x [n, C, H, W] with magnitudes m [n] (CPU)."""
    wide = m.double()[:, None, None, None]
    # Factors are rounded to float32 once, as a Python number is: a last bit more or less would move whole levels.
    m, factor, rest = (t.float().to(x.device) for t in (wide, 1.0 + wide, 1.0 - (1.0 + wide)))
    match name:
        case "Brightness":
            return _whole(x * factor)  # (3)
        case "Contrast":
            return _blend(x, _grey(x).mean((1, 2, 3), keepdim=True), factor, rest)
        case "Color":
            return _blend(x, _grey(x), factor, rest) if x.shape[1] == 3 else x  # (4)
        case "Sharpness":
            return _sharpen(x, rest)
        case "Posterize":
            step = torch.exp2(8.0 - m)  # (5)
            return (x / step).floor_().mul_(step)
        case "Solarize":
            return torch.where(x >= 255.0 * m, 255.0 - x, x)
        case "Invert":
            return 255.0 - x
        case "AutoContrast":
            return _stretch(x)
        case "Equalize":
            return _equalise(x)
        case _:
            raise ValueError(f"no operation {name!r} on levels")


def _whole(x: Tensor) -> Tensor:
    return x.clamp_(0.0, 255.0).floor_()


def _grey(x: Tensor) -> Tensor:
    return grey(x).floor_() if x.shape[1] == 3 else x


def _blend(x: Tensor, other: Tensor, factor: Tensor, rest: Tensor) -> Tensor:
    return _whole(torch.addcmul(x * factor, other, rest))


def _sharpen(x: Tensor, amount: Tensor) -> Tensor:
    if min(x.shape[2:]) <= 2:
        return x
    middle = x[..., 1:-1, 1:-1]
    across = (x[..., :-2] + x[..., 1:-1]).add_(x[..., 2:])
    total = (across[..., :-2, :] + across[..., 1:-1, :]).add_(across[..., 2:, :]).add_(middle, alpha=4.0)
    blurred = total.div_(13.0).round_()
    out = x.clone()
    torch.addcmul(middle, blurred.sub_(middle), amount, out=out[..., 1:-1, 1:-1])
    return _whole(out)


def _stretch(x: Tensor) -> Tensor:
    low, high = x.amin((2, 3), keepdim=True), x.amax((2, 3), keepdim=True)  # (6)
    flat = high == low
    scale = torch.where(flat, 1.0, (high - low) * (1.0 / 255.0))
    return _whole((x - torch.where(flat, 0.0, low)).div_(scale))


def _equalise(x: Tensor) -> Tensor:
    n, c, h, w = x.shape
    start = torch.arange(0, n * c * 256, 256, device=x.device, dtype=torch.int32)
    flat = x.reshape(n * c, h * w)
    bins = flat.int().add_(start[:, None]).view(-1)
    count = torch.bincount(bins, minlength=n * c * 256).view(n * c, 256)
    below = count.cumsum(1).sub_(count)  # pixels darker than each level
    brightest = flat.amax(1).long()[:, None]
    step = below.gather(1, brightest).div_(255, rounding_mode="floor")  # q of (7)
    table = below.add_(step // 2).div_(step.clamp(min=1), rounding_mode="floor").clamp_(max=255)
    table = torch.where(step > 0, table, torch.arange(256, device=x.device))
    return table.float().view(-1).index_select(0, bins).view(x.shape)


def move(x: Tensor, names: list[str], m: Tensor, fill: float) -> Tensor:
    """(8): x [n, C, H, W] sheared, translated or rotated, each as its name says, by m [n] (CPU)."""
    n, _, h, w = x.shape
    theta = torch.tensor([_inverse(name, value, h, w) for name, value in zip(names, m.tolist(), strict=True)])
    xs = torch.linspace((1.0 - w) * 0.5, (w - 1.0) * 0.5, w)
    ys = torch.linspace((1.0 - h) * 0.5, (h - 1.0) * 0.5, h)
    base = torch.stack([xs.expand(h, w), ys[:, None].expand(h, w), torch.ones(h, w)], 2).view(1, h * w, 3)
    half = torch.tensor([0.5 * w, 0.5 * h])
    scaled = (theta.view(n, 2, 3).transpose(1, 2) / half).to(x.device)
    grid = torch.bmm(base.to(x.device).expand(n, -1, -1), scaled).view(n, h, w, 2)
    out = F.grid_sample(x - fill, grid, mode="nearest", padding_mode="zeros", align_corners=False)
    return out.add_(fill)


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


Step = tuple[str, float, int | None]

POLICY: tuple[tuple[Step, Step], ...] = (
    (("Invert", 0.1, None), ("Contrast", 0.2, 6)),
    (("Rotate", 0.7, 2), ("TranslateX", 0.3, 9)),
    (("Sharpness", 0.8, 1), ("Sharpness", 0.9, 3)),
    (("ShearY", 0.5, 8), ("TranslateY", 0.7, 9)),
    (("AutoContrast", 0.5, None), ("Equalize", 0.9, None)),
    (("ShearY", 0.2, 7), ("Posterize", 0.3, 7)),
    (("Color", 0.4, 3), ("Brightness", 0.6, 7)),
    (("Sharpness", 0.3, 9), ("Brightness", 0.7, 9)),
    (("Equalize", 0.6, None), ("Equalize", 0.5, None)),
    (("Contrast", 0.6, 7), ("Sharpness", 0.6, 5)),
    (("Color", 0.7, 7), ("TranslateX", 0.5, 8)),
    (("Equalize", 0.3, None), ("AutoContrast", 0.4, None)),
    (("TranslateY", 0.4, 3), ("Sharpness", 0.2, 6)),
    (("Brightness", 0.9, 6), ("Color", 0.2, 8)),
    (("Solarize", 0.5, 2), ("Invert", 0.0, None)),
    (("Equalize", 0.2, None), ("AutoContrast", 0.6, None)),
    (("Equalize", 0.2, None), ("Equalize", 0.6, None)),
    (("Color", 0.9, 9), ("Equalize", 0.6, None)),
    (("AutoContrast", 0.8, None), ("Solarize", 0.2, 8)),
    (("Brightness", 0.1, 3), ("Color", 0.7, 0)),
    (("Solarize", 0.4, 5), ("AutoContrast", 0.9, None)),
    (("TranslateY", 0.9, 9), ("TranslateY", 0.7, 9)),
    (("AutoContrast", 0.9, None), ("Solarize", 0.8, 3)),
    (("Equalize", 0.8, None), ("Invert", 0.1, None)),
    (("TranslateY", 0.7, 9), ("AutoContrast", 0.9, None)),
)
SIGNED = (*MOVES, "Brightness", "Color", "Contrast", "Sharpness")


@functools.lru_cache(maxsize=1024)
def magnitude(name: str, level: int | None, height: int, width: int) -> float:
    """What a level 0 … 9 means for images of this size, to the last bit as torchvision has it.

    >>> round(magnitude("TranslateX", 9, 32, 32), 2), magnitude("Posterize", 7, 32, 32), magnitude("Rotate", 3, 32, 32)
    (14.5, 5.0, 10.0)
    """
    if level is None:
        return 0.0
    if name == "Posterize":
        return float(round(8 - level * 4 / 9))
    largest = {"TranslateX": 150.0 / 331.0 * width, "TranslateY": 150.0 / 331.0 * height, "Rotate": 30.0}
    first, last = (1.0, 0.0) if name == "Solarize" else (0.0, largest.get(name, 0.3 if "Shear" in name else 0.9))
    return float(torch.linspace(first, last, 10, dtype=torch.float32, device="cpu")[level])


@dataclass(frozen=True)
class AutoAugment(Operation):
    """AutoAugment's policy for CIFAR-10.

    Args:
        fill: the value in 0…1 of pixels that a movement leaves empty.

    Raises:
        ValueError: a value outside its range.

    >>> images = torch.randint(0, 256, (4, 3, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    >>> params = AutoAugment().draw(4, (32, 32), torch.Generator().manual_seed(0))
    >>> [POLICY[i] for i in params["policy"].tolist()][0]
    (('Brightness', 0.1, 3), ('Color', 0.7, 0))
    >>> views = 255 * AutoAugment().apply(images, params)
    >>> bool((views - views.round()).abs().max() < 1e-4)
    True
    """

    fill: float = 0.0

    def __post_init__(self) -> None:
        number("fill", self.fill, least=0.0, most=1.0)

    def _draw(self, n: int, size: Size, generator: torch.Generator | None) -> Params:
        height_and_width("AutoAugment", size)
        policy = torch.randint(len(POLICY), (n,), generator=generator)
        probability = torch.tensor([[step[1] for step in steps] for steps in POLICY])
        on = torch.rand(n, 2, generator=generator) < probability[policy]
        negative = torch.rand(n, 2, generator=generator) < 0.5
        return Params(n, {"policy": policy, "on": on, "negative": negative})

    def _apply(self, images: Tensor, params: Params) -> Tensor:
        rgb_or_grey("AutoAugment", images)
        x = images.mul_(255.0).round_()
        for slot in (0, 1):
            self._step(x, slot, params)
        return x.div_(255.0)

    def _step(self, x: Tensor, slot: int, params: Params) -> None:
        """The first or second operation of every sample, gathered by what it is."""
        height, width = x.shape[2:]
        rows: dict[str, list[int]] = {}
        values: dict[str, list[float]] = {}
        moves: list[str] = []
        on, negative = params["on"][:, slot].tolist(), params["negative"][:, slot].tolist()
        for i, policy in enumerate(params["policy"].tolist()):
            if on[i]:
                name, _, level = POLICY[policy][slot]
                value = magnitude(name, level, height, width)
                key = "move" if name in MOVES else name
                rows.setdefault(key, []).append(i)
                values.setdefault(key, []).append(-value if negative[i] and name in SIGNED else value)
                if key == "move":
                    moves.append(name)
        for key, which in rows.items():
            index = torch.tensor(which, device=x.device)
            m = torch.tensor(values[key], dtype=torch.float64)
            part = x.index_select(0, index)
            x[index] = move(part, moves, m, round(255 * self.fill)) if key == "move" else change(part, key, m)
