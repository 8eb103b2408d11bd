"""A ResNet of ours against torchvision's with the same weights."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from kontrast import models


def check_small_stem(name: str, *, parameters: int, features: int) -> None:
    """Small images keep their resolution: a 3×3 stem of stride 1 and no pooling."""
    small = models.encoder(name, image_size=32)
    assert sum(p.numel() for p in small.parameters()) == parameters
    assert small.feature_dim == features
    assert (small.conv1.kernel_size, small.conv1.stride) == ((3, 3), (1, 1))
    assert isinstance(small.maxpool, nn.Identity)


def check_against_torchvision(name: str, theirs: Callable[..., nn.Module]) -> None:
    """The state dict is torchvision's but for the classifier, and so is the function.

    In float64: the two differ in memory layout, so in the order of sums, which shows far below assert_close's 1e-7.
    """
    whole = theirs(num_classes=7).double().eval()
    ours = models.encoder(name, image_size=224).double().eval()
    report = models.load_weights(ours, whole.state_dict(), strict=True)
    assert report.unexpected == ["fc.weight", "fc.bias"]
    assert set(ours.state_dict()) == {key for key in whole.state_dict() if not key.startswith("fc.")}
    x = torch.randn(2, 3, 64, 64, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        torch.testing.assert_close(whole.fc(ours(x)), whole(x))
