"""What a checkpoint's images went through, as timm, torchvision and a card say it."""

from __future__ import annotations

import math
from typing import Any

import pytest

from kontrast import models
from tests.models.encoders.test_timm import needs_timm


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"size": 0}, "size=0: must be a number of pixels"),
        ({"size": True}, "size=True"),
        ({"mean": ()}, r"mean=\(\): must be a number for each channel"),
        ({"mean": (math.nan,) * 3}, "mean="),
        ({"std": (0.5,)}, "std=.*one for each of the 3 channels"),
        ({"std": (0.5, 0.0, 0.5)}, "std=.*must be numbers above 0"),
        ({"interpolation": "nearest"}, "interpolation='nearest': must be one of bilinear, bicubic"),
        ({"crop": 0.0}, "crop=0.0: must be a share"),
        ({"crop": 1.1}, "crop=1.1"),
    ],
)
def test_values_outside_their_range(change: dict[str, Any], says: str) -> None:
    good: dict[str, Any] = {"size": 8, "mean": (0.5,) * 3, "std": (0.5,) * 3}
    models.Preprocessing(**good)
    with pytest.raises(ValueError, match=says):
        models.Preprocessing(**{**good, **change})


def test_grey_has_the_average_of_the_channels_and_the_same_grey_becomes_rgb() -> None:
    rgb = models.Preprocessing(8, (0.1, 0.2, 0.6), (0.2, 0.3, 0.4), "bicubic", 0.5)
    grey = rgb.with_channels(1)
    assert grey.mean == pytest.approx((0.3,))
    assert grey.std == pytest.approx((0.3,))
    assert (grey.size, grey.interpolation, grey.crop) == (8, "bicubic", 0.5)
    assert grey.with_channels(3).mean == grey.mean * 3
    assert rgb.with_channels(3) is rgb


def test_a_card_without_interpolation_is_bilinear_and_vectors_have_none() -> None:
    card = {"kind": "image", "shape": [3, 32, 32], "mean": [0.5] * 3, "std": [0.2] * 3, "crop": 0.875}
    assert models.Preprocessing.of_card(card) == models.Preprocessing(32, (0.5,) * 3, (0.2,) * 3, "bilinear", 0.875)
    bicubic = models.Preprocessing.of_card({**card, "interpolation": "bicubic"})
    assert bicubic is not None
    assert bicubic.interpolation == "bicubic"
    assert models.Preprocessing.of_card({"kind": "vector", "shape": [3], "mean": [0], "std": [1]}) is None
    assert models.Preprocessing.of_card({**card, "shape": [3, 32, 40]}) is None


@needs_timm
def test_timms_own_evaluation_does_the_same() -> None:
    """resolve_data_config is what timm's validate.py reads."""
    import timm

    for name in ("tf_efficientnet_lite0.in1k", "resnet18.a1_in1k", "vit_tiny_patch16_224.augreg_in21k_ft_in1k"):
        weights = models.find_weights(f"timm/{name}", True)
        assert weights is not None
        how = weights.preprocessing
        assert how is not None
        config = timm.data.resolve_data_config({}, pretrained_cfg=timm.get_pretrained_cfg(name).to_dict())
        expected = tuple(config[key] for key in ("mean", "std", "interpolation", "crop_pct"))
        assert (how.mean, how.std, how.interpolation, how.crop) == expected
        assert config["input_size"][1:] == (how.size, how.size)


def test_torchvisions_own_transforms_do_the_same() -> None:
    import torch
    import torchvision
    from PIL import Image

    from kontrast.data import CentreCrop
    from kontrast.data.images import from_pil
    from tests.data.pictures import noise

    weights = models.find_weights("resnet50", "IMAGENET1K_V2")
    assert weights is not None
    how = weights.preprocessing
    assert how is not None
    assert (how.size, how.crop, how.interpolation) == (224, 224 / 232, "bilinear")
    image = Image.fromarray(noise(300, 260))
    theirs = torchvision.models.ResNet50_Weights.IMAGENET1K_V2.transforms()(image)
    mine = CentreCrop(how.size, how.crop, how.interpolation)(from_pil(image)).float() / 255
    mine = (mine - torch.tensor(how.mean).view(3, 1, 1)) / torch.tensor(how.std).view(3, 1, 1)
    # They resize the whole image and crop whole pixels, ours crops first: half a pixel apart at most.
    assert float((theirs - mine).abs().mean()) < 0.05
    other = CentreCrop(how.size, 0.7)(from_pil(image)).float() / 255
    other = (other - torch.tensor(how.mean).view(3, 1, 1)) / torch.tensor(how.std).view(3, 1, 1)
    assert float((theirs - other).abs().mean()) > 0.1, "another crop would be seen"
