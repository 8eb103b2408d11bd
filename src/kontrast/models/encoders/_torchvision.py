"""torchvision's ResNets without their classifier, with a stem for small images where that is wanted.

The parameters keep torchvision's names, so its weights load as they are and what is saved here loads there.

The small-image stem is one 3×3 convolution of stride 1 and no max-pool, as all four papers have it on CIFAR; the
large one is torchvision's own, 7×7 of stride 2 and a max-pool of stride 2.

Deviates: the papers' code averages over the last 4×4 map; torchvision's pooling adapts, so that 28 or 64 pixels
work too. It is the same at 32.
"""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor, nn
from torchvision.models.resnet import BasicBlock, Bottleneck, ResNet  # type: ignore[import-untyped]

from kontrast.checks import size
from kontrast.models.encoders._base import SMALL, ImageEncoder, ImageSize, is_small


class TorchvisionResNet(ImageEncoder, ResNet):  # type: ignore[misc]
    """A ResNet of torchvision's blocks whose call gives the pooled last map."""

    block: ClassVar[type[BasicBlock | Bottleneck]]
    layers: ClassVar[tuple[int, int, int, int]]

    def __init__(
        self,
        *,
        in_channels: int = 3,
        image_size: ImageSize | None = None,
        stem: str = "auto",
        channels_last: bool = True,
        zero_init_residual: bool = False,
        norm_layer: Any = None,
    ) -> None:
        small, in_channels = is_small(image_size, stem), size("in_channels", in_channels)
        ResNet.__init__(
            self, self.block, list(self.layers), zero_init_residual=zero_init_residual, norm_layer=norm_layer
        )
        self.feature_dim = 512 * self.block.expansion
        self.fc = nn.Identity()  # type: ignore[assignment]
        if small or in_channels != 3:
            shape: dict[str, int] = (
                {"kernel_size": 3, "stride": 1, "padding": 1}
                if small
                else {"kernel_size": 7, "stride": 2, "padding": 3}
            )
            self.conv1 = nn.Conv2d(in_channels, 64, bias=False, **shape)  # type: ignore[arg-type]
            nn.init.kaiming_normal_(self.conv1.weight, mode="fan_out", nonlinearity="relu")  # as torchvision does
        if small:
            self.maxpool = nn.Identity()  # type: ignore[assignment]
        self.largest_image = SMALL if small else None
        self._as_declared(in_channels=in_channels, channels_last=channels_last)

    def forward(self, images: Tensor) -> Tensor:
        """``images [N, in_channels, H, W]`` → ``h [N, feature_dim]``."""
        return ResNet.forward(self, self._prepared(images))  # type: ignore[no-any-return]
