"""Graf et al.'s recipes: three methods on CIFAR, with and without augmentation, and on random labels."""

from __future__ import annotations

import pytest

from kontrast.recipes.graf import RECIPES
from kontrast.recipes.published import GRAF

METHODS = ("ce", "ce-fix", "sc")


@pytest.mark.parametrize("data", GRAF)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("suffix", ["", "-plain", "-random-labels"])
def test_protocol(method: str, data: str, suffix: str) -> None:
    recipe = RECIPES[f"{method}-{data}{suffix}"]
    assert recipe.method.name == method
    assert (recipe.train.epochs, recipe.train.steps, recipe.train.batch_size) == (None, 100_000, 256)
    assert recipe.train.sampler == "with-replacement"
    assert [view.name for view in recipe.augment.views] == ["none" if suffix else "crop-flip"]
    assert recipe.encoder.model_dump() == {"name": "resnet18", "stem": "small"}
    assert recipe.head.name == "none"
    assert recipe.optim.model_dump() == {
        "name": "sgd",
        "lr": 0.1,
        "momentum": 0.9,
        "weight_decay": 1e-4,
        "nesterov": False,
    }
    assert recipe.schedule.model_dump() == {"name": "power", "exponent": 5.0}
    assert recipe.method.options.get("temperature") == (0.1 if method == "sc" else None)


@pytest.mark.parametrize("data", GRAF)
@pytest.mark.parametrize("method", METHODS)
def test_claims(method: str, data: str) -> None:
    for augmented in (True, False):
        about = RECIPES[f"{method}-{data}" + ("" if augmented else "-plain")].about
        error = GRAF[data].get((method, augmented))
        assert "not published" in about if error is None else f"error {error:g} %" in about
    random = RECIPES[f"{method}-{data}-random-labels"]
    assert ("more than linearly" if method == "sc" else "about linearly") in random.about


@pytest.mark.parametrize("data", GRAF)
def test_random_labels(data: str) -> None:
    recipe = RECIPES[f"sc-{data}-random-labels"]
    assert (recipe.data.noise, recipe.data.noise_kind) == (1.0, "changed")
    assert recipe.train.fit_every == 500
    assert recipe.evaluate.protocols[0].options == {"iterations": 1000}
    assert recipe.override(["data.noise=0.3"]).data.noise == 0.3
    assert len(RECIPES) == 18
