from __future__ import annotations

import pytest
import torch
import torchvision

from kontrast import models
from tests.models.encoders.of_torchvision import check_against_torchvision

# torchvision's, less the classifier and the 7×7 stem, plus a 3×3 stem: known for CIFAR's ResNet-101
PARAMETERS, FEATURES = 42492480, 2048


def test_small_images_keep_their_resolution_in_the_stem() -> None:
    small = models.encoder("resnet101", image_size=32)
    assert sum(p.numel() for p in small.parameters()) == PARAMETERS
    assert small.feature_dim == FEATURES
    assert (small.conv1.kernel_size, small.conv1.stride) == ((3, 3), (1, 1))
    assert isinstance(small.maxpool, torch.nn.Identity)


@pytest.mark.slow
def test_large_images_give_what_torchvision_gives() -> None:
    check_against_torchvision("resnet101", torchvision.models.resnet101)
