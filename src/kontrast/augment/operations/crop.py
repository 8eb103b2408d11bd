"""Random crop: the image with a black border of ``padding`` pixels, cut to size at a random place.

    top ~ U{0, …, H + 2·padding − size},  left alike.

The values are moved, not computed: what comes out are the pixels that went in, and zeros. As torchvision's RandomCrop
with ``padding_mode="constant"`` and ``fill=0``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from kontrast.augment.operation import Maps, Params, Separable, Size, height_and_width, image_size
from kontrast.checks import number

MOST_PADDING = 1_000_000  # pixels; beyond it is a slip


@dataclass(frozen=True)
class RandomCrop(Separable):
    """Random crops of the padded image.

    Args:
        size: pixels of the output, one number or (height, width).
        padding: pixels of the black border.

    Raises:
        ValueError: a value outside its range.

    >>> crop = RandomCrop(2, padding=1)
    >>> image = torch.tensor([[[[0.1, 0.2], [0.3, 0.4]]]])
    >>> crop.apply(image, Params(1, {"top": torch.tensor([0]), "left": torch.tensor([1])}))
    tensor([[[[0.0000, 0.0000],
              [0.1000, 0.2000]]]])
    """

    size: int | tuple[int, int]
    padding: int = 4

    def __post_init__(self) -> None:
        image_size("size", self.size)
        if number("padding", self.padding, least=0, most=MOST_PADDING) != int(self.padding):
            raise ValueError(f"padding must be a whole number of pixels, got {self.padding!r}")
        object.__setattr__(self, "padding", int(self.padding))

    def output_size(self, size: Size) -> Size:
        return image_size("size", self.size)

    @property
    def strength(self) -> Literal["weak"]:
        """A shift of a few pixels."""
        return "weak"

    def _draw(self, n: int, size: Size, generator: torch.Generator | None) -> Params:
        starts = {}
        full, target = height_and_width("RandomCrop", size), image_size("size", self.size)
        for name, whole, part in zip(("top", "left"), full, target, strict=True):
            places = whole + 2 * self.padding - part + 1
            if places < 1:
                raise ValueError(
                    f"crops of {target[0]} × {target[1]} do not fit into images of {full[0]} × {full[1]} with a border "
                    f"of {self.padding}: choose a smaller size or more padding"
                )
            starts[name] = torch.randint(places, (n,), generator=generator)
        return Params(n, starts)

    def fold(self, maps: Maps, params: Params, size: Size, device: torch.device) -> Maps:
        """These maps, followed by matrices of zeros and ones."""
        pair = [
            self._shift(params[name].to(device), whole, part)
            for name, whole, part in zip(("top", "left"), size, self.output_size(size), strict=True)
        ]
        return maps.then(*pair)

    def _shift(self, start: Tensor, whole: int, part: int) -> Tensor:
        source = torch.arange(part, device=start.device) + (start - self.padding)[:, None]
        return (source[..., None] == torch.arange(whole, device=start.device)).float()

    def _one_by_one(self, images: Tensor, params: Params) -> Tensor:
        h, w = image_size("size", self.size)
        padded = F.pad(images, [self.padding] * 4)
        out = images.new_empty(*images.shape[:2], h, w)
        for i, (top, left) in enumerate(zip(params["top"].tolist(), params["left"].tolist(), strict=True)):
            out[i] = padded[i, :, top : top + h, left : left + w]
        return out
