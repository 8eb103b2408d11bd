r"""Random resized crop: a random part of the image, of random area and shape, brought to one size.

    (1)  area = s·HW,  s ~ U(scale);   log(w/h) ~ U(log ratio);   w = ⌊√(area·ratio)⌉,  h = ⌊√(area/ratio)⌉
    (2)  ten tries, the first with w ≤ W and h ≤ H counts; if none does, the largest central crop of an allowed ratio
    (3)  top ~ U{0, …, H−h},  left ~ U{0, …, W−w}
    (4)  antialiased bilinear weights of output pixel i over the crop's pixels j, with t = h/H' (axis by axis):
         a_ij ∝ max(0, 1 − |j + ½ − t(i + ½)| / max(t, 1)),   Σ_j a_ij = 1
    (5)  bicubic: the same with k(x) = 3/2 x³ − 5/2 x² + 1 for x ≤ 1, −1/2 x³ + 5/2 x² − 4x + 2 for 1 < x < 2, else 0,
         of x = |j + ½ − t(i + ½)| / max(t, 1); k is negative in places, so the result is clamped to 0…1

(Szegedy et al. 2015; torchvision's RandomResizedCrop and its antialiased resize, on which (1) to (4) are modelled.)

Deviates: torchvision draws one image at a time, ours all of a batch, so the same seed gives other numbers of the same
distribution.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from kontrast.augment.operation import Maps, Params, Separable, Size, height_and_width, image_size, interval
from kontrast.checks import one_of
from kontrast.registry import quoted

TRIES = 10
INTERPOLATIONS = ("bilinear", "bicubic")


@dataclass(frozen=True)
class RandomResizedCrop(Separable):
    """A random part of the image, resized to one size.

    Args:
        size: pixels of the output, one number or (height, width).
        scale: the range of the crop's share of the area, (low, high); a number is (number, 1).
        ratio: the range of width/height, (low, high).
        interpolation: "bilinear" or "bicubic" (of a recipe: that of the data, ``data.interpolation``).

    Raises:
        ValueError: a value outside its range.

    >>> crop = RandomResizedCrop(32, scale=(0.2, 1.0))
    >>> params = crop.draw(1000, (32, 32), torch.Generator().manual_seed(0))
    >>> part = params["height"] * params["width"] / 32**2
    >>> bool(part.min() > 0.18), bool(part.max() == 1.0)  # sides are whole pixels
    (True, True)
    >>> crop(torch.rand(4, 3, 40, 48), torch.Generator().manual_seed(0)).shape
    torch.Size([4, 3, 32, 32])
    """

    size: int | tuple[int, int]
    scale: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    interpolation: str = field(default="bilinear", repr=False)

    def __post_init__(self) -> None:
        one_of("interpolation", self.interpolation, INTERPOLATIONS)
        image_size("size", self.size)
        object.__setattr__(self, "scale", crop_scale(self.scale))
        interval("ratio", self.ratio)

    @property
    def overshoots(self) -> bool:
        return self.interpolation == "bicubic"

    def output_size(self, size: Size) -> Size:
        return image_size("size", self.size)

    def _draw(self, n: int, size: Size, generator: torch.Generator | None) -> Params:
        full_h, full_w = height_and_width("RandomResizedCrop", size)
        (low, high), logs = self.scale, [math.log(r) for r in self.ratio]
        u = torch.rand(2, n, TRIES, dtype=torch.float64, generator=generator)
        area = (u[0] * (high - low) + low) * (full_h * full_w)
        ratio = (u[1] * (logs[1] - logs[0]) + logs[0]).exp()
        w, h = (area * ratio).sqrt().round(), (area / ratio).sqrt().round()  # (1)
        fits = (w > 0) & (w <= full_w) & (h > 0) & (h <= full_h)
        first = fits.int().argmax(1, keepdim=True)
        some = fits.any(1)
        central_h, central_w = self._central(full_h, full_w)
        h = torch.where(some, h.gather(1, first)[:, 0], central_h).long()  # (2)
        w = torch.where(some, w.gather(1, first)[:, 0], central_w).long()
        v = torch.rand(2, n, dtype=torch.float64, generator=generator)
        top = torch.where(some, (v[0] * (full_h - h + 1)).long(), (full_h - h) // 2)  # (3)
        left = torch.where(some, (v[1] * (full_w - w + 1)).long(), (full_w - w) // 2)
        return Params(n, {"top": top, "left": left, "height": h, "width": w})

    def _central(self, height: int, width: int) -> tuple[int, int]:
        low, high = self.ratio
        if width / height < low:
            return round(width / low), width
        if width / height > high:
            return height, round(height * high)
        return height, width

    def fold(self, maps: Maps, params: Params, size: Size, device: torch.device) -> Maps:
        """These maps, followed by (4) or (5)."""
        (full_h, full_w), (out_h, out_w) = size, self.output_size(size)
        weights = bicubic if self.interpolation == "bicubic" else bilinear
        rows = weights(params["top"].to(device), params["height"].to(device), out_h, full_h)
        columns = weights(params["left"].to(device), params["width"].to(device), out_w, full_w)
        return maps.then(rows, columns)

    def _one_by_one(self, images: Tensor, params: Params) -> Tensor:
        out_size = self.output_size(())
        out = images.new_empty(*images.shape[:2], *out_size)
        boxes = torch.stack([params[k] for k in ("top", "left", "height", "width")], 1).tolist()
        for i, (top, left, h, w) in enumerate(boxes):
            crop = images[i : i + 1, :, top : top + h, left : left + w]
            out[i] = F.interpolate(crop, out_size, mode=self.interpolation, antialias=True)[0]
        return out.clamp_(0, 1) if self.overshoots else out


def bilinear(start: Tensor, length: Tensor, out: int, full: int) -> Tensor:
    """(4) as matrices [n, out, full] that take ``length`` pixels from ``start`` on, of ``full``, to ``out``."""
    start, length = start.float().view(-1, 1), length.float().view(-1, 1)
    t = length / out
    centre = (torch.arange(out, device=start.device) + 0.5) * t  # [n, out], within the crop
    pixel = torch.arange(full, device=start.device) + 0.5
    if int(length.max()) <= out:
        # Only enlarging: a triangle of width 1 round a centre between two pixels of the crop has weights of sum 1.
        centre = torch.minimum(centre.clamp_(min=0.5), length - 0.5).add_(start)
        return (pixel - centre[..., None]).abs_().neg_().add_(1.0).clamp_(min=0.0)
    weights = (pixel - (centre + start)[..., None]).abs_().div_(-t.clamp(min=1.0)[..., None]).add_(1.0).clamp_(min=0.0)
    inside = (pixel > start) & (pixel < start + length)
    weights.mul_(inside[:, None])
    return weights.div_(weights.sum(2, keepdim=True))


def bicubic(start: Tensor, length: Tensor, out: int, full: int) -> Tensor:
    """(5) as matrices [n, out, full], as `bilinear` gives those of (4)."""
    start, length = start.float().view(-1, 1), length.float().view(-1, 1)
    t = length / out
    centre = start + (torch.arange(out, device=start.device) + 0.5) * t  # [n, out]
    pixel = torch.arange(full, device=start.device) + 0.5
    x = (pixel - centre[..., None]).abs_().div_(t.clamp(min=1.0)[..., None])
    near, far = ((1.5 * x - 2.5) * x).mul_(x).add_(1), ((-0.5 * x + 2.5) * x - 4).mul_(x).add_(2)
    inside = (pixel > start) & (pixel < start + length)
    weights = torch.where(x <= 1, near, far.where(x < 2, 0.0)) * inside[:, None]
    return weights / weights.sum(2, keepdim=True)


def crop_scale(value: Any) -> tuple[float, float]:
    """``[low, high]``, or ``low`` alone for ``[low, 1]``: the part of the area that a resized crop keeps.

    >>> crop_scale(0.5), crop_scale([0.2, 0.8])
    ((0.5, 1.0), (0.2, 0.8))
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1:
        return float(value), 1.0
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ValueError(f"scale must be a pair [low, high] with 0 < low ≤ high ≤ 1, or low alone, got {quoted(value)}")
    return interval("scale", value, most=1.0)
