"""Views as lists of operations."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from kontrast import augment
from kontrast.augment import Compose, Normalize
from tests.augment.samples import floats, seeded


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
    (written,) = augment.written_out([name])
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
    assert augment.written_out(short) == augment.written_out(long)
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
        (["color_jitter"], "did you mean 'color-jitter'"),
        ([{"name": "flip", "q": 0.5}], "operation 'flip' has no option 'q'"),
        ([{"name": "blur", "sigm": [1, 2]}], "has no option 'sigm'; did you mean 'sigma'"),
        ([{"name": "crop", "size": 20}], "the size is the data's"),
        ([{"name": "flip", "p": 2}], "operation 'flip': p must be a number between 0 and 1, got 2"),
        ([{"name": "resized-crop", "ratio": 1}], "operation 'resized-crop': ratio must be a pair"),
        ([{"name": "color-jitter", "hue": 0.7}], "hue must be a number between 0 and 0.5"),
        ([{"name": "blur", "kernel": 4}], "kernel must be an odd number"),
        (["flip", "normalize"], "normalisation is added to every view by itself"),
        (["weak"], "that is a preset"),
        ([], "expected a preset, or a list of operations"),
        ([3], "an operation is 3; expected a name"),
        ([{"p": 0.5}], "expected a name"),
        (["flip", "gaussian-noise"], "'gaussian-noise' is for vectors and 'flip' for images"),
    ],
)
def test_errors(steps: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        augment.view(steps, size=32)


def test_a_crop_needs_a_size() -> None:
    with pytest.raises(ValueError, match="operation 'crop' needs size="):
        augment.view(["crop"])
