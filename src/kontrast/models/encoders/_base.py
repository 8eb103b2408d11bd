"""What every encoder is: a module whose call gives features h, and says how wide they are."""

from __future__ import annotations

import numbers
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from kontrast.models._options import positive
from kontrast.models.weights import Loaded

ImageSize = int | tuple[int, int]
SMALL = 64  # up to here an image loses too much in a stem that divides its side by four


class Encoder(nn.Module):
    """Base of the encoders: ``encoder(x) → h [N, feature_dim]``, before any head and not normalised.

    With ``norm = "frozen"`` batch norm keeps its running statistics: in train mode too it normalises with them and does
    not update them; its weight and bias are trained. So fine-tuning with small or strongly augmented batches cannot
    spoil the statistics of a pretrained network. It holds after every call of ``train``, in copies of the encoder, and
    for whatever batch norm takes the place of another (across ranks, split). Batch norm without running statistics has
    nothing to keep, and stays as it is.

    >>> encoder = Encoder()
    >>> encoder.layer = nn.BatchNorm1d(2)
    >>> encoder.norm = "frozen"
    >>> encoder.train().training, encoder.layer.training
    (True, False)
    """

    feature_dim: int
    norm: str | None = None  # "frozen", or "train" (the same as None)
    loaded: Loaded | None = None  # what was taken from the file of a pretrained start
    largest_image: int | None = None
    """Pixels a side that it is made for; None where there is no such limit. Larger images go through, at a cost."""

    def train(self, mode: bool = True) -> Self:
        """Train mode, or eval mode; batch norm with frozen statistics is in eval mode either way."""
        super().train(mode)
        if self.norm == "frozen":
            for part in self.modules():
                if isinstance(part, _BatchNorm):
                    part.training = False  # not eval(): what else the part holds (timm's dropout) goes with the encoder
        return self


class ImageEncoder(Encoder):
    """Base of those that take images ``[N, in_channels, H, W]``; channels_last is the layout CPU and GPU like best."""

    in_channels: int
    channels_last: bool

    def _as_declared(self, *, in_channels: int, channels_last: bool) -> None:
        """Remember the options and lay the weights out; to be called when all layers are there."""
        self.in_channels, self.channels_last = in_channels, channels_last
        if channels_last:
            self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def _prepared(self, images: Tensor) -> Tensor:
        """The images in the encoder's layout, or an error that says what is wrong with them."""
        if images.ndim != 4 or images.shape[1] != self.in_channels:
            made = type(self).__name__
            raise ValueError(
                f"images of shape {list(images.shape)}: {made} takes [N, {self.in_channels}, H, W]; "
                f"make it with in_channels={images.shape[1] if images.ndim == 4 else '…'} for other channels"
            )
        if not images.is_floating_point():
            raise ValueError(
                f"images are {images.dtype}; an encoder takes floating point: normalise them first (images / 255)"
            )
        return images.contiguous(memory_format=torch.channels_last) if self.channels_last else images


def is_small(image_size: ImageSize | None, stem: str) -> bool:
    """Whether the small-image stem is meant: by hand, or because the longer side is at most 64.

    >>> is_small(32, "auto"), is_small(224, "auto"), is_small(224, "small"), is_small(None, "auto")
    (True, False, True, False)
    """
    if stem not in ("auto", "small", "large"):
        raise ValueError(f"stem must be 'auto', 'small' or 'large', not {stem!r}")
    if stem != "auto":
        return stem == "small"
    return image_size is not None and max(height_and_width(image_size)) <= SMALL


def height_and_width(image_size: ImageSize) -> tuple[int, int]:
    """The two sides; one number means a square.

    >>> height_and_width(32), height_and_width((28, 40))
    ((32, 32), (28, 40))
    """
    sides = (image_size,) * 2 if isinstance(image_size, numbers.Number) else tuple(image_size)  # type: ignore[arg-type]
    if len(sides) != 2:
        raise ValueError(f"image_size must be a number of pixels or a pair (height, width), not {image_size!r}")
    height, width = (positive("image_size", side) for side in sides)
    return height, width
