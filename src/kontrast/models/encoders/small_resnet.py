"""A small ResNet for small images and CPUs.

`PlainSmallResNet` in `_plain_resnet` is the network itself; here it gets its names and its size of image.
With ``depth=1`` it has about 76k parameters at ``width=16`` (the default), 303k at 32 and 680k at 48. At full
resolution a stage would take most of the time of a CPU, so only the stem, half as wide, sees it.

How the shape was chosen (docs/experiments/trials.md; SimCLR on CIFAR-10, held-out rows, equal CPU time): in four
minutes widths 16, 24 and 32 are alike, and width 48, a stem at half resolution, a second block a stage and a signed
last layer are worse; in fifteen minutes width 16, which has more than twice the epochs, is three points ahead of 32.
``features=256`` adds two points to a linear probe and nothing to kNN; the recipes for long runs have it. Convolutions
in groups are no quicker than whole ones. `benchmarks/encoders.py` has the speeds.
"""

from __future__ import annotations

import inspect
from typing import Any

from torch import Tensor, nn

from kontrast.checks import one_of, size
from kontrast.models.encoders import _plain_resnet
from kontrast.models.encoders._base import (
    LOAD,
    MOST_LAYERS,
    SMALL,
    ImageEncoder,
    ImageSize,
    is_small,
    keywords,
    loading_code,
)
from kontrast.models.encoders._plain_resnet import PlainSmallResNet

STEMS = ("auto", "small", "half", "large")

__all__ = ["PlainSmallResNet", "SmallResNet"]


class SmallResNet(PlainSmallResNet, ImageEncoder):
    """Images ``[N, in_channels, H, W]`` → ``h [N, 4 · width]``, or ``[N, features]``.

    >>> small = SmallResNet(in_channels=1)
    >>> small.feature_dim, sum(p.numel() for p in small.parameters())
    (64, 76024)

    Args:
        in_channels: Channels of the images.
        image_size: Their sides; it chooses the stem.
        stem: "small" (full resolution), "half", "large" (a quarter), or "auto", by the size.
        width: Channels of the first stage.
        depth: Blocks of a stage.
        features: The length of h; 4 · width if left out.
        signed: True leaves out the last ReLU, so that features have both signs: those behind a ReLU are ≥ 0, and no two
            of their class means have a cosine below 0, as a regular simplex has (`kontrast.geometry.simplex`).
        channels_last: The memory layout.

    Raises:
        ValueError: A number is below 1, or a word is unknown.
    """

    def __init__(
        self,
        *,
        in_channels: int = 3,
        image_size: ImageSize | None = None,
        stem: str = "auto",
        width: int = 16,
        depth: int = 1,
        features: int | None = None,
        signed: bool | None = None,  # None, not False: an option that is not asked for is left out of a recipe's hash
        channels_last: bool = True,
    ) -> None:
        in_channels = size("in_channels", in_channels)
        one_of("stem", stem, STEMS)
        if stem == "auto":  # an unknown size is a small one
            stem = "small" if is_small(32 if image_size is None else image_size, stem) else "large"
        if signed not in (None, True, False):
            raise ValueError(f"signed={signed!r}: must be true or false")
        width, depth = size("width", width), size("depth", depth, MOST_LAYERS)
        out = None if features is None else size("features", features)
        super().__init__(in_channels, width, depth, stem, out, bool(signed))
        self.largest_image = SMALL  # with either stem: it has three stages and few channels
        self._set_layout(in_channels=in_channels, channels_last=channels_last)

    def forward(self, images: Tensor) -> Tensor:
        """``images [N, in_channels, H, W]`` → ``h [N, feature_dim]``."""
        return super().forward(self._prepare(images))

    def stage_names(self) -> list[list[str]]:
        """The three stages of blocks, the stem with the first and the last convolution with the last."""
        depth = len(self.blocks) // 3
        stages = [[f"blocks.{stage * depth + i}" for i in range(depth)] for stage in range(3)]
        return [["stem", *stages[0]], stages[1], [*stages[2], "last"]]

    def recomputed_parts(self) -> list[nn.Module]:
        """The stem, which sees the full resolution, and each block."""
        return [self.stem, *self.blocks]

    @classmethod
    def options_for(cls, feature_dim: int) -> dict[str, Any]:
        return {"width": feature_dim // 4} if feature_dim % 4 == 0 else {}

    def loading_code(self) -> str:
        about = '"class" of this card, saved as small_resnet.py: it needs torch alone'
        imports = f"{LOAD}\nfrom small_resnet import PlainSmallResNet  # {about}"
        return loading_code(imports, f"PlainSmallResNet({keywords(self.arguments)})")

    def source_file(self) -> tuple[str, str]:
        return "small_resnet.py", inspect.getsource(_plain_resnet)
