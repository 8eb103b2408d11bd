"""The blur is torchvision's at the same kernel and width, on small and large images."""

from __future__ import annotations

import pytest
import torch
from PIL import ImageFilter
from scipy.stats import ks_2samp
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as T

from kontrast.augment import GaussianBlur, Params
from tests.augment.samples import floats, levels, seeded


@pytest.mark.parametrize(("height", "width"), [(32, 32), (28, 40), (80, 96)])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("kernel", [3, 13, 23])
def test_equals_torchvision_at_the_same_width(height: int, width: int, channels: int, kernel: int) -> None:
    """Sums of up to 23² products of float32 weights that sum to 1: rounding of values up to 1, 3e-6."""
    blur, x = GaussianBlur(p=0.7, kernel=kernel), floats(24, channels, height, width)
    params = blur.draw(24, (height, width), seeded())
    ours = blur.apply(x, params)
    for i in range(24):
        sigma = float(params["sigma"][i])
        wanted = T.gaussian_blur(x[i], [kernel, kernel], [sigma, sigma]) if params["on"][i] else x[i]
        torch.testing.assert_close(ours[i], wanted, atol=3e-6, rtol=0)


@pytest.mark.parametrize("sigma", [0.7, 1.0, 1.5, 2.0])
def test_the_width_means_what_pillows_radius_means(sigma: float) -> None:
    """Pillow's blur, three box filters rounded to whole levels, is nearest to ours at the same width: at half
    the squared distance, or less, of 0.8 or 1.25 times that."""
    x = levels(16)[15:]
    pillow = T.to_pil_image(x[0]).filter(ImageFilter.GaussianBlur(sigma))
    theirs = T.to_dtype(T.pil_to_tensor(pillow), torch.float32, scale=True)

    def distance(width: float) -> float:
        params = Params(1, {"on": torch.tensor([True]), "sigma": torch.tensor([width])})
        return float((GaussianBlur(kernel=21).apply(x, params)[0] - theirs)[:, 6:-6, 6:-6].square().mean())

    assert distance(sigma) < 0.5 * min(distance(0.8 * sigma), distance(1.25 * sigma))


def test_widths_are_distributed_as_torchvisions() -> None:
    """Kolmogorov–Smirnov at 1e-3, fixed seeds."""
    transform = v2.GaussianBlur(13, (0.1, 2.0))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        theirs = [transform.make_params([])["sigma"][0] for _ in range(3_000)]
    ours = GaussianBlur((0.1, 2.0)).draw(20_000, (32, 32), seeded(1))
    assert ks_2samp(theirs, ours["sigma"].numpy()).pvalue > 1e-3
    assert abs(float(ours["on"].float().mean()) - 0.5) < 0.014, "four standard errors"


def test_a_constant_stays_and_the_mean_is_kept_inside() -> None:
    x = torch.full((2, 3, 32, 32), 0.7)
    torch.testing.assert_close(GaussianBlur(p=1.0)(x), x, atol=1e-6, rtol=0)
    x = torch.zeros(1, 1, 32, 32)
    x[..., 16, 16] = 1.0
    assert abs(float(GaussianBlur(p=1.0)(x).sum()) - 1) < 1e-5


def test_a_kernel_beyond_the_image_is_named() -> None:
    with pytest.raises(ValueError, match=r"a kernel of 13 pixels reaches beyond .* a side of 6: choose kernel ≤ 11"):
        GaussianBlur()(floats(4, 1, 6, 6))
