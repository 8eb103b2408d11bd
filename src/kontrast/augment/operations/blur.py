r"""Gaussian blur with a width of its own for each sample.

    (1)  y_i = Σ_{|d| ≤ R} w_d x_{i+d} along each axis,   w_d ∝ e^{−d²/2σ²},  Σ w_d = 1,   σ ~ U(sigma)
    (2)  beyond the edge the image is mirrored without repeating it: x_{−d} = x_d

With probability 1 − p a sample stays as it is. The kernel has 2R + 1 pixels; unless given it reaches to 3σ of the
widest: 13 pixels for σ up to 2. (As torchvision's GaussianBlur at that kernel size.)

Deviates: SimCLR's code takes a kernel of a tenth of the image, 3 pixels at 32, which hardly blurs with σ = 2; the code
of SCE, solo-learn and lightly calls Pillow's blur, three box filters that approach the Gaussian of (1) without a
kernel size. Ours is the Gaussian.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from kontrast.augment.operation import (
    Maps,
    Operation,
    Params,
    Size,
    bernoulli,
    height_and_width,
    interval,
    is_small,
    uniform,
)
from kontrast.checks import number


@dataclass(frozen=True)
class GaussianBlur(Operation):
    """Gaussian blur with a random width for each image.

    Args:
        sigma: the range of widths in pixels, (low, high).
        p: the probability that an image is blurred.
        kernel: the odd number of pixels of (1); None reaches to three times the largest sigma.

    Raises:
        ValueError: a value outside its range.

    >>> blur = GaussianBlur(sigma=(0.1, 2.0), p=0.5)
    >>> blur.reach
    6
    >>> image = torch.zeros(1, 1, 5, 5)
    >>> image[..., 2, 2] = 1.0
    >>> params = Params(1, {"on": torch.tensor([True]), "sigma": torch.tensor([0.5])})
    >>> GaussianBlur(kernel=3).apply(image, params)[0, 0, 2]
    tensor([0.0000, 0.0838, 0.6193, 0.0838, 0.0000])
    """

    sigma: tuple[float, float] = (0.1, 2.0)
    p: float = 0.5
    kernel: int | None = None

    def __post_init__(self) -> None:
        interval("sigma", self.sigma)
        number("p", self.p, least=0.0, most=1.0)
        if self.kernel is not None and (not isinstance(self.kernel, int) or self.kernel < 1 or self.kernel % 2 == 0):
            raise ValueError(f"kernel must be an odd number of pixels, or None for three sigma, got {self.kernel!r}")

    @property
    def reach(self) -> int:
        """R of (1)."""
        return math.ceil(3 * self.sigma[1]) if self.kernel is None else self.kernel // 2

    def _draw(self, n: int, size: Size, generator: torch.Generator | None) -> Params:
        short = min(height_and_width("GaussianBlur", size))
        if self.reach >= short:
            raise ValueError(
                f"a kernel of {2 * self.reach + 1} pixels reaches beyond the mirror image of a side of {short}: "
                f"choose kernel ≤ {2 * short - 1}, or a smaller sigma"
            )
        return Params(n, {"on": bernoulli(n, self.p, generator), "sigma": uniform(n, *self.sigma, generator)})

    def _apply(self, images: Tensor, params: Params) -> Tensor:
        on = params["on"].nonzero()[:, 0]
        if not len(on):
            return images
        d = torch.arange(self.reach + 1)
        half = torch.softmax(-0.5 * (d / params["sigma"][on, None]).square() + (d > 0) * math.log(2.0), 1)
        half[:, 1:] /= 2  # w_0 … w_R; each but the first stands for two, so the softmax counted them twice
        device_on, half = on.to(images.device), half.to(images.device)
        x = images.index_select(0, device_on)
        images[device_on] = _dense(x, half) if is_small(self.size_of(images)) else _banded(x, half)
        return images


def _dense(x: Tensor, half: Tensor) -> Tensor:
    """(1) and (2) as one matrix an axis."""
    rows, columns = ((half @ _taps(side, half.shape[1] - 1).to(x.device)).view(-1, side, side) for side in x.shape[2:])
    return Maps(rows, columns)(x)


@lru_cache(maxsize=16)
def _taps(side: int, reach: int) -> Tensor:
    """[reach + 1, side·side]: how often pixel j stands at distance d from pixel i, mirrored at the edges."""
    taps = torch.zeros(reach + 1, side, side)
    i = torch.arange(side)
    for d in range(-reach, reach + 1):
        j = (i + d).abs()
        j = torch.where(j >= side, 2 * (side - 1) - j, j)
        taps[abs(d), i, j] += 1.0
    return taps.flatten(1)


def _banded(x: Tensor, half: Tensor) -> Tensor:
    """(1) as two convolutions whose groups are the samples' channels."""
    n, c, h, w = x.shape
    reach = half.shape[1] - 1
    kernel = torch.cat([half[:, 1:].flip(1), half], 1).repeat_interleave(c, 0)
    padded = F.pad(x, [reach] * 4, mode="reflect").reshape(1, n * c, h + 2 * reach, w + 2 * reach)
    along = F.conv2d(padded, kernel[:, None, None, :], groups=n * c)
    return F.conv2d(along, kernel[:, None, :, None], groups=n * c).reshape(n, c, h, w)
