"""A small ResNet for small images and CPUs.

    stem    3×3 convolution to w/2 channels, BN, ReLU; above 64 pixels of stride 2, then a max-pool of stride 2
    stages  three of ``depth`` basic blocks, w, 2w and 4w wide; each halves the map
    h       the mean over the last map, 4w numbers

With ``depth=1`` it has about 76k parameters at ``width=16`` (the default), 303k at 32 and 680k at 48. At full
resolution a stage would take most of the time of a CPU, so only the stem, half as wide, sees it. The narrow one is the
default because it gets further in a minute or two on a CPU; longer runs were not compared. `benchmarks/encoders.py` has
the speeds.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from kontrast.models._options import positive
from kontrast.models.encoders._base import ImageEncoder, ImageSize, is_small


class SmallResNet(ImageEncoder):
    """Images ``[N, in_channels, H, W]`` → ``h [N, 4 · width]``.

    >>> small = SmallResNet(in_channels=1)
    >>> small.feature_dim, sum(p.numel() for p in small.parameters())
    (64, 76024)
    """

    def __init__(
        self,
        *,
        in_channels: int = 3,
        image_size: ImageSize | None = None,
        stem: str = "auto",
        width: int = 16,
        depth: int = 1,
        channels_last: bool = True,
    ) -> None:
        super().__init__()
        w, inner = positive("width", width), [1] * (positive("depth", depth) - 1)
        before, in_channels = max(w // 2, 1), positive("in_channels", in_channels)
        small = is_small(
            32 if image_size is None else image_size, stem
        )  # made for small images, so an unknown size is a small one
        first = nn.Conv2d(in_channels, before, 3, stride=1 if small else 2, padding=1, bias=False)
        self.stem = nn.Sequential(first, nn.BatchNorm2d(before), nn.ReLU(inplace=True))
        if not small:
            self.stem.append(nn.MaxPool2d(3, stride=2, padding=1))
        blocks: list[nn.Module] = []
        for out in (w, 2 * w, 4 * w):
            for step in (2, *inner):
                blocks.append(_Block(before, out, step))
                before = out
        self.blocks = nn.Sequential(*blocks)
        self.feature_dim = before
        for part in self.modules():
            if isinstance(part, nn.Conv2d):
                nn.init.kaiming_normal_(part.weight, mode="fan_out", nonlinearity="relu")
        self._as_declared(in_channels=in_channels, channels_last=channels_last)

    def forward(self, images: Tensor) -> Tensor:
        """``images [N, in_channels, H, W]`` → ``h [N, feature_dim]``."""
        last: Tensor = self.blocks(self.stem(self._prepared(images)))
        return last.mean((2, 3))


class _Block(nn.Module):
    """Two 3×3 convolutions and the way round them."""

    def __init__(self, inside: int, out: int, stride: int) -> None:
        super().__init__()
        self.stride = stride
        self.conv1 = nn.Conv2d(inside, out, 3, stride=stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(out)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inside != out:
            self.shortcut = nn.Sequential(nn.Conv2d(inside, out, 1, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: Tensor) -> Tensor:
        inner = F.relu(self.norm1(self.conv1(x)), inplace=True)
        # Pixels are skipped here, not by the 1×1 convolution: with 4 or 8 channels, two threads and a small batch, the
        # backward pass of a strided one in channels_last corrupted memory (torch 2.15 on CPU).
        skipped = x[:, :, :: self.stride, :: self.stride]
        return F.relu(self.norm2(self.conv2(inner)) + self.shortcut(skipped), inplace=True)
