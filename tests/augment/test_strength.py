"""Every preset for images takes the five strengths; None keeps what is published."""

from __future__ import annotations

from typing import Any

import pytest

from kontrast import augment
from kontrast.augment import (
    AutoAugment,
    ColorJitter,
    GaussianBlur,
    HorizontalFlip,
    Operation,
    RandomCrop,
    RandomGrayscale,
    RandomResizedCrop,
    Solarize,
)
from kontrast.vocabulary import STRENGTHS
from tests.augment.samples import floats, seeded

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
        ({"jitter": [0.4, 0.4, 0.4, 0.6]}, "jitter's hue must be a number between 0 and 0.5"),
        ({"jitter": True}, "jitter must be a number"),
        ({"grayscale": 2}, "grayscale must be a number between 0 and 1"),
        ({"grayscale": True}, "grayscale must be a number between 0 and 1"),
        ({"blur": "much"}, "blur must be a number between 0 and 1"),
        ({"flip": 1.5}, "flip must be a number between 0 and 1"),
        ({"jiter": 0.4}, "preset 'weak' has no option 'jiter'; did you mean 'jitter'"),
    ],
)
def test_errors(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        made("weak", **options)


def test_a_crop_added_to_none_needs_a_size() -> None:
    with pytest.raises(ValueError, match="preset 'none' needs size="):
        augment.preset("none", scale=0.5)
