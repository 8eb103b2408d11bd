"""Solarise is torchvision's."""

from __future__ import annotations

import pytest
import torch
from torchvision.transforms.v2 import functional as T

from kontrast.augment import Params, Solarize
from tests.augment.samples import floats, levels, seeded


@pytest.mark.parametrize("threshold", [0.0, 0.5, 1.0])
def test_equals_torchvision(threshold: float) -> None:
    x, on = floats(8), torch.arange(8) % 2 == 1
    ours = Solarize(threshold).apply(x, Params(8, {"on": on}))
    wanted = torch.where(on.view(-1, 1, 1, 1), T.solarize(x, threshold), x)
    assert torch.equal(ours, wanted)


def test_half_is_128_of_255() -> None:
    """As BYOL's and SCE's code has it, on uint8; 1 − x and (255 − 255x)/255 differ by rounding."""
    x = levels(8)
    ours = Solarize(0.5, p=1.0)(x)
    torch.testing.assert_close(ours, T.solarize(x, 128).float() / 255, atol=1e-6, rtol=0)


def test_a_fifth_of_them() -> None:
    """20,000 draws: four standard errors are 0.0114."""
    on = Solarize(p=0.2).draw(20_000, (32, 32), seeded())["on"]
    assert abs(float(on.float().mean()) - 0.2) < 0.0114
