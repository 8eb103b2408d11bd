"""Recipes in the papers' words: every option is told, and what is told changes with it."""

from __future__ import annotations

import pytest

from kontrast import methods, recipes
from kontrast.recipes.wording import number, wording
from kontrast.train import resolve


def told(name: str, *changes: str) -> dict[str, str]:
    return wording(resolve(recipes.find(name).override(list(changes))))


@pytest.mark.parametrize("name", recipes.names())
def test_every_recipe_has_words_for_every_topic(name: str) -> None:
    found = told(name)
    assert list(found) == ["data", "views", "network", "method", "training", "optimiser", "evaluation"]
    for text in found.values():
        assert text
        assert "None" not in text
        assert "\n" not in text


@pytest.mark.parametrize(
    ("name", "topic", "words"),
    [
        ("instance-cifar10", "training", "200 epochs, batch 128"),
        ("instance-cifar10", "optimiser", "learning rate 0.03, × 0.1 at epochs 160 and 190, weight decay 5e-4"),
        ("instance-hard-cifar10", "method", "temperature τ = 0.6, the 4,095 nearest negatives"),
        ("instance-cifar10", "evaluation", "100 epochs, learning rate 30, × 0.2 after epochs 40, 60 and 80"),
        ("tcl-cifar10", "optimiser", "learning rate 0.1, along a cosine to 1e-4 set once an epoch one epoch late"),
        ("tcl-cifar10-batch64", "optimiser", "learning rate 9e-3"),
        ("tcl-cifar10", "network", "ResNet-50, 3×3 stem of stride 1 without pooling; projector d–d–128"),
        ("tcl-cifar10", "method", "k1 = 5,000, k2 = 1"),
        ("tcl-self-cifar10", "views", "three views, each: "),
        ("tcl-self-cifar10", "optimiser", "reached linearly from 3e-5 over 10 epochs, then along a cosine to 0"),
        ("sce-cifar100", "method", "temperature τ = 0.1, target temperature τ_m = 0.08, λ = 0.5"),
        ("sce-cifar100", "method", "queue of 4,096 keys, momentum encoder 0.99, constant"),
        ("sce-imagenet100", "method", "both directions, predictor sce-predictor"),
        ("sce-imagenet100", "views", "solarise p .2 (view 1) | "),
        ("sce-stl10", "data", "its unlabelled images"),
        ("sce-cifar10", "evaluation", "sce (setting small)"),
        ("sc-cifar10", "training", "100,000 steps, batch 256, drawn with replacement"),
        ("sc-cifar10", "optimiser", "× ((T − i)/T)^5"),
        ("sc-cifar10", "network", "no projector"),
        ("sc-cifar10-random-labels", "data", "100 % of the labels replaced, always by another"),
        ("sc-cifar10-random-labels", "training", "until the training set is fitted (asked every 500 steps)"),
    ],
)  # fmt: skip
def test_the_papers_units(name: str, topic: str, words: str) -> None:
    assert words in told(name)[topic]


def test_words_follow_the_recipe() -> None:
    found = told("instance-cifar10", "method.temperature=0.07", "schedule=constant", "train.epochs=3", "optim.lr=0.5")
    assert "τ = 0.07" in found["method"]
    assert "learning rate 0.5, constant" in found["optimiser"]
    assert found["training"].startswith("3 epochs")
    assert "flip True" in told("instance-cifar10", "augment.views.0.flip=true")["views"]


def test_what_the_loss_does_not_look_at_is_not_told() -> None:
    assert "τ" not in told("instance-simple-cifar10")["method"]
    assert "nearest" not in told("instance-simple-cifar10")["method"]
    assert "nearest" in told("instance-hard-simple-cifar10")["method"]


@pytest.mark.parametrize("method", methods.names())
def test_every_number_of_a_method_is_told(method: str) -> None:
    recipe = resolve(recipes.find(f"{method}-fashion-mini"))
    unseen = {"hard_negatives"} if recipe.method.options.get("loss") == "ordinary" else set()
    for option, value in recipe.method.options.items():
        if isinstance(value, int | float) and not isinstance(value, bool) and option not in unseen:
            assert number(value) in wording(recipe)["method"], option
