"""Random resized crops taken while a file is decoded, apart from the rest of an augmentation.

Large images are cropped and resized where they are decoded, in the loader's workers, one by one and as uint8 (a JPEG
file at 1/2, 1/4 or 1/8 where that is enough); the rest runs on the batch. `at_decoding` takes an augmentation apart:

    crop, rest = at_decoding(Views([weak, strong]))
    batches = Loader(split, sampler, crop=crop, workers=4)      # [n, V, C, H, W], uint8
    views = rest(batch.inputs, batch.generator())

Deviates: pixels are rounded to whole levels after resizing each axis (a crop of the batch stays in floats), so they are
off by at most one level in 255; torchvision's usual pipeline over PIL images rounds there too. Boxes are drawn at the
image's own scale; in an image decoded at a smaller one their edges are rounded to its pixels, and libjpeg's reduction
is not quite the resize's: such views are close to, not within a level of, those of the whole image.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from kontrast.augment.operation import Compose, Operation, Views, image_size
from kontrast.augment.operations.resized_crop import RandomResizedCrop


class CropAtDecoding:
    """The random resized crops of one image's views: uint8 [C, h, w] → [C, H, W], or [V, C, H, W] for several.

    Args:
        crops: one for each view, all of one size.

    Raises:
        ValueError: crops of several sizes.

    >>> crop = CropAtDecoding([RandomResizedCrop(32), RandomResizedCrop(32)])
    >>> crop(torch.zeros(3, 60, 40, dtype=torch.uint8), seed=7).shape
    torch.Size([2, 3, 32, 32])
    >>> CropAtDecoding([RandomResizedCrop(32, scale=(0.5, 0.5), ratio=(1.0, 1.0))]).box(400, 400, seed=7)[2:]
    (283, 283)
    """

    def __init__(self, crops: Sequence[RandomResizedCrop]) -> None:
        sizes = {image_size("size", crop.size) for crop in crops}
        if len(sizes) != 1:
            raise ValueError(
                f"crops of sizes {sorted(sizes)}; those of one image are decoded together and need one size (views of "
                "several sizes: bring the images to one with size= when loading, and crop the batch)"
            )
        self.crops, self.size = tuple(crops), sizes.pop()

    def __repr__(self) -> str:
        return f"CropAtDecoding([{', '.join(map(repr, self.crops))}])"

    def boxes(self, height: int, width: int, seed: int) -> list[tuple[int, int, int, int]]:
        """(top, left, height, width) of each view."""
        generator = torch.Generator().manual_seed(seed)
        draws = [crop.draw(1, (height, width), generator) for crop in self.crops]
        return [tuple(int(params[key]) for key in ("top", "left", "height", "width")) for params in draws]  # type: ignore[misc]

    def box(self, height: int, width: int, seed: int) -> tuple[int, int, int, int]:
        """The box that needs the finest image; it decides how far the image may be reduced at decoding."""
        return max(self.boxes(height, width, seed), key=lambda box: max(self.size[0] / box[2], self.size[1] / box[3]))

    def __call__(self, image: Tensor, seed: int) -> Tensor:
        """Crop the views of one image."""
        return self.of_reduced(image, seed, (image.shape[1], image.shape[2]))

    def of_reduced(self, image: Tensor, seed: int, full: tuple[int, int]) -> Tensor:
        """Crop the views of an image of (height, width) ``full`` that was decoded at a smaller scale."""
        down, across = (side / whole for side, whole in zip(image.shape[1:], full, strict=True))
        parts = [
            image[None, :, _span(top, height, down), _span(left, width, across)]
            for top, left, height, width in self.boxes(*full, seed)
        ]
        if self.size[1] == 1:  # a column of bytes comes out wrong of torch's own way (2.15), or not at all
            parts = [part.float() for part in parts]
        views = torch.cat(
            [
                F.interpolate(part, self.size, mode=crop.interpolation, antialias=True)
                for part, crop in zip(parts, self.crops, strict=True)
            ]
        )
        if views.is_floating_point() and image.dtype == torch.uint8:
            views = views.round_().clamp_(0, 255).to(image.dtype)
        return views if len(self.crops) > 1 else views[0]


def _span(start: int, length: int, scale: float) -> slice:
    """A side of a box at another scale, at least a pixel long."""
    first = round(start * scale)
    return slice(first, max(round((start + length) * scale), first + 1))


def at_decoding(augmentation: Operation | Views) -> tuple[CropAtDecoding, Compose | Views]:
    """Split an augmentation into its leading random resized crops and the rest for the batch.

    Args:
        augmentation: an operation, or `Views`; each must begin with a `RandomResizedCrop`.

    Returns:
        The crop for the loader, and the rest of the augmentation.

    Raises:
        ValueError: an augmentation that begins with another operation.

    >>> from kontrast import augment
    >>> crop, rest = at_decoding(augment.preset("weak", size=224))
    >>> crop.size, rest
    ((224, 224), Compose([HorizontalFlip(p=0.5)]))
    """
    views = augmentation.operations if isinstance(augmentation, Views) else (augmentation,)
    crops: list[RandomResizedCrop] = []
    rest: list[Compose] = []
    for operation in views:
        steps = operation.operations if isinstance(operation, Compose) else (operation,)
        first = steps[0] if steps else None
        if not isinstance(first, RandomResizedCrop):
            raise ValueError(
                f"the augmentation begins with {first!r}; only a RandomResizedCrop can be taken at decoding. Load the "
                "images with size=, which brings them to one size, and augment the batch"
            )
        crops.append(first)
        rest.append(Compose(steps[1:]))
    return CropAtDecoding(crops), Views(rest) if isinstance(augmentation, Views) else rest[0]
