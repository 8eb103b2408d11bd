"""TCL's recipes: the supplement's settings, the stability studies, the baselines, and runs without labels."""

from __future__ import annotations

import pytest

from kontrast.recipe import Recipe
from kontrast.recipes import tcl
from kontrast.recipes.published import SOLO_SELF, TCL
from kontrast.recipes.tcl import RECIPES

SETTINGS = {  # batch, learning rates of SupCon and TCL, k1: supplement, section 2.1
    "cifar10": (128, 0.1, 0.1, 5000),
    "cifar100": (256, 0.2, 0.2, 4000),
    "fashion-mnist": (128, 0.09, 0.09, 5000),
    "imagenet100": (256, 0.2, 0.3, 4000),
}


@pytest.mark.parametrize("data", SETTINGS)
@pytest.mark.parametrize("epochs", [100, 200])
def test_supplement_section_2_1(data: str, epochs: int) -> None:
    batch, *rates, k1 = SETTINGS[data]
    for method, lr in zip(("supcon", "tcl"), rates, strict=True):
        recipe = RECIPES[f"{method}-{data}" + ("-200" if epochs == 200 else "")]
        assert (recipe.train.epochs, recipe.train.batch_size) == (epochs, batch)
        assert recipe.optim.model_dump() == {"name": "sgd", "lr": lr, "momentum": 0.9, "weight_decay": 1e-4}
        assert recipe.schedule.options == {"per": "epoch", "late": True, "final": 1e-3}
        assert recipe.encoder.options == {"stem": "large" if data == "imagenet100" else "small"}
        assert recipe.encoder.name == "resnet50"
        view = "crop-flip" if data == "fashion-mnist" else "autoaugment"
        assert [part.name for part in recipe.augment.views] == [view, view]
        assert recipe.method.options["temperature"] == 0.1
        accuracy, half = TCL[data][method, epochs + 50]
        assert f"accuracy {accuracy:.2f} % ± {half:.2f}" in recipe.about if half else f"{accuracy:g} %" in recipe.about
        if method == "tcl":
            assert (recipe.method.options["k1"], recipe.method.options["k2"]) == (k1, 1)
    assert RECIPES["tcl-imagenet100"].data.size == 224


def test_stability_studies() -> None:
    """Supplement, section 2.2."""
    assert [tcl.encoder_study(e, "tcl").optim.options["lr"] for e in ("resnet18", "resnet34", "resnet50")] == [0.1] * 3
    assert tcl.encoder_study("resnet101", "supcon").optim.options["lr"] == 0.09
    rows = [tcl.batch_study(size, "tcl") for size in (32, 64, 128, 256, 512, 1024)]
    assert [row.optim.options["lr"] for row in rows] == [8e-3, 9e-3, 0.1, 0.2, 0.5, 1]
    assert [row.method.options["k1"] for row in rows] == [5000, 7500, 5000, 4000, 4000, 4000]
    assert {row.method.options["k2"] for row in rows} == {1}
    assert [row.train.batch_size for row in rows] == [32, 64, 128, 256, 512, 1024]
    assert [tcl.projector_study(out, "tcl").head.options["out"] for out in tcl.PROJECTORS] == list(tcl.PROJECTORS)
    simaugment = tcl.augmentation_study("simaugment", "tcl")
    assert [view.name for view in simaugment.augment.views] == ["simaugment", "simaugment"]
    assert simaugment.method.options["k2"] == 1.2
    assert "k2" not in tcl.augmentation_study("simaugment", "supcon").method.options


@pytest.mark.parametrize("method", ["supcon", "tcl"])
def test_studies_are_in_the_book_and_share_the_plain_recipe(method: str) -> None:
    studied: list[Recipe] = [
        *(tcl.encoder_study(encoder, method) for encoder in tcl.ENCODERS),
        *(tcl.batch_study(size, method) for size in tcl.BATCHES),
        *(tcl.projector_study(out, method) for out in tcl.PROJECTORS),
        *(tcl.augmentation_study(augmentation, method) for augmentation in tcl.AUGMENTATIONS),
    ]
    plain = RECIPES[f"{method}-cifar10"]
    assert sum(recipe is plain for recipe in studied) == 4
    assert all(RECIPES[recipe.name] is recipe for recipe in studied)
    names = {recipe.name for recipe in studied}
    assert {f"{method}-cifar10-{x}" for x in ("resnet18", "batch32", "out64", "simaugment")} < names


def test_studies_say_what_they_have() -> None:
    with pytest.raises(ValueError, match="batch_size is 96; the study has 32, 64, 128"):
        tcl.batch_study(96, "tcl")
    with pytest.raises(ValueError, match="method is 'sce'; the study has supcon, tcl"):
        tcl.projector_study(64, "sce")


@pytest.mark.parametrize("data", SETTINGS)
def test_cross_entropy_differs_in_the_loss_alone(data: str) -> None:
    supcon = RECIPES[f"supcon-{data}"]
    for method in ("ce", "ce-fix"):
        recipe = RECIPES[f"{method}-tcl-{data}"]
        same = {"name", "about", "method", "head"}
        assert recipe.model_dump(exclude=same) == supcon.model_dump(exclude=same)
        assert (recipe.method.name, recipe.head.name) == (method, "none")


@pytest.mark.parametrize("data", SOLO_SELF)
def test_without_labels(data: str) -> None:
    """Supplement, section 2.3, and solo-learn's configuration."""
    recipe, simclr = RECIPES[f"tcl-self-{data}"], RECIPES[f"simclr-{data}"]
    assert recipe.method.options == {"temperature": 0.2, "k1": 1.0, "k2": 1.5}
    assert [len(r.augment.views) for r in (recipe, simclr)] == [3, 2]
    assert recipe.head.model_dump() == {"name": "tcl-ssl", "hidden": 2048, "out": 256}
    assert (recipe.optim.name, recipe.optim.options["lr"], recipe.optim.options["weight_decay"]) == ("lars", 0.4, 1e-4)
    assert (recipe.train.epochs, recipe.train.batch_size) == (400 if data == "imagenet100" else 1000, 256)
    assert recipe.optim.options["lr"] * recipe.schedule.options["start"] == pytest.approx(3e-5, rel=1e-12)
    if data == "imagenet100":
        assert (simclr.optim.options["lr"], simclr.head.options["hidden"], simclr.head.options["out"]) == (
            0.3,
            4096,
            512,
        )
    else:
        differ = {"name", "about", "method", "augment"}
        assert recipe.model_dump(exclude=differ) == simclr.model_dump(exclude=differ)
    assert f"online top-1 {SOLO_SELF[data]['simclr']:.2f} %" in simclr.about
