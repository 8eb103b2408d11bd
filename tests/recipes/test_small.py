"""Every method has its small recipe on the bundled set, and each runs; so does the one for small colour images."""

from __future__ import annotations

from pathlib import Path

import pytest

from kontrast import methods
from kontrast.pipeline import run_recipe
from kontrast.recipes import recipe as recipe_of
from kontrast.recipes.small import RECIPES as ALL
from kontrast.train import load, resolve
from tests.recipes.tiny import arrays

RECIPES = {name: recipe for name, recipe in ALL.items() if recipe.data.name == "fashion-mini"}
SHORT = {
    "data": {"limit": 300, "test_limit": 100},
    "train": {"epochs": None, "steps": 2},
    "evaluate": {"protocols": ["knn20"]},
}


def test_one_for_each_method() -> None:
    assert sorted(RECIPES) == sorted(f"{name}-fashion-mini" for name in methods.names())


@pytest.mark.parametrize("name", RECIPES)
def test_it_resolves(name: str) -> None:
    recipe = RECIPES[name]
    assert recipe.name == name == f"{recipe.method.name}-fashion-mini"
    assert recipe.data.name == "fashion-mini"
    assert recipe.about.endswith(".")
    whole = resolve(recipe)
    assert resolve(whole) == whole
    assert whole.method.options == {**methods.options_of(recipe.method.name), **recipe.method.options}


def test_no_two_are_the_same_run() -> None:
    assert len({resolve(recipe).hash for recipe in RECIPES.values()}) == len(RECIPES)


def test_views() -> None:
    views = {recipe.method.name: [view.name for view in recipe.augment.views] for recipe in RECIPES.values()}
    assert views["ressl"] == ["crop-flip", "whole-object"], "the target sees the weak one"
    assert len(views["tcl-self"]) == 3, "two positives per anchor"
    for single in ("sc", "ce", "ce-l2", "ce-fix"):
        assert len(views[single]) == 1
        assert RECIPES[f"{single}-fashion-mini"].head.name == "none", "graf has no projector"


@pytest.mark.parametrize("name", RECIPES)
def test_two_steps_of_it(name: str, tmp_path: Path) -> None:
    quiet = {"out": str(tmp_path), "progress": False, "monitor_every": 0, "log_every": 1}
    run = run_recipe(recipe_of(name, **SHORT, run=quiet))
    assert run.status == "done"
    assert run.path.name.startswith(f"{name}-")
    assert [line["step"] for line in run.metrics()] == [1, 2]
    assert 0 <= run.value("knn20") <= 1
    assert run.result["results"][0]["test_rows"] == 100


@pytest.mark.parametrize("name", ["sce-fashion-mini", "simclr-fashion-mini"])
def test_a_single_epoch_is_long_enough_for_the_warm_up(name: str, tmp_path: Path) -> None:
    """The first thing that anybody tries is train.epochs=1."""
    short = {**SHORT, "train": {"epochs": 1, "batch_size": 100}}
    assert run_recipe(recipe_of(name, **short, run={"out": str(tmp_path), "progress": False})).status == "done"


def test_two_steps_of_the_one_for_colour_images(tmp_path: Path) -> None:
    quiet = {"run.out": str(tmp_path), "run.progress": False, "run.monitor_every": 0}
    few = {"data": arrays(tmp_path, "cifar10"), "data.limit": None, "train.batch_size": 16, "encoder.width": 4}
    short = {"train.epochs": None, "train.steps": 2, "schedule": "constant", "evaluate.protocols": ["knn20"]}
    run = run_recipe(ALL["simclr-cifar10-10k"].override({**quiet, **few, **short}))
    assert run.status == "done"
    assert load(run).feature_dim == 256
