"""ResNets: torchvision's network and numbers, with a stem for small images."""

from __future__ import annotations

import pytest
import torch
import torchvision
from torch import nn

from kontrast import models
from kontrast.models.encoders.resnet import ENTRIES, ResNet

# torchvision's, less the classifier and the 7×7 stem, plus a 3×3 stem: known for CIFAR's ResNets
PARAMETERS = {
    "resnet18": (11168832, 512),
    "resnet34": (21276992, 512),
    "resnet50": (23500352, 2048),
    "resnet101": (42492480, 2048),
}


@pytest.mark.parametrize("name", ENTRIES)
def test_small_images_keep_their_resolution_in_the_stem(name: str) -> None:
    small = models.encoder(name, image_size=32)
    assert (sum(p.numel() for p in small.parameters()), small.feature_dim) == PARAMETERS[name]
    assert (small.conv1.kernel_size, small.conv1.stride) == ((3, 3), (1, 1))
    assert isinstance(small.maxpool, nn.Identity)


@pytest.mark.parametrize(
    "name", ["resnet18", *(pytest.param(name, marks=pytest.mark.slow) for name in ENTRIES if name != "resnet18")]
)
def test_large_images_give_what_torchvision_gives(name: str) -> None:
    """The state dict is torchvision's but for the classifier, and so is the function.

    In float64: the two differ in memory layout, so in the order of sums, which shows far below assert_close's 1e-7.
    """
    whole = getattr(torchvision.models, name)(num_classes=7).double().eval()
    ours = models.encoder(name, image_size=224).double().eval()
    report = models.load_weights(ours, whole.state_dict(), strict=True)
    assert report.unexpected == ["fc.weight", "fc.bias"]
    assert set(ours.state_dict()) == {key for key in whole.state_dict() if not key.startswith("fc.")}
    x = torch.randn(2, 3, 64, 64, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        torch.testing.assert_close(whole.fc(ours(x)), whole(x))


def test_other_depths_are_refused() -> None:
    with pytest.raises(ValueError, match="depth=19: must be one of 18, 34, 50, 101"):
        ResNet(19)
    with pytest.raises(ValueError, match="encoder 'resnet18' has no option 'widht'"):
        models.encoder("resnet18", widht=3)
