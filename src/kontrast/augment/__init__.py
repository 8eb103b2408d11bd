"""Batched augmentations on tensors, and their presets.

An operation draws random numbers for each sample of a batch, on the CPU and from the generator it is handed, and
applies them to images [n, C, H, W] (uint8 or float in 0…1, 1 or 3 channels) or vectors [n, D] on any device.

>>> import torch
>>> from kontrast import augment
>>> images = torch.randint(0, 256, (16, 3, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
>>> strong = augment.preset("strong", size=32, mean=(0.4914, 0.4822, 0.4465), std=(0.2023, 0.1994, 0.2010))
>>> strong(images, torch.Generator().manual_seed(0)).shape
torch.Size([16, 3, 32, 32])
>>> views = augment.Views([augment.preset("weak", size=32), augment.preset("strong", size=32)])
>>> views(images, torch.Generator().manual_seed(0)).shape
torch.Size([16, 2, 3, 32, 32])
>>> augment.NAMES
('autoaugment', 'crop-flip', 'none', 'sce-imagenet', 'simaugment', 'simclr', 'strong', 'vector-noise', 'wang-liu', \
'wang-liu-imagenet', 'weak', 'whole-object')
"""

from kontrast.augment.corruption import MarginalCorruption
from kontrast.augment.decoding import CropAtDecoding, at_decoding
from kontrast.augment.operation import Compose, Normalize, Operation, Params, Views
from kontrast.augment.operations.autoaugment import AutoAugment
from kontrast.augment.operations.blur import GaussianBlur
from kontrast.augment.operations.color_jitter import ColorJitter
from kontrast.augment.operations.crop import RandomCrop
from kontrast.augment.operations.feature_dropout import FeatureDropout
from kontrast.augment.operations.flip import HorizontalFlip
from kontrast.augment.operations.gaussian_noise import GaussianNoise
from kontrast.augment.operations.grayscale import RandomGrayscale
from kontrast.augment.operations.resized_crop import RandomResizedCrop
from kontrast.augment.operations.solarize import Solarize
from kontrast.augment.presets import (
    NAMES,
    OPERATIONS,
    describe,
    describe_operation,
    expand_options,
    kind_of,
    operation_options,
    options_of,
    preset,
    title,
    view,
)

__all__ = [
    "NAMES",
    "OPERATIONS",
    "AutoAugment",
    "ColorJitter",
    "Compose",
    "CropAtDecoding",
    "FeatureDropout",
    "GaussianBlur",
    "GaussianNoise",
    "HorizontalFlip",
    "MarginalCorruption",
    "Normalize",
    "Operation",
    "Params",
    "RandomCrop",
    "RandomGrayscale",
    "RandomResizedCrop",
    "Solarize",
    "Views",
    "at_decoding",
    "describe",
    "describe_operation",
    "expand_options",
    "kind_of",
    "operation_options",
    "options_of",
    "preset",
    "title",
    "view",
]
