"""Flips mirror exactly the chosen samples."""

from __future__ import annotations

import pytest
import torch
from torchvision.transforms.v2 import functional as T

from kontrast.augment import HorizontalFlip, Params
from tests.augment.samples import floats, seeded


@pytest.mark.parametrize("side", [5, 32, 96])
def test_equals_torchvision(side: int) -> None:
    x = floats(8, 3, 6, side)
    on = torch.arange(8) % 3 == 0
    ours = HorizontalFlip().apply(x, Params(8, {"on": on}))
    for i in range(8):
        assert torch.equal(ours[i], T.horizontal_flip(x[i]) if on[i] else x[i])


def test_half_of_them() -> None:
    """20,000 draws: four standard errors are 0.014."""
    on = HorizontalFlip().draw(20_000, (32, 32), seeded())["on"]
    assert abs(float(on.float().mean()) - 0.5) < 0.014
