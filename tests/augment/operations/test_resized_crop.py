"""Boxes are drawn as torchvision draws them, and resized as it resizes them."""

from __future__ import annotations

import pytest
import torch
from scipy.stats import ks_2samp
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as T

from kontrast.augment import Compose, HorizontalFlip, RandomResizedCrop
from tests.augment.samples import floats, seeded

NAMES = ("top", "left", "height", "width")


@pytest.mark.parametrize(
    ("height", "width", "size"),
    [
        (32, 32, (32, 32)),
        (40, 28, (32, 32)),
        (48, 56, (16, 20)),
        (28, 28, (28, 28)),
        (96, 70, (72, 72)),
        (32, 32, (96, 96)),
    ],
    ids=str,
)
@pytest.mark.parametrize("channels", [1, 3])
def test_equals_torchvision_at_the_same_boxes(height: int, width: int, size: tuple[int, int], channels: int) -> None:
    """Both sum at most 2·3·4 products of float32 weights that differ by rounding: 2e-6 on values up to 1; the weights
    themselves are at coordinates up to 96, known to 8e-6, which over a step of 1 between neighbours is 1e-5."""
    crop, x = RandomResizedCrop(size, scale=(0.05, 1.0)), floats(40, channels, height, width)
    params = crop.draw(40, (height, width), seeded())
    ours = crop.apply(x, params)
    for i in range(40):
        box = [int(params[name][i]) for name in NAMES]
        torch.testing.assert_close(ours[i], T.resized_crop(x[i], *box, list(size), antialias=True), atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("height", "width", "size"),
    [(40, 28, (32, 32)), (48, 56, (16, 20)), (28, 28, (60, 60)), (96, 70, (72, 72))],
    ids=str,
)
def test_bicubic_is_torchvisions_clamped(height: int, width: int, size: tuple[int, int]) -> None:
    """As a product of matrices up to 64 pixels, and crop by crop beyond; the same rounding as bilinear."""
    crop, x = RandomResizedCrop(size, scale=(0.05, 1.0), interpolation="bicubic"), floats(40, 3, height, width)
    x = x.round()  # black and white: bicubic overshoots at their edges
    params = crop.draw(40, (height, width), seeded())
    ours = crop.apply(x, params)
    boxes = [[int(params[name][i]) for name in NAMES] for i in range(40)]
    theirs = torch.stack(
        [T.resized_crop(x[i], *box, list(size), v2.InterpolationMode.BICUBIC, True) for i, box in enumerate(boxes)]
    )
    assert theirs.min() < -0.01
    assert theirs.max() > 1.01
    torch.testing.assert_close(ours, theirs.clamp(0, 1), atol=2e-5, rtol=0)
    flipped = Compose([crop, HorizontalFlip(p=1.0)])
    draws = flipped.draw(40, (height, width), seeded())  # the crop draws first
    torch.testing.assert_close(flipped.apply(x, draws), ours.flip(-1), atol=2e-5, rtol=0)


def test_another_interpolation_is_refused() -> None:
    with pytest.raises(ValueError, match="interpolation='nearest': must be one of 'bilinear', 'bicubic'"):
        RandomResizedCrop(8, interpolation="nearest")


def test_the_whole_image_stays_as_it_is() -> None:
    x = floats()
    assert torch.equal(RandomResizedCrop(32, scale=(1.0, 1.0), ratio=(1.0, 1.0))(x), x)


def torchvision_boxes(n: int, size: tuple[int, int], **options) -> dict[str, list[int]]:
    transform, empty = v2.RandomResizedCrop(32, **options), [torch.empty(3, *size)]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        drawn = [transform.make_params(empty) for _ in range(n)]
    return {name: [d[name] for d in drawn] for name in NAMES}


@pytest.mark.parametrize("size", [(32, 32), (50, 100)], ids=str)
@pytest.mark.parametrize("scale", [(0.2, 1.0), (0.08, 1.0)], ids=str)
def test_boxes_are_distributed_as_torchvisions(size: tuple[int, int], scale: tuple[float, float]) -> None:
    """Kolmogorov–Smirnov on 4,000 against 20,000 draws with fixed seeds; at 1e-3 it finds a shift of the distribution
    function of 0.034, and chance would fail one of these twenty comparisons in 50 choices of the seeds."""
    theirs = torchvision_boxes(4_000, size, scale=scale)
    ours = RandomResizedCrop(32, scale=scale).draw(20_000, size, seeded(1))
    for name in NAMES:
        assert ks_2samp(theirs[name], ours[name].numpy()).pvalue > 1e-3, name
    area = [h * w for h, w in zip(theirs["height"], theirs["width"], strict=True)]
    assert ks_2samp(area, (ours["height"] * ours["width"]).numpy()).pvalue > 1e-3


def test_the_comparison_can_fail() -> None:
    theirs = torchvision_boxes(4_000, (32, 32), scale=(0.2, 1.0))
    ours = RandomResizedCrop(32, scale=(0.15, 1.0)).draw(20_000, (32, 32), seeded(1))
    assert ks_2samp(theirs["height"], ours["height"].numpy()).pvalue < 1e-3


@pytest.mark.parametrize("size", [(10, 40), (40, 10)], ids=str)
def test_central_crop_where_none_fits(size: tuple[int, int]) -> None:
    theirs = torchvision_boxes(1, size, scale=(1.0, 1.0))
    ours = RandomResizedCrop(32, scale=(1.0, 1.0)).draw(5, size, seeded())
    assert {name: ours[name].tolist() for name in NAMES} == {name: 5 * theirs[name] for name in NAMES}


def test_boxes_lie_inside() -> None:
    p = RandomResizedCrop(8, scale=(0.01, 1.0)).draw(5_000, (9, 13), seeded())
    assert p["height"].min() >= 1
    assert p["width"].min() >= 1
    assert (p["top"] + p["height"]).max() == 9, "the last row is reached"
    assert (p["left"] + p["width"]).max() == 13
    assert p["top"].min() == p["left"].min() == 0
