"""How an image becomes the input of an encoder: the size, crop, interpolation, mean and std that its weights know.

    the middle square, ``crop`` of the shorter side → ``size`` × ``size`` pixels (``interpolation``, with antialiasing)
    → pixels / 255 → (x − mean) / std

Libraries describe their weights so: timm by the configuration of each name and tag, torchvision by the transforms of
its weights, a run of kontrast by model.json.

>>> imagenet = Preprocessing(224, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225), "bicubic", 0.95)
>>> print(imagenet)
224×224 pixels of the middle 95 %, bicubic, mean (0.485, 0.456, 0.406), std (0.229, 0.224, 0.225)
>>> [round(value, 3) for value in imagenet.with_channels(1).mean]
[0.449]
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from kontrast.checks import is_finite

INTERPOLATIONS = ("bilinear", "bicubic")


@dataclass(frozen=True)
class Preprocessing:
    """What a checkpoint's images went through.

    Args:
        size: Pixels of the side.
        mean: One number for each channel, of pixels in 0…1.
        std: The same.
        interpolation: "bilinear" or "bicubic".
        crop: The share of the shorter side that is kept.

    Raises:
        ValueError: A value outside its range.

    >>> Preprocessing(224, (0.5,), (0.0,))
    Traceback (most recent call last):
        ...
    ValueError: std=(0.0,): must be numbers above 0, one for each of the 1 channels of the mean
    """

    size: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    interpolation: Literal["bilinear", "bicubic"] = "bilinear"
    crop: float = 0.875

    def __post_init__(self) -> None:
        for name in ("mean", "std"):
            object.__setattr__(self, name, tuple(float(value) for value in getattr(self, name)))
        if isinstance(self.size, bool) or not isinstance(self.size, int) or self.size < 1:
            raise ValueError(f"size={self.size!r}: must be a number of pixels, 1 or more")
        if not self.mean or not all(map(is_finite, self.mean)):
            raise ValueError(f"mean={self.mean}: must be a number for each channel")
        if len(self.std) != len(self.mean) or not all(is_finite(value) and value > 0 for value in self.std):
            channels = len(self.mean)
            raise ValueError(
                f"std={self.std}: must be numbers above 0, one for each of the {channels} channels of the mean"
            )
        if self.interpolation not in INTERPOLATIONS:
            raise ValueError(f"interpolation={self.interpolation!r}: must be one of {', '.join(INTERPOLATIONS)}")
        if not 0 < self.crop <= 1:
            raise ValueError(f"crop={self.crop}: must be a share of the shorter side, above 0 and at most 1")

    def __str__(self) -> str:
        mean, std = (", ".join(f"{value:.4g}" for value in values) for values in (self.mean, self.std))
        part = "of the middle square" if self.crop == 1 else f"of the middle {100 * self.crop:.4g} %"
        return f"{self.size}×{self.size} pixels {part}, {self.interpolation}, mean ({mean}), std ({std})"

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "mean": list(self.mean), "std": list(self.std)}

    def with_channels(self, channels: int) -> Preprocessing:
        """For images of other channels: the average of the channels' values for each.

        Weights of a first layer for RGB are summed for grey images, and sum_c w_c (x − m_c)/s_c of one pixel x in all
        channels is nearly (sum_c w_c)(x − m)/s, since the values of the channels are alike.

        >>> Preprocessing(32, (0.2,), (0.1,)).with_channels(3).std
        (0.1, 0.1, 0.1)
        """
        if channels == len(self.mean):
            return self
        mean, std = (math.fsum(values) / len(values) for values in (self.mean, self.std))
        return replace(self, mean=(mean,) * channels, std=(std,) * channels)

    @staticmethod
    def of_card(inputs: Mapping[str, Any]) -> Preprocessing | None:
        """Of the entry ``input`` of a model.json; None for vectors, or if the images were not square.

        >>> Preprocessing.of_card({"kind": "image", "shape": [1, 28, 28], "mean": [0.3], "std": [0.4], "crop": 1.0})
        Preprocessing(size=28, mean=(0.3,), std=(0.4,), interpolation='bilinear', crop=1.0)
        """
        if inputs["kind"] != "image" or inputs["shape"][1] != inputs["shape"][2]:
            return None
        crop = 1.0 if inputs.get("crop") is None else float(inputs["crop"])
        how: Any = inputs.get("interpolation") or "bilinear"  # cards of older versions lack it
        std = [value or 1.0 for value in inputs["std"]]
        return Preprocessing(int(inputs["shape"][1]), tuple(inputs["mean"]), tuple(std), how, crop)
