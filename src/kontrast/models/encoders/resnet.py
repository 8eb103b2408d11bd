"""torchvision's ResNets without their classifier; for small images with a small stem.

The parameters keep torchvision's names, so its weights load as they are and what is saved here loads there.

The small-image stem is one 3×3 convolution of stride 1 and no max-pool, as all four papers have it on CIFAR; the
large one is torchvision's own, 7×7 of stride 2 and a max-pool of stride 2.

Deviates: the papers' code averages over the last 4×4 map; torchvision's pooling adapts, so that 28 or 64 pixels
work too. It is the same at 32.
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import torch
from torch import Tensor, nn
from torchvision import models  # type: ignore[import-untyped]
from torchvision.models.resnet import BasicBlock, Bottleneck  # type: ignore[import-untyped]

from kontrast.checks import size
from kontrast.models.encoders._base import LOAD, SMALL, ImageEncoder, ImageSize, is_small, loading_code
from kontrast.models.preprocessing import Preprocessing
from kontrast.models.published import Published
from kontrast.models.weights import read_tensors
from kontrast.registry import quoted

BLOCKS: dict[int, tuple[type[BasicBlock | Bottleneck], list[int]]] = {
    18: (BasicBlock, [2, 2, 2, 2]),
    34: (BasicBlock, [3, 4, 6, 3]),
    50: (Bottleneck, [3, 4, 6, 3]),
    101: (Bottleneck, [3, 4, 23, 3]),
}
"""The kind of block, and how many of them in each of the four stages."""


class ResNet(ImageEncoder, models.ResNet):  # type: ignore[misc]
    """A ResNet of torchvision's blocks whose call gives the pooled last map.

    >>> ResNet(18, image_size=32).feature_dim, ResNet(50, image_size=32).feature_dim
    (512, 2048)
    """

    def __init__(
        self,
        depth: int,
        *,
        in_channels: int = 3,
        image_size: ImageSize | None = None,
        stem: str = "auto",
        channels_last: bool = True,
        zero_init_residual: bool = False,
        norm_layer: Any = None,
    ) -> None:
        if depth not in BLOCKS:
            raise ValueError(f"depth={depth!r}: must be one of {', '.join(map(str, BLOCKS))}")
        block, layers = BLOCKS[depth]
        small, in_channels = is_small(image_size, stem), size("in_channels", in_channels)
        models.ResNet.__init__(self, block, layers, zero_init_residual=zero_init_residual, norm_layer=norm_layer)
        self.name, self.feature_dim = f"resnet{depth}", 512 * block.expansion
        self.fc = nn.Identity()  # type: ignore[assignment]
        if small or in_channels != 3:
            side, stride, padding = (3, 1, 1) if small else (7, 2, 3)
            self.conv1 = nn.Conv2d(in_channels, 64, side, stride=stride, padding=padding, bias=False)
            nn.init.kaiming_normal_(self.conv1.weight, mode="fan_out", nonlinearity="relu")  # as torchvision does
        if small:
            self.maxpool = nn.Identity()  # type: ignore[assignment]
        self.largest_image = SMALL if small else None
        self._set_layout(in_channels=in_channels, channels_last=channels_last)

    def forward(self, images: Tensor) -> Tensor:
        """``images [N, in_channels, H, W]`` → ``h [N, feature_dim]``."""
        return models.ResNet.forward(self, self._prepare(images))  # type: ignore[no-any-return]

    @classmethod
    def published(cls, name: str, weights: str | None = None) -> Published | None:
        known = models.get_model_weights(name)
        if weights is not None and weights not in known.__members__:
            names = list(known.__members__)
            near = difflib.get_close_matches(weights.upper(), names, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else "."
            raise ValueError(f"torchvision has no weights {quoted(weights)} of {name}{hint} Known: {', '.join(names)}")
        one = known[weights or "DEFAULT"]
        file = Path(torch.hub.get_dir(), "checkpoints", Path(urlparse(one.url).path).name)

        def read(network: nn.Module) -> Mapping[str, Any]:
            if not file.is_file():
                one.get_state_dict(progress=False, check_hash=True)  # into the cache
            return read_tensors(file)

        return Published(f"{name} {one.name}", one.url, str(file), _preprocessing(one), read, file.is_file)

    @classmethod
    def preprocessing_of_file(cls, name: str, file: Path) -> Preprocessing | None:
        known = {Path(urlparse(one.url).path).name: one for one in models.get_model_weights(name)}
        return _preprocessing(known[file.name]) if file.name in known else None

    def loading_code(self) -> str:
        lines = [f"torchvision.models.{self.name}()"]
        conv = f"model.conv1 = torch.nn.Conv2d({self.in_channels}, 64"
        if self._has_small_stem:
            lines.append(f"{conv}, 3, stride=1, padding=1, bias=False)  # small images")
            lines.append("model.maxpool = torch.nn.Identity()")
        elif self.in_channels != 3:
            lines.append(f"{conv}, 7, stride=2, padding=3, bias=False)")
        lines.append("model.fc = torch.nn.Identity()")
        return loading_code(f"import torch, torchvision\n{LOAD}", "\n".join(lines))

    def timm_model(self) -> tuple[str, dict[str, Any]]:
        if self._has_small_stem:
            raise ValueError("timm's ResNets begin with a 7×7 convolution, this one with the 3×3 of small images")
        return self.name, {"in_chans": self.in_channels}

    def torchvision_model(self) -> nn.Module:
        model: nn.Module = getattr(models, self.name)()
        for part in ("conv1", "maxpool", "fc"):
            setattr(model, part, copy.deepcopy(getattr(self, part)))
        return model

    @property
    def _has_small_stem(self) -> bool:
        return self.conv1.kernel_size == (3, 3)


def _preprocessing(weights: Any) -> Preprocessing:
    """What torchvision's own transforms of these weights do."""
    of = weights.transforms()
    (size,), (resized,) = of.crop_size, of.resize_size
    return Preprocessing(size, tuple(of.mean), tuple(of.std), of.interpolation.value, size / resized)


ENTRIES: dict[str, tuple[type[ResNet], dict[str, Any], str]] = {
    "resnet18": (
        ResNet,
        {"depth": 18},
        "ResNet-18: basic blocks, features of 512. Of wang-liu, sce and graf on small images, of tcl without labels.",
    ),
    "resnet34": (ResNet, {"depth": 34}, "ResNet-34: basic blocks, features of 512. In tcl's stability runs."),
    "resnet50": (
        ResNet,
        {"depth": 50},
        "ResNet-50: bottleneck blocks, features of 2048. Of tcl with labels, and of the other papers on ImageNet.",
    ),
    "resnet101": (ResNet, {"depth": 101}, "ResNet-101: bottleneck blocks, features of 2048. In tcl's stability runs."),
}
