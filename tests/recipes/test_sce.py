"""SCE's recipes: small, medium and ImageNet-100, with MoCo and ReSSL in the same setting."""

from __future__ import annotations

import pytest

from kontrast.recipes.published import SCE, SCE_LAMBDA
from kontrast.recipes.sce import RECIPES, TITLES

BEST = {"cifar10": (0.2, 0.1), "cifar100": (0.1, 0.08), "stl10": (0.1, 0.04), "tiny-imagenet": (0.1, 0.07)}


def test_three_methods_on_every_set() -> None:
    assert set(RECIPES) == {f"{method}-{data}" for method in ("sce", "moco", "ressl") for data in TITLES}


@pytest.mark.parametrize("data", SCE)
def test_supplement_section_e(data: str) -> None:
    recipe = RECIPES[f"sce-{data}"]
    medium = data in ("stl10", "tiny-imagenet")
    assert recipe.method.options == {
        "temperature": BEST[data][0],
        "target_temperature": BEST[data][1],
        "contrastive_weight": 0.5,
        "queue": 16384 if medium else 4096,
        "momentum": 0.996 if medium else 0.99,
        "momentum_schedule": "constant",
        "shuffle_keys": True,
        "key_parts": 8,
    }
    assert recipe.head.model_dump() == {"name": "sce", "hidden": 512, "out": 256}
    assert recipe.optim.model_dump() == {"name": "sgd", "lr": 0.06, "momentum": 0.9, "weight_decay": 5e-4}
    assert recipe.schedule.model_dump() == {"name": "warmup-cosine", "warmup_epochs": 5}
    assert (recipe.train.epochs, recipe.train.batch_size) == (200, 256)
    assert [view.name for view in recipe.augment.views] == ["weak", "strong"], "the target sees the weak one"
    assert recipe.encoder.model_dump() == {"name": "resnet18", "stem": "small"}, "at 64 and 96 pixels too"
    assert recipe.data.split == ("unlabelled" if data == "stl10" else "train")
    assert all(f"{value:.2f} at {target:g}" in recipe.about for (_, target), value in SCE[data].items())


@pytest.mark.parametrize("data", TITLES)
def test_baselines_differ_in_the_method_alone(data: str) -> None:
    sce = RECIPES[f"sce-{data}"]
    for method in ("moco", "ressl"):
        other = RECIPES[f"{method}-{data}"]
        differ = {"name", "about", "method"}
        assert other.model_dump(exclude=differ) == sce.model_dump(exclude=differ)
        own = {"temperature", "target_temperature", "contrastive_weight", "predictor"}
        rest = [{k: v for k, v in r.method.options.items() if k not in own} for r in (other, sce)]
        assert rest[0] == rest[1]
    moco, ressl = (RECIPES[f"{method}-{data}"].method.options for method in ("moco", "ressl"))
    assert moco["temperature"] == sce.method.options["temperature"], "SCE with λ = 1"
    assert (ressl["temperature"], ressl["target_temperature"]) == (0.1, 0.04)


def test_imagenet100_is_imagenet_scaled() -> None:
    recipe = RECIPES["sce-imagenet100"]
    assert recipe.optim.options["lr"] == pytest.approx(0.3 * recipe.train.batch_size / 256, rel=1e-12)
    scale = 4096 // recipe.train.batch_size
    assert recipe.method.options["queue"] == 65536 // scale
    assert recipe.method.options["momentum_schedule"] == "cosine"
    assert recipe.method.options["symmetric"]
    assert recipe.method.options["predictor"] == "sce-predictor"
    assert [view.options["view"] for view in recipe.augment.views] == [1, 2]
    assert all(f"{value:g} at λ = {weight:g}" in recipe.about for weight, value in SCE_LAMBDA["imagenet100"].items())
    assert "second-hand" in recipe.about
