"""Image files and image objects to uint8 ``[C, H, W]``, and the centre crop.

| input | conversion |
|---|---|
| grey, RGB, CMYK, YCbCr, HSV, 1-bit | converted by PIL |
| palette, with or without transparency | through RGBA |
| transparent (RGBA, LA, PA) | placed on white, as a viewer shows it |
| 16 bits a channel | divided by 257, so 65535 becomes 255 |
| float | 0…1 becomes 0…255; other values are refused |
| several frames | the first |
| EXIF orientation | applied |

An `ImageError` is raised for files that PIL cannot identify or decode, truncated files, and images of more than
`MOST_PIXELS` (a small file can decode to gigabytes; the size is read from the header, before anything is decoded).

Deviates: torchvision's ``ImageFolder`` drops the alpha channel and shows the colours hidden behind it, clips 16-bit
images at 255 and ignores EXIF orientation.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from PIL import Image, ImageOps, UnidentifiedImageError
from torch import Tensor
from torch.nn import functional

Crop = Callable[[Tensor, int], Tensor]
"""``crop(image uint8 [C, h, w], seed) → uint8 [C, H, W]``: what brings images of different sizes to one.

If it also has ``size`` (H, W) and ``box(height, width, seed) → (top, left, height, width)``, files that can be decoded
at a smaller scale are (JPEG), as far as the box still covers ``size``. If it has ``of_reduced(image, seed, full)``,
that is called instead with the (height, width) of the whole image, so that the draw does not depend on the scale.
"""
Interpolation = Literal["bilinear", "bicubic"]
INTERPOLATIONS: tuple[Interpolation, ...] = ("bilinear", "bicubic")
MOST_PIXELS = 89_478_485  # what PIL itself begins to warn at: 256 MB of RGB
NEVER = ("EPS", "WMF", "BUFR", "GRIB", "HDF5", "MPEG")  # PIL hands EPS, a program, to Ghostscript; films, no pixels
logging.getLogger("PIL").addHandler(logging.NullHandler())  # its messages about damaged files do not go to the terminal
# PIL's plug-ins raise all of these on damaged files; anything else is a defect of ours.
PIL_ERRORS = (OSError, SyntaxError, ValueError, TypeError, LookupError, EOFError, MemoryError, OverflowError)
WIDE_MODES = ("I", "I;16", "I;16B", "I;16L", "I;16N")


class ImageError(ValueError):
    """A file or object that is not a readable image; the message gives the reason without the file's name.

    >>> from_value(torch.zeros(4, 8, 8))
    Traceback (most recent call last):
        ...
    kontrast.data.images.ImageError: an image has 4 channels [4, 8, 8]: must be 1 or 3
    """


def decode(
    path: str | os.PathLike[str], *, channels: int = 3, crop: Crop | None = None, seed: int = 0, check: bool = False
) -> Tensor:
    """Decode an image file to uint8 ``[channels, h, w]``.

    Args:
        path: the file.
        channels: 3 (RGB) or 1 (grey).
        crop: if given, the result is ``crop(image, seed)``.
        seed: of the crop.
        check: read only the header and the end of the file (truncation), and return an empty image ``[channels, h, w]``
            on torch's meta device.

    Returns:
        The pixels, or what ``crop`` makes of them.

    Raises:
        ImageError: the file is not an image, is damaged, or has more than `MOST_PIXELS` pixels.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGBA", (3, 2), (255, 0, 0, 0)).save(f"{folder}/clear.png")
    ...     decode(f"{folder}/clear.png")[:, 0, 0]
    tensor([255, 255, 255], dtype=torch.uint8)
    """
    try:
        with Image.open(path, formats=formats()) as image:
            width, height = image.size
            if width * height > MOST_PIXELS:
                raise ImageError(f"{width}×{height} pixels are more than {MOST_PIXELS:,}. Reduce it first")
            # A PNG file is decoded whole by PIL if asked for metadata that its head has not.
            has_exif = image.format != "PNG" or "exif" in image.info
            is_rotated = has_exif and image.getexif().get(0x0112, 1) in (5, 6, 7, 8)
            full = (width, height) if is_rotated else (height, width)
            if check:
                if not _has_end(path, image.format):
                    image.load()  # much written after the end (motion photos) is no damage; only decoding tells
                return torch.empty(channels, *full, device="meta")
            _draft(image, crop, seed, full)
            pixels = from_pil(ImageOps.exif_transpose(image), channels)
    except ImageError:
        raise
    except UnidentifiedImageError:
        raise ImageError("not an image that PIL knows") from None
    except Image.DecompressionBombError:
        raise ImageError(f"more than {MOST_PIXELS:,} pixels. Reduce it first") from None
    except PIL_ERRORS as error:
        raise ImageError(str(error) or type(error).__name__) from error
    if crop is None:
        return pixels
    if tuple(pixels.shape[1:]) != full and hasattr(crop, "of_reduced"):
        reduced: Tensor = crop.of_reduced(pixels, seed, full)
        return reduced
    return crop(pixels, seed)


@cache
def formats() -> tuple[str, ...]:
    """The formats that are read, whatever a file is called: all of PIL's but `NEVER`.

    >>> "PNG" in formats(), "EPS" in formats()
    (True, False)
    """
    Image.init()
    return tuple(kind for kind in Image.ID if kind not in NEVER)


def from_pil(image: Image.Image, channels: int = 3) -> Tensor:
    """Convert a PIL image of any mode to uint8 ``[channels, h, w]``; channels are 3 (RGB) or 1 (grey).

    >>> from_pil(Image.new("I;16", (1, 1), 65535), channels=1)
    tensor([[[255]]], dtype=torch.uint8)
    """
    mode = {1: "L", 3: "RGB"}.get(channels)
    if mode is None:
        raise ValueError(f"channels={channels}: must be 3 (RGB) or 1 (grey)")
    if image.mode in WIDE_MODES or image.mode == "F":
        wide = np.asarray(image, dtype=np.float64)
        least, most = float(wide.min()), float(wide.max())
        top = 1 if image.mode == "F" else 65535
        if not (least >= 0 and most <= top):
            raise ImageError(f"values {least:g} to {most:g} in mode {image.mode}: must be 0 to {top}")
        image = Image.fromarray(np.rint(wide * (255 / top)).astype(np.uint8))
    if image.mode in ("P", "PA", "LA", "La", "RGBa") or "transparency" in image.info:
        image = image.convert("RGBA")
    if image.mode == "RGBA":
        white = Image.new("RGBA", image.size, (255, 255, 255, 255))
        image = Image.alpha_composite(white, image)
    if image.mode != mode:
        image = image.convert(mode)
    pixels = torch.from_numpy(np.array(image, copy=True))
    return pixels[None] if pixels.ndim == 2 else pixels.permute(2, 0, 1).contiguous()


def from_value(value: Any, channels: int | None = None) -> Tensor:
    """Convert an image object to uint8 ``[C, h, w]``: a PIL image, an array HWC or HW, a tensor CHW or HW (floats 0…1).

    >>> from_value(np.zeros((2, 4, 3), dtype=np.uint8)).shape, from_value(torch.ones(1, 2, 4)).max()
    (torch.Size([3, 2, 4]), tensor(255, dtype=torch.uint8))
    """
    if isinstance(value, Image.Image):
        grey = value.mode in ("L", "1", *WIDE_MODES, "F")
        return from_pil(value, channels or (1 if grey else 3))
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "iufb":
            raise ImageError(f"an image is an array of {value.dtype}: must be numbers")
        value = torch.from_numpy(value.astype(native_type(value.dtype), order="C"))
        value = value.permute(2, 0, 1) if value.ndim == 3 else value
    if not isinstance(value, Tensor) or value.ndim not in (2, 3):
        form = list(value.shape) if isinstance(value, Tensor) else type(value).__name__
        raise ImageError(f"an image is {form}: must be a PIL image, an array [H, W, C] or a tensor [C, H, W]")
    value = value[None] if value.ndim == 2 else value
    if 0 in value.shape:
        raise ImageError(f"an image has shape {list(value.shape)}: must have at least one pixel")
    if len(value) not in (1, 3):
        raise ImageError(f"an image has {len(value)} channels {list(value.shape)}: must be 1 or 3")
    pixels = as_uint8(value)
    return (pixels if channels is None else with_channels(pixels, channels)).contiguous()


def native_type(kind: np.dtype[Any]) -> np.dtype[Any]:
    """The type for the same numbers that torch accepts: native byte order, and no type wider than float64.

    >>> native_type(np.dtype(">f4")), native_type(np.dtype(np.longdouble))
    (dtype('float32'), dtype('float64'))
    """
    return np.dtype(np.float64 if kind.kind == "f" and kind.itemsize > 8 else kind.newbyteorder("=").str)


def with_channels(pixels: Tensor, channels: int) -> Tensor:
    """Convert images uint8 ``[…, C, h, w]`` to RGB (grey repeated) or to grey (luma, rounded as PIL does).

    >>> with_channels(torch.tensor([255, 0, 0], dtype=torch.uint8).reshape(3, 1, 1), 1)
    tensor([[[76]]], dtype=torch.uint8)
    """
    if pixels.shape[-3] == channels:
        return pixels
    if channels == 3:
        return pixels.repeat_interleave(3, dim=-3)
    if pixels.ndim == 4 and len(pixels) > 1024:  # the sums need four times the memory: not for all at once
        return torch.cat([with_channels(part, channels) for part in torch.split(pixels, 1024)])
    red, green, blue = pixels.to(torch.int32).unbind(-3)
    luma = (19595 * red + 38470 * green + 7471 * blue + 32768) >> 16  # 0.299, 0.587, 0.114 in 1/65536
    return luma.to(torch.uint8).unsqueeze(-3)


def as_uint8(pixels: Tensor) -> Tensor:
    """Convert pixels to uint8: floats are 0…1, uint16 is 0…65535, other integers 0…255, bool 0 or 255.

    >>> as_uint8(torch.tensor([0.0, 0.5, 1.0]))
    tensor([  0, 128, 255], dtype=torch.uint8)
    """
    if pixels.is_complex():
        raise ImageError(f"pixels are {pixels.dtype}: must be uint8, or floats 0 to 1")
    if pixels.dtype == torch.uint8 or not pixels.numel():
        return pixels.to(torch.uint8)
    if pixels.dtype == torch.bool:
        return pixels.to(torch.uint8).mul_(255)
    top = 1 if pixels.is_floating_point() else 65535 if pixels.dtype == torch.uint16 else 255
    # Unsigned types beyond uint8 have no smallest and largest in torch; from 2⁶³ on they turn negative: refused too.
    values = pixels.to(torch.int64) if pixels.dtype in (torch.uint16, torch.uint32, torch.uint64) else pixels
    least, most = float(values.min()), float(values.max())
    if not (least >= 0 and most <= top):
        raise ImageError(
            f"pixels of {pixels.dtype} from {least:g} to {most:g}: must be 0 to {top}. Pass uint8 images, or floats "
            "before they are normalised"
        )
    return values.to(torch.uint8) if top == 255 else (values.double() * (255 / top)).round_().to(torch.uint8)


class CentreCrop:
    """The central square of an image, resized to ``size`` pixels, with antialiasing.

    Args:
        size: pixels of the output, square.
        fraction: the share of the shorter side that is kept: 0.875 is the usual "resize 256, crop 224".
        interpolation: "bilinear" or "bicubic".

    Raises:
        ValueError: a value outside its range.

    >>> CentreCrop(4)(torch.zeros(3, 9, 6, dtype=torch.uint8)).shape
    torch.Size([3, 4, 4])
    >>> CentreCrop(4).box(9, 6, seed=0)
    (1, 0, 6, 6)
    """

    def __init__(self, size: int, fraction: float = 1.0, interpolation: Interpolation = "bilinear") -> None:
        if size < 1 or not 0 < fraction <= 1:
            raise ValueError(f"size={size}, fraction={fraction}: must be size ≥ 1 and 0 < fraction ≤ 1")
        if interpolation not in INTERPOLATIONS:
            raise ValueError(f"interpolation={interpolation!r}: must be one of {', '.join(INTERPOLATIONS)}")
        self.size, self.fraction, self.interpolation = (size, size), fraction, interpolation

    def __repr__(self) -> str:
        fraction = f", fraction={self.fraction}" if self.fraction < 1 else ""
        other = "" if self.interpolation == "bilinear" else f", interpolation={self.interpolation!r}"
        return f"CentreCrop({self.size[0]}{fraction}{other})"

    def box(self, height: int, width: int, seed: int = 0) -> tuple[int, int, int, int]:
        """(top, left, height, width) of the square that is kept; nothing is drawn, so ``seed`` has no effect."""
        side = max(1, round(min(height, width) * self.fraction))
        return (height - side) // 2, (width - side) // 2, side, side

    def __call__(self, image: Tensor, seed: int = 0) -> Tensor:
        """Crop ``image`` uint8 ``[C, h, w]``, or a batch ``[n, C, h, w]``."""
        top, left, height, width = self.box(image.shape[-2], image.shape[-1])
        part = image[..., top : top + height, left : left + width]
        if (height, width) == self.size:
            return part.contiguous()
        batch = part[None] if part.ndim == 3 else part
        if self.size[1] == 1:  # a column of bytes comes out wrong of torch's own way (2.15), or not at all
            one = functional.interpolate(batch.float(), self.size, mode=self.interpolation, antialias=True)
            resized = one.round_().clamp_(0, 255).to(batch.dtype)
        else:
            resized = functional.interpolate(batch, self.size, mode=self.interpolation, antialias=True)
        return resized[0] if image.ndim == 3 else resized


def _draft(image: Image.Image, crop: Crop | None, seed: int, full: tuple[int, int]) -> None:
    """Let PIL decode a JPEG at 1/2, 1/4 or 1/8 if the crop's box then still covers the size it is resized to.

    ``full`` is (height, width) as the image is displayed.
    """
    box, size = getattr(crop, "box", None), getattr(crop, "size", None)
    if image.format != "JPEG" or box is None or size is None:
        return
    _, _, box_height, box_width = box(*full, seed)
    scale = max(size[0] / box_height, size[1] / box_width)
    if scale < 1:
        least = (math.ceil(image.size[0] * scale), math.ceil(image.size[1] * scale))
        image.draft(None, least)


def _has_end(path: str | os.PathLike[str], kind: str | None) -> bool:
    """Whether the last bytes of a JPEG or PNG file hold its end mark; truncation is the most common damage."""
    mark = {"JPEG": b"\xff\xd9", "PNG": b"IEND"}.get(kind or "")
    if mark is None:
        return True
    with Path(path).open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 4096))
        return mark in file.read()
