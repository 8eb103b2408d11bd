"""Wang & Liu's recipes: four losses on four sets, settings and claims as FACTS of the paper have them."""

from __future__ import annotations

import pytest

from kontrast.recipes.published import WANG_LIU, WANG_LIU_MAIN
from kontrast.recipes.wang_liu import CLAIMS, RECIPES, TITLES

LOSSES = ("ordinary", "hard", "simple", "hard-simple")


def name_of(loss: str, data: str) -> str:
    return f"instance-{data}" if loss == "ordinary" else f"instance-{loss}-{data}"


def test_every_loss_on_every_set() -> None:
    assert set(RECIPES) == set(CLAIMS) == {name_of(loss, data) for loss in LOSSES for data in TITLES}


@pytest.mark.parametrize("data", TITLES)
@pytest.mark.parametrize("loss", LOSSES)
def test_protocol(loss: str, data: str) -> None:
    recipe = RECIPES[name_of(loss, data)]
    large = data == "imagenet100"
    assert (recipe.encoder.name, recipe.encoder.options["stem"]) == (
        ("resnet50", "large") if large else ("resnet18", "small")
    )
    assert recipe.head.model_dump() == {"name": "wang-liu", "out": 128}
    assert len(recipe.augment.views) == 1
    assert (recipe.train.epochs, recipe.train.batch_size) == (200, 128)
    assert recipe.schedule.options == {"milestones": [160, 190], "factor": 0.1}
    assert recipe.optim.model_dump() == {
        "name": "sgd",
        "lr": 0.03,
        "momentum": 0.9,
        "weight_decay": 1e-4 if large else 5e-4,
    }
    assert recipe.method.options["loss"] == loss
    assert recipe.method.options["bank_momentum"] == 0.5
    assert recipe.method.options.get("hard_negatives") == (4095 if "hard" in loss else None)


@pytest.mark.parametrize("data", TITLES)
def test_claims_list_the_whole_column(data: str) -> None:
    for loss in ("ordinary", "hard"):
        recipe, column = RECIPES[name_of(loss, data)], WANG_LIU[data][loss]
        assert column[recipe.method.options["temperature"]] == max(column.values())
        assert all(f"{value:.2f} at {temperature:g}" in recipe.about for temperature, value in column.items())
    for loss in ("simple", "hard-simple"):
        accuracy, uniformity, tolerance = WANG_LIU_MAIN[data][loss, None]
        for number in (f"{accuracy:.2f} %", f"−uniformity {uniformity:g}", f"tolerance {tolerance:g}"):
            assert number in RECIPES[name_of(loss, data)].about
