"""A small ResNet in plain torch: this file needs nothing else, and goes whole into the card of a trained encoder.

stem    small: 3×3 convolution to w/2 channels, BN, ReLU
        half: 4×4 convolution of stride 2 to w channels, BN, ReLU
        large: 3×3 convolution of stride 2 to w/2 channels, BN, ReLU, then a max-pool of stride 2
stages  three of ``depth`` basic blocks, w, 2w and 4w wide; each halves the map, but for the first behind stem ``half``
last    only with ``features``: 1×1 convolution to that many channels, BN, ReLU
h       the mean over the last map: 4w numbers, or ``features``; ≥ 0 behind the last ReLU, which ``signed`` leaves out
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn


class PlainSmallResNet(nn.Module):
    """Images ``[N, in_channels, H, W]`` → ``h [N, 4 · width]``, or ``[N, features]``."""

    def __init__(
        self,
        in_channels: int = 3,
        width: int = 16,
        depth: int = 1,
        stem: str = "small",
        features: int | None = None,
        signed: bool = False,
    ) -> None:
        super().__init__()
        # What makes the same network again; a model card prints it.
        self.arguments = {"in_channels": in_channels, "width": width, "depth": depth, "stem": stem}
        self.arguments |= {"features": features, "signed": signed}
        before = width if stem == "half" else max(width // 2, 1)
        side, stride = {"small": (3, 1), "half": (4, 2), "large": (3, 2)}[stem]
        first = nn.Conv2d(in_channels, before, side, stride=stride, padding=1, bias=False)
        self.stem = nn.Sequential(first, nn.BatchNorm2d(before), nn.ReLU(inplace=True))
        if stem == "large":
            self.stem.append(nn.MaxPool2d(3, stride=2, padding=1))
        blocks: list[Block] = []
        for out in (width, 2 * width, 4 * width):
            halves = stem != "half" or out > width  # that stem has halved the map for the first stage
            for stride in (2 if halves else 1, *[1] * (depth - 1)):
                blocks.append(Block(before, out, stride))
                before = out
        if signed and features is None:
            blocks[-1].rectified = False
        self.blocks = nn.Sequential(*blocks)
        self.last = nn.Sequential()
        if features is not None:
            convolution = nn.Conv2d(before, features, 1, bias=False)
            self.last = nn.Sequential(convolution, nn.BatchNorm2d(features))
            if not signed:
                self.last.append(nn.ReLU(inplace=True))
            before = features
        self.feature_dim = before
        for part in self.modules():
            if isinstance(part, nn.Conv2d):
                nn.init.kaiming_normal_(part.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: Tensor) -> Tensor:
        """``images [N, in_channels, H, W]`` → ``h [N, feature_dim]``."""
        maps: Tensor = self.last(self.blocks(self.stem(images)))
        return maps.mean((2, 3))


class Block(nn.Module):
    """Two 3×3 convolutions and the way round them."""

    rectified = True  # whether a ReLU ends it

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
        """``x [N, inside, H, W]`` → ``[N, out, H/stride, W/stride]``."""
        inner = F.relu(self.norm1(self.conv1(x)), inplace=True)
        # Pixels are skipped here, not by the 1×1 convolution: with 4 or 8 channels, two threads and a small batch, the
        # backward pass of a strided one in channels_last corrupted memory (torch 2.15 on CPU).
        skipped = x[:, :, :: self.stride, :: self.stride]
        out = self.norm2(self.conv2(inner)) + self.shortcut(skipped)
        return F.relu(out, inplace=True) if self.rectified else out
