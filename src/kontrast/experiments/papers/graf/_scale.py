"""What Graf et al.'s experiments have in common: methods, errors, and the sizes of the small runs."""

from __future__ import annotations

from typing import Any

from kontrast import recipes
from kontrast.experiments import outcome
from kontrast.recipe import Recipe

# What pilots decide about the preset `cpu`, in one place.
WIDTH = 32  # of small-resnet: 128 features; a simplex of 100 classes needs 99
IMAGES = 10_000  # training images at most; of the test split all
# With 128 images of 100 classes a row has about one partner, and at the paper's 0.1·((T−i)/T)⁵ SC had hardly begun to
# learn after 4,000 steps; CE is alike at either rate (held-out rows, docs/experiments/trials.md).
STEPS, BATCH, RATE, SCHEDULE = 6000, 256, 0.4, "cosine"
SEEDS = 5
# Random labels: so many images that CE's time rises with the fraction too.
FIT_IMAGES, FIT_WIDTH, FIT_BATCH, FIT_RATE, FIT_SEEDS = 5000, 16, 128, 0.1, 4
FIT_STEPS, FIT_EVERY = 6000, 50  # steps at most, and how often the criterion is asked
FIT_FRACTIONS = (0.0, 0.25, 0.5, 0.75, 1.0)

SETS = ("cifar10", "cifar100")
METHODS = ("ce", "ce-fix", "sc")

ERROR = outcome.accuracy("error", "retrained linear classifier", "graf-linear", error=True)
PROBE = outcome.accuracy("probe", "linear probe, rate chosen on held-out rows", "probe", error=True, optional=True)
ABOUT_CPU = (
    f"Against the paper: at most {IMAGES:,} images of fashion-mini, or of your own by data=, and small-resnet (width "
    f"{WIDTH}, {4 * WIDTH} features) for the whole sets and ResNet-18 (512); {STEPS:,} steps of {BATCH} images for "
    f"100,000 of 256, at a rate of {RATE} that falls as a cosine, for 0.1·((T−i)/T)⁵: with that SC hardly learns in so "
    "few steps, and CE is alike."
)
SMOKE = "A few steps on 200 images, to see that everything runs."


def cpu(method: str, data: Any, changes: dict[str, Any]) -> Recipe:
    """The small recipe of a method."""
    common = {
        "name": f"graf-{method}",
        "data": data,
        "train.epochs": None,
        "data.limit": IMAGES,
        "encoder.width": WIDTH,
        "train.steps": STEPS,
        "train.batch_size": BATCH,
        "optim.lr": RATE,
        "schedule": SCHEDULE,
        "evaluate.protocols": ["graf-linear", "probe", "knn20"],
    }
    return recipes.find(f"{method}-fashion-mini").override({**common, **changes})


def smoke(made: Recipe, width: int | None = 4) -> Recipe:
    """A second or two of it; ``width=None`` keeps the encoder's."""
    small: dict[str, Any] = {"data.limit": 200, "data.test_limit": 100, "train.steps": 4, "train.batch_size": 64}
    if made.evaluate.protocols:
        small["evaluate.protocols"] = [{"name": "graf-linear", "iterations": 50}, "knn20"]
    if made.train.fit_every is not None:
        small["train.fit_every"] = 2
    return made.override({**small, **({} if width is None else {"encoder.width": width})})


def views(augmented: bool) -> dict[str, Any]:
    """One view, cropped and flipped or as it is."""
    return {"augment.views": [{"name": "crop-flip" if augmented else "none"}]}
