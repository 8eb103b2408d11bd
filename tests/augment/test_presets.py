"""Every preset has the parameters its paper or published code has."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from kontrast import augment
from kontrast.augment import (
    AutoAugment,
    ColorJitter,
    FeatureDropout,
    GaussianBlur,
    GaussianNoise,
    HorizontalFlip,
    Normalize,
    RandomCrop,
    RandomGrayscale,
    RandomResizedCrop,
    Solarize,
)
from tests.augment.samples import floats, seeded

CROP, FLIP, GREY = RandomResizedCrop(32, scale=(0.2, 1.0)), HorizontalFlip(0.5), RandomGrayscale(0.2)
JITTER, BLUR = ColorJitter(0.4, 0.4, 0.4, 0.1, p=0.8), GaussianBlur((0.1, 2.0), p=0.5)
EXPECTED = {
    "simaugment": [CROP, FLIP, JITTER, GREY],
    "simclr": [RandomResizedCrop(32, scale=(0.08, 1.0)), FLIP, ColorJitter(0.8, 0.8, 0.8, 0.2, p=0.8), GREY, BLUR],
    "autoaugment": [RandomCrop(32, padding=4), FLIP, AutoAugment()],
    "weak": [CROP, FLIP],
    "strong": [CROP, FLIP, JITTER, GREY, BLUR],
    "sce-imagenet": [CROP, FLIP, ColorJitter(0.4, 0.4, 0.2, 0.1, p=0.8), GREY, GaussianBlur((0.1, 2.0), p=1.0)],
    "wang-liu": [CROP, ColorJitter(0.4, 0.4, 0.4, 0.4, p=1.0), GREY],
    "wang-liu-imagenet": [CROP, FLIP, JITTER, GREY, BLUR],
    "crop-flip": [RandomCrop(32, padding=4), FLIP],
    "vector-noise": [GaussianNoise(0.1)],
    "whole-object": [RandomCrop(32, padding=4), FLIP, AutoAugment()],
    "none": [],
}


@pytest.mark.parametrize("name", augment.NAMES)
def test_parameters(name: str) -> None:
    assert list(augment.preset(name, size=32).operations) == EXPECTED[name]
    assert len(augment.describe(name)) > 20


def test_options() -> None:
    assert augment.preset("simaugment", size=32, blur=True).operations[-1] == BLUR
    assert augment.preset("wang-liu", size=32, flip=True).operations[1] == FLIP
    assert augment.preset("crop-flip", size=28, padding=2).operations[0] == RandomCrop(28, padding=2)
    assert augment.preset("vector-noise", noise=0.5, dropout=0.2).operations == (
        GaussianNoise(0.5),
        FeatureDropout(0.2),
    )
    second = augment.preset("sce-imagenet", size=224, view=2).operations
    assert second[-2:] == (GaussianBlur((0.1, 2.0), p=0.1), Solarize(0.5, p=0.2))


def test_vectors_are_standardised_before_the_noise() -> None:
    """Noise of 0.1 is a tenth of each feature's standard deviation, whatever its units (4,000 draws a feature: four
    standard errors of a standard deviation are 4.5 %); dropped entries are the mean."""
    mean, std = np.array([5.0, -300.0, 0.02]), np.array([2.0, 1000.0, 0.001])
    x = torch.from_numpy(mean + std * np.random.default_rng(0).standard_normal((4_000, 3))).float()
    standardised = augment.preset("none", mean=mean, std=std)(x)
    expected = torch.from_numpy((x.numpy() - mean) / std).float()
    torch.testing.assert_close(standardised, expected, atol=1e-5, rtol=0)  # float32's 6e-8 of 0.02, over a std of 0.001
    noisy = augment.preset("vector-noise", noise=0.1, mean=mean, std=std)(x, seeded())
    torch.testing.assert_close((noisy - standardised).std(0), torch.full((3,), 0.1), rtol=0.045, atol=0)
    first = augment.preset("vector-noise", noise=0.0, dropout=1.0, mean=mean, std=std)
    assert isinstance(first.operations[0], Normalize)
    assert not first(x, seeded()).any()


def test_normalisation_comes_last() -> None:
    last = augment.preset("strong", size=32, mean=(0.1, 0.2, 0.3), std=0.5).operations[-1]
    assert isinstance(last, Normalize)
    assert (last.mean, last.std) == ((0.1, 0.2, 0.3), (0.5,))
    x = floats()
    torch.testing.assert_close(augment.preset("none", mean=0.5, std=0.5)(x), 2 * x - 1, atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", [n for n in augment.NAMES if n != "vector-noise"])
def test_grey_images_of_28_pixels(name: str) -> None:
    x = floats(8, 1, 28, 28)
    assert augment.preset(name, size=28, mean=0.5, std=0.5)(x, seeded()).shape == x.shape


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: augment.preset("stron", size=32), "no preset 'stron'; did you mean 'strong'"),
        (lambda: augment.preset("wang_liu", size=32), "did you mean 'wang-liu'"),
        (lambda: augment.preset("weak"), "preset 'weak' needs size="),
        (
            lambda: augment.preset("vector-noise", blur=0.5),
            "preset 'vector-noise' has no option 'blur'. It has noise, dropout",
        ),
        (lambda: augment.preset("simaugment", size=32, blurr=True), "no option 'blurr'; did you mean 'blur'"),
        (lambda: augment.preset("weak", size=32, mean=0.5), "mean is 0.5 and std None: give both"),
        (lambda: augment.preset("weak", size=-3), "size must be"),
        (
            lambda: augment.preset("weak", size=32, mean=0.5, std=(0.2, 0.0, 0.2)),
            "std must be above 0 in every channel",
        ),
        (lambda: augment.preset("sce-imagenet", size=224, view=3), "view is 3"),
        (lambda: augment.describe("q"), "no preset 'q'"),
    ],
)
def test_errors(call, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        call()
