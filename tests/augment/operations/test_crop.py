"""Crops are torchvision's at the same place, pixel for pixel, and every place is as likely."""

from __future__ import annotations

import pytest
import torch
from torchvision.transforms.v2 import functional as T

from kontrast.augment import RandomCrop
from tests.augment.samples import floats, seeded


@pytest.mark.parametrize(("height", "width"), [(32, 32), (28, 40), (80, 72)])
@pytest.mark.parametrize("channels", [1, 3])
def test_equals_torchvision_at_the_same_place(height: int, width: int, channels: int) -> None:
    """Exactly: pixels are moved, not computed."""
    crop, x = RandomCrop((height - 2, width), padding=4), floats(40, channels, height, width)
    params = crop.draw(40, (height, width), seeded())
    ours = crop.apply(x, params)
    padded = T.pad(x, [4])
    for i in range(40):
        wanted = T.crop(padded[i], int(params["top"][i]), int(params["left"][i]), height - 2, width)
        assert torch.equal(ours[i], wanted)


def test_every_place_is_as_likely() -> None:
    """81 places, 81,000 draws: chi-square with 80 degrees of freedom is below 124.8 with probability 0.999."""
    params = RandomCrop(32, padding=4).draw(81_000, (32, 32), seeded())
    count = torch.bincount(params["top"] * 9 + params["left"], minlength=81).double()
    assert len(count) == 81
    assert float((count - 1000).square().sum() / 1000) < 124.8


def test_a_crop_that_does_not_fit_is_named() -> None:
    with pytest.raises(ValueError, match="crops of 32 × 32 do not fit into images of 28 × 28 with a border of 1"):
        RandomCrop(32, padding=1)(floats(2, 1, 28, 28))
