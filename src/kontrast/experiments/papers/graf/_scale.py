"""What Graf et al.'s experiments have in common: methods, errors, and the small runs."""

from __future__ import annotations

from typing import Any

from kontrast import recipes
from kontrast.experiments import outcome
from kontrast.recipe import Recipe

SETS = ("cifar10", "cifar100")
METHODS = ("ce", "ce-fix", "sc")

ERROR = outcome.accuracy("error", "retrained linear classifier", "graf-linear", error=True)
ABOUT_CPU = (
    "Against the paper: 1,000 images of fashion-mini and small-resnet (width 16, 64 features) for the whole sets and "
    "ResNet-18 (512); 2,000 steps of 128 images for 100,000 of 256. For data that the paper does not have, its "
    "CIFAR-10 values stand beside ours."
)
SMOKE = "A few steps on 200 images, to see that everything runs."


def cpu(method: str, data: Any, changes: dict[str, Any]) -> Recipe:
    """The small recipe of a method, for about two minutes on one core."""
    common = {
        "name": f"graf-{method}",
        "data": data,
        "train.epochs": None,
        "data.limit": 1000,
        "train.steps": 2000,
        "evaluate.protocols": ["graf-linear", "knn20"],
    }
    return recipes.find(f"{method}-fashion-mini").override({**common, **changes})


def smoke(made: Recipe) -> Recipe:
    """A second or two of it."""
    small: dict[str, Any] = {"data.limit": 200, "data.test_limit": 100, "train.steps": 4, "train.batch_size": 64}
    if made.evaluate.protocols:
        small["evaluate.protocols"] = [{"name": "graf-linear", "iterations": 50}, "knn20"]
    if made.train.fit_every is not None:
        small |= {"train.fit_every": 2, "data.limit": 100}
    return made.override({**small, "encoder.width": 4})


def views(augmented: bool) -> dict[str, Any]:
    """One view, cropped and flipped or as it is."""
    return {"augment.views": [{"name": "crop-flip" if augmented else "none"}]}
