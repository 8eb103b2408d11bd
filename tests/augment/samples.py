"""Images and operations that several tests share."""

from __future__ import annotations

import inspect

import torch
from torch import Tensor

from kontrast import augment
from kontrast.registry import FAMILIES

OPERATIONS = FAMILIES["operation"]


def by_file(kind: str, others: dict[str, augment.Operation]) -> dict[str, augment.Operation]:
    """Operations that a file declares and nobody lists below, with their defaults."""
    listed = {type(operation) for operation in others.values()}
    new = [name for name in OPERATIONS if OPERATIONS[name].kind == kind and OPERATIONS[name] not in listed]
    sizes = {name: {"size": 32} for name in new if "size" in inspect.signature(OPERATIONS[name]).parameters}
    return {name: OPERATIONS.make(name, **sizes.get(name, {})) for name in new}


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def levels(n: int = 16, channels: int = 3, height: int = 32, width: int = 32, *, seed: int = 0) -> Tensor:
    """uint8 images: noise, but the first is black, the second white, the third one colour, and a quarter smooth."""
    x = torch.randint(0, 256, (n, channels, height, width), dtype=torch.uint8, generator=seeded(seed))
    x[:1], x[1:2] = 0, 255
    x[2:3] = torch.randint(0, 256, (channels, 1, 1), dtype=torch.uint8, generator=seeded(seed + 1))
    ramp = torch.linspace(0, 200, width).expand(height, width)
    for i in range(3, 3 + n // 4):
        x[i] = (ramp + torch.arange(channels)[:, None, None] * 10 + i).byte()
    return x


def floats(n: int = 16, channels: int = 3, height: int = 32, width: int = 32, *, seed: int = 0) -> Tensor:
    """The same in 0…1."""
    return levels(n, channels, height, width, seed=seed).float() / 255


def image_operations() -> dict[str, augment.Operation]:
    """Every operation on images of 32 × 32, and some compositions."""
    operations = {
        "crop": augment.RandomCrop(32, padding=4),
        "smaller crop": augment.RandomCrop((20, 24), padding=0),
        "resized crop": augment.RandomResizedCrop(32, scale=(0.2, 1.0)),
        "smaller resized crop": augment.RandomResizedCrop((20, 24)),
        "flip": augment.HorizontalFlip(),
        "jitter": augment.ColorJitter(0.8, 0.8, 0.8, 0.2, p=0.8),
        "jitter without hue": augment.ColorJitter(0.4, 0.4, 0.4),
        "grayscale": augment.RandomGrayscale(0.5),
        "blur": augment.GaussianBlur(),
        "solarize": augment.Solarize(),
        "autoaugment": augment.AutoAugment(),
        "normalize": augment.Normalize(0.5, 0.25),
        "two crops and a flip": augment.Compose(
            [augment.RandomCrop(30, padding=4), augment.RandomResizedCrop(32), augment.HorizontalFlip()]
        ),
        "nothing": augment.Compose([]),
        **{name: augment.preset(name, size=32, mean=0.5, std=0.25) for name in augment.NAMES if name != "vector-noise"},
    }
    return operations | by_file("image", operations)


def vector_operations() -> dict[str, augment.Operation]:
    """Every operation on vectors of length 10."""
    operations = {
        "noise": augment.GaussianNoise(0.3, p=0.7),
        "dropout": augment.FeatureDropout(0.3, p=0.7),
        "corruption": augment.MarginalCorruption(torch.randn(50, 10, generator=seeded(9)), p=0.7),
        "vector-noise": augment.preset("vector-noise", noise=0.2, dropout=0.1),
        "standardised": augment.preset("vector-noise", mean=torch.arange(10.0), std=2.0),
    }
    return operations | by_file("vector", operations)
