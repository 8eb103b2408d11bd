"""Tests of kontrast.augment.presets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from kontrast import augment
from kontrast.augment import (
    AutoAugment,
    ColorJitter,
    Compose,
    FeatureDropout,
    GaussianBlur,
    GaussianNoise,
    HorizontalFlip,
    Normalize,
    Operation,
    RandomCrop,
    RandomGrayscale,
    RandomResizedCrop,
    Solarize,
)
from kontrast.registry import STRENGTHS
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
        (lambda: augment.preset("wang-lui", size=32), "did you mean 'wang-liu'"),
        (lambda: augment.preset("weak"), "preset 'weak' needs size="),
        (
            lambda: augment.preset("vector-noise", blur=0.5),
            "preset 'vector-noise' has no option 'blur'. It has noise, dropout",
        ),
        (lambda: augment.preset("simaugment", size=32, blurr=True), "no option 'blurr'; did you mean 'blur'"),
        (lambda: augment.preset("weak", size=32, mean=0.5), "mean=0.5, std=None: must both be set"),
        (lambda: augment.preset("weak", size=-3), "size must be"),
        (
            lambda: augment.preset("weak", size=32, mean=0.5, std=(0.2, 0.0, 0.2)),
            "std must be above 0 in every channel",
        ),
        (lambda: augment.preset("sce-imagenet", size=224, view=3), "view is 3"),
        (lambda: augment.describe("q"), "no preset 'q'"),
    ],
)
def test_preset_errors(call, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        call()


OF_IMAGES = [name for name in augment.NAMES if name != "vector-noise"]
ORDER = [RandomResizedCrop, HorizontalFlip, AutoAugment, ColorJitter, RandomGrayscale, GaussianBlur, Solarize]
ALL = {"scale": [0.5, 0.9], "jitter": 0.2, "grayscale": 0.3, "blur": 0.4, "flip": 0.1}


def made(name: str, **options: Any) -> tuple[Operation, ...]:
    return augment.preset(name, size=32, **options).operations


@pytest.mark.parametrize("name", OF_IMAGES)
def test_none_is_as_published(name: str) -> None:
    assert made(name, **dict.fromkeys(STRENGTHS)) == made(name)
    own = augment.options_of(name)
    assert {key: own[key] for key in STRENGTHS if own[key] is not None}.items() <= {
        "blur": False,
        "flip": False,
    }.items()


@pytest.mark.parametrize("name", OF_IMAGES)
def test_every_strength_works_in_every_preset(name: str) -> None:
    found = made(name, **ALL)
    kinds = [type(operation) for operation in found]
    assert kinds == sorted(kinds, key=ORDER.index), "each at its usual place"
    by_kind = dict(zip(kinds, found, strict=True))
    assert by_kind[RandomResizedCrop] == RandomResizedCrop(32, scale=(0.5, 0.9))
    own = [o.p for o in made(name) if isinstance(o, ColorJitter)]
    assert by_kind[ColorJitter] == ColorJitter(0.2, 0.2, 0.2, 0.05, p=own[0] if own else 0.8)
    assert by_kind[RandomGrayscale] == RandomGrayscale(0.3)
    assert by_kind[GaussianBlur] == GaussianBlur((0.1, 2.0), p=0.4)
    assert by_kind[HorizontalFlip] == HorizontalFlip(0.1)
    assert not any(isinstance(operation, RandomCrop) for operation in found)
    assert augment.preset(name, size=32, **ALL)(floats(4, 3, 32, 32), seeded()).shape == (4, 3, 32, 32)


@pytest.mark.parametrize("name", OF_IMAGES)
def test_zero_switches_off(name: str) -> None:
    found = made(name, jitter=0, grayscale=0, blur=0, flip=0)
    left = (RandomCrop, RandomResizedCrop, AutoAugment, Solarize)
    assert found == tuple(operation for operation in made(name) if isinstance(operation, left))


def test_true_and_false_are_the_presets_own_probability() -> None:
    assert made("sce-imagenet", view=2, blur=True) == made("sce-imagenet", view=2)
    assert GaussianBlur((0.1, 2.0), p=0.5) in made("weak", blur=True)
    assert made("strong", blur=False) == made("simaugment")
    assert made("simaugment", blur=0.3)[-1] == GaussianBlur((0.1, 2.0), p=0.3)
    assert made("wang-liu", flip=0.3)[1] == HorizontalFlip(0.3)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"scale": 0}, r"scale must be a pair \[low, high\]"),
        ({"scale": [0.5, 1.5]}, "0 < low ≤ high ≤ 1"),
        ({"scale": [0.9, 0.5]}, "0 < low ≤ high ≤ 1"),
        ({"scale": "large"}, "scale must be a pair"),
        ({"jitter": -1}, "jitter must be a number from 0 to 2"),
        ({"jitter": [0.4, 0.4]}, r"\[brightness, contrast, saturation, hue\]"),
        (
            {"jitter": [0.4, 0.4, 0.4, 0.6]},
            "jitter's hue=0.6: must be a finite number of at least 0 and of at most 0.5",
        ),
        ({"jitter": True}, "jitter must be a number"),
        ({"grayscale": 2}, "grayscale=2: must be a finite number of at least 0 and of at most 1"),
        ({"grayscale": True}, "grayscale=True: must be a finite number"),
        ({"blur": "much"}, "blur='much': must be a finite number"),
        ({"flip": 1.5}, "flip=1.5: must be a finite number"),
        ({"jiter": 0.4}, "preset 'weak' has no option 'jiter'; did you mean 'jitter'"),
    ],
)
def test_strength_errors(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        made("weak", **options)


def test_a_crop_added_to_none_needs_a_size() -> None:
    with pytest.raises(ValueError, match="preset 'none' needs size="):
        augment.preset("none", scale=0.5)


def test_a_list_is_the_preset_of_the_same_operations() -> None:
    steps: list[Any] = [
        {"name": "resized-crop", "scale": [0.2, 1.0]},
        "flip",
        {"name": "color-jitter", "brightness": 0.4, "contrast": 0.4, "saturation": 0.4, "hue": 0.1, "p": 0.8},
        {"name": "grayscale", "p": 0.2},
        {"name": "blur", "sigma": [0.1, 2]},
    ]
    mine, preset = (augment.view(v, size=32, mean=0.5, std=0.25) for v in (steps, "strong"))
    assert repr(mine) == repr(preset).replace("sigma=(0.1, 2.0)", "sigma=(0.1, 2)")
    x = floats(8, 3, 32, 32)
    assert torch.equal(mine(x, seeded()), preset(x, seeded()))


@pytest.mark.parametrize("name", augment.OPERATIONS)
def test_every_operation_by_its_name_alone(name: str) -> None:
    vectors = augment.kind_of([name]) == "vector"
    made = augment.view([name], size=32, mean=0.5, std=0.25)
    x = torch.rand(4, 7, generator=seeded()) if vectors else floats(4, 3, 32, 32)
    assert made(x, seeded()).shape == x.shape
    assert isinstance(made.operations[0 if vectors else -1], Normalize)
    (written,) = augment.expand_options([name])
    assert isinstance(written, dict)
    assert list(written) == ["name", *augment.operation_options(name)]
    assert repr(augment.view([written], size=32)) == repr(augment.view([name], size=32))
    assert len(augment.describe_operation(name)) > 20


def test_written_out_is_one_form_whatever_was_left_out() -> None:
    short, long = (
        ["flip", {"name": "resized-crop", "scale": 0.5}],
        [
            {"name": "flip", "p": 0.5},
            {"name": "resized-crop", "scale": [0.5, 1], "ratio": [0.75, 4 / 3]},
        ],
    )
    assert augment.expand_options(short) == augment.expand_options(long)
    assert augment.title(short) == "flip, resized-crop"


def test_the_crop_is_taken_at_decoding_where_it_is_first() -> None:
    crop, rest = augment.at_decoding(augment.view([{"name": "resized-crop", "scale": 0.5}, "flip"], size=16))
    assert crop(torch.zeros(3, 40, 30, dtype=torch.uint8), seed=0).shape == (3, 16, 16)
    assert isinstance(rest, Compose)
    assert repr(rest) == "Compose([HorizontalFlip(p=0.5)])"
    with pytest.raises(ValueError, match="only a RandomResizedCrop"):
        augment.at_decoding(augment.view(["flip", "resized-crop"], size=16))


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        (["resize-crop"], "no operation 'resize-crop'; did you mean 'resized-crop'"),
        (["colour-jitter"], "did you mean 'color-jitter'"),
        ([{"name": "flip", "q": 0.5}], "operation 'flip' has no option 'q'"),
        ([{"name": "blur", "sigm": [1, 2]}], "has no option 'sigm'; did you mean 'sigma'"),
        ([{"name": "crop", "size": 20}], "the size is the data's"),
        ([{"name": "flip", "p": 2}], "operation 'flip': p=2: must be a finite number of at least 0 and of at most 1"),
        ([{"name": "resized-crop", "ratio": 1}], "operation 'resized-crop': ratio must be a pair"),
        ([{"name": "color-jitter", "hue": 0.7}], "hue=0.7: must be a finite number of at least 0 and of at most 0.5"),
        ([{"name": "blur", "kernel": 4}], "kernel must be an odd number"),
        (["flip", "normalize"], "normalisation is added to every view by itself"),
        (["weak"], "that is a preset"),
        ([], "must be a preset, or a list of operations"),
        ([3], "operation=3: must be a name"),
        ([{"p": 0.5}], "must be a name"),
        (["flip", "gaussian-noise"], "'gaussian-noise' is for vectors and 'flip' for images"),
    ],
)
def test_list_errors(steps: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        augment.view(steps, size=32)


def test_a_crop_needs_a_size() -> None:
    with pytest.raises(ValueError, match="operation 'crop' needs size="):
        augment.view(["crop"])
