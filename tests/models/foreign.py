"""Networks as other projects define them, as far as the names of their tensors and what they compute go."""

from __future__ import annotations

import torch
import torchvision
from torch import Tensor, nn
from torch.nn import functional


class SupContrastBlock(nn.Module):
    """networks/resnet_big.py of HobbitLong/SupContrast: the way round is called ``shortcut``."""

    def __init__(self, inside: int, planes: int, stride: int, expansion: int) -> None:
        super().__init__()
        out = planes * expansion
        sizes = [(inside, planes, 3, stride), (planes, planes, 3, 1)]
        if expansion == 4:
            sizes = [(inside, planes, 1, 1), (planes, planes, 3, stride), (planes, out, 1, 1)]
        self.count = len(sizes)
        for i, (a, b, side, step) in enumerate(sizes, 1):
            setattr(self, f"conv{i}", nn.Conv2d(a, b, side, stride=step, padding=side // 2, bias=False))
            setattr(self, f"bn{i}", nn.BatchNorm2d(b))
        self.shortcut = nn.Sequential()
        if stride != 1 or inside != out:
            self.shortcut = nn.Sequential(nn.Conv2d(inside, out, 1, stride=stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: Tensor) -> Tensor:
        h = x
        for i in range(1, self.count + 1):
            h = getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(h))
            h = functional.relu(h) if i < self.count else h
        return functional.relu(h + self.shortcut(x))


class SupContrastResNet(nn.Module):
    """Its ResNet: a 3×3 stem, no max-pool, the mean over the last map."""

    def __init__(self, blocks: list[int], expansion: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64)
        inside = 64
        for stage, (count, planes) in enumerate(zip(blocks, (64, 128, 256, 512), strict=True), 1):
            layers = []
            for i in range(count):
                stride = 2 if stage > 1 and i == 0 else 1
                layers.append(SupContrastBlock(inside, planes, stride, expansion))
                inside = planes * expansion
            setattr(self, f"layer{stage}", nn.Sequential(*layers))

    def forward(self, x: Tensor) -> Tensor:
        h = functional.relu(self.bn1(self.conv1(x)))
        for stage in range(1, 5):
            h = getattr(self, f"layer{stage}")(h)
        return h.mean((2, 3))


class SupContrast(nn.Module):
    """SupConResNet: encoder (in DataParallel where there are several GPUs) and head."""

    def __init__(self, encoder: nn.Module, dim: int, *, parallel: bool) -> None:
        super().__init__()
        self.encoder = Wrapped(encoder) if parallel else encoder
        self.head = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(inplace=True), nn.Linear(dim, 128))


class Wrapped(nn.Module):
    """What DataParallel and DistributedDataParallel make of names."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Tensor) -> Tensor:
        return self.module(x)  # type: ignore[no-any-return]


class MoCo(nn.Module):
    """moco/builder.py of facebookresearch/moco: two torchvision ResNets with fc (v1), or fc.0 and fc.2 (v2)."""

    def __init__(self, *, mlp: bool) -> None:
        super().__init__()
        self.encoder_q = torchvision.models.resnet18(num_classes=16)
        self.encoder_k = torchvision.models.resnet18(num_classes=16)
        if mlp:
            for encoder in (self.encoder_q, self.encoder_k):
                encoder.fc = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), encoder.fc)
        self.register_buffer("queue", torch.randn(16, 32))
        self.register_buffer("queue_ptr", torch.zeros(1, dtype=torch.long))


class SoloLearn(nn.Module):
    """solo/methods/base.py of vturrisi/solo-learn: torchvision's ResNet, for CIFAR with a 3×3 padded by 2."""

    def __init__(self, *, cifar: bool) -> None:
        super().__init__()
        self.backbone, self.momentum_backbone = torchvision.models.resnet18(), torchvision.models.resnet18()
        for network in (self.backbone, self.momentum_backbone):
            network.fc = nn.Identity()
            if cifar:
                network.conv1 = nn.Conv2d(3, 64, 3, stride=1, padding=2, bias=False)
                network.maxpool = nn.Identity()
        self.classifier = nn.Linear(512, 10)
        self.projector = nn.Sequential(nn.Linear(512, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 32))


def lived(module: nn.Module, seed: int = 0) -> nn.Module:
    """The module as after a training: running statistics and norms other than at the start, in double, eval mode."""
    draws = torch.Generator().manual_seed(seed)
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            for tensor in (part.running_mean, part.bias.data):
                tensor.copy_(0.2 * torch.randn(tensor.shape, generator=draws))
            for tensor in (part.running_var, part.weight.data):
                tensor.copy_(0.5 + torch.rand(tensor.shape, generator=draws))
    return module.double().eval()
