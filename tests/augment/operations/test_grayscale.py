"""Grey is torchvision's, in all channels."""

from __future__ import annotations

import pytest
import torch
from torchvision.transforms.v2 import functional as T

from kontrast.augment import Params, RandomGrayscale
from tests.augment.samples import floats, seeded


@pytest.mark.parametrize("channels", [1, 3])
def test_equals_torchvision(channels: int) -> None:
    """The same three products and two sums in the same order; 1e-6 for a fused multiplication on other processors."""
    x, on = floats(8, channels), torch.arange(8) % 2 == 1
    ours = RandomGrayscale().apply(x, Params(8, {"on": on}))
    wanted = torch.where(on.view(-1, 1, 1, 1), T.rgb_to_grayscale(x, num_output_channels=channels), x)
    torch.testing.assert_close(ours, wanted, atol=1e-6, rtol=0)


def test_a_fifth_of_them() -> None:
    """20,000 draws: four standard errors are 0.0114."""
    on = RandomGrayscale(0.2).draw(20_000, (32, 32), seeded())["on"]
    assert abs(float(on.float().mean()) - 0.2) < 0.0114
