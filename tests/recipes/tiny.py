"""Any recipe cut down to two steps: the same parts on data of the set's shape, less of what only costs time.

Overridden are: the data (random pixels, few rows; ImageNet-100 in its own layout), batch 16, two steps, the encoder
(a narrow small-resnet with the recipe's stem), warm-up, queue, the hidden layers of heads, ImageNet's pixels, how long
the protocols train, raw pixels beside them, and how often the fit is asked for. Everything else is the recipe's own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from kontrast.data.sets.imagenet100 import IDS
from kontrast.recipe import Recipe
from kontrast.train import resolve

SHAPES = {  # channels, pixels
    "cifar10": (3, 32),
    "cifar100": (3, 32),
    "svhn": (3, 32),
    "fashion-mnist": (1, 28),
    "stl10": (3, 96),
    "tiny-imagenet": (3, 64),
}
ROWS, CLASSES = 40, 10  # geometry warns of fewer than 30 rows
SMALL = 72  # pixels that stand for 224: above 64, where the probe of Wang & Liu has ImageNet's augmentation
PROTOCOLS: dict[str, dict[str, Any]] = {
    "wang-liu": {"epochs": 1},
    "tcl": {"epochs": 1, "batch_size": 16},
    "sce": {"epochs": 1, "batch_size": 16},
    "probe": {"epochs": 1, "learning_rates": [0.1], "weight_decays": [0.0], "held_out": 0.5},
    "graf-linear": {"iterations": 3},
}


def arrays(folder: Path, name: str) -> str:
    """Random pixels in the shape of a set, forty rows of ten classes."""
    path = folder / f"{name}.npz"
    if path.exists():
        return str(path)
    channels, size = SHAPES[name]
    draw = np.random.default_rng(0)

    def images(count: int) -> np.ndarray[Any, Any]:
        shape = (count, size, size, channels)
        return draw.integers(0, 256, shape if channels > 1 else shape[:3], dtype=np.uint8)

    labels = np.arange(ROWS) % CLASSES
    found = {"x_train": images(ROWS), "y_train": labels, "x_test": images(ROWS), "y_test": labels}
    if name == "stl10":
        found["x_unlabelled"] = images(20)
    np.savez(path, allow_pickle=False, **found)
    return str(path)


def imagenet(folder: Path) -> str:
    """A root that holds ImageNet-100 as ImageNet lies on disk: two small images a class in train, one in val."""
    if (folder / "imagenet100").exists():
        return str(folder)
    draw = np.random.default_rng(0)
    for part in ("train", "val"):
        for i, name in enumerate(IDS):
            place = folder / "imagenet100" / part / name
            place.mkdir(parents=True)
            pixels = draw.integers(0, 256, (36 + i % 5, 40, 3), dtype=np.uint8)  # images differ in size
            for k in range(2 if part == "train" else 1):
                Image.fromarray(pixels).save(place / f"{name}_{k}.JPEG")
    return str(folder)


def tiny(recipe: Recipe, data: Path, out: Path, *, encoder: bool = False) -> Recipe:
    """The recipe cut down, its data below the folder ``data``; ``encoder=True`` leaves its own encoder in."""
    large = recipe.data.name == "imagenet100"
    changes: dict[str, Any] = {
        "train.epochs": None,
        "train.steps": 2,
        "train.batch_size": 16,
        "evaluate.protocols": [_short(protocol.model_dump()) for protocol in recipe.evaluate.protocols],
        "evaluate.baselines": False,
        "run.out": str(out),
        "run.progress": False,
        "run.log_every": 1,
        "run.monitor_every": 0,
        "run.threads": 1,
        "run.device": "cpu",
    }
    changes |= {"run.data_root": imagenet(data)} if large else {"data.name": arrays(data, recipe.data.name)}
    if large:
        changes |= {"data.test_limit": ROWS} | ({"data.size": SMALL} if recipe.data.size else {"augment.size": SMALL})
    if not encoder:
        width = 25 if large and recipe.method.name == "ce-fix" else 4  # 100 features have room for 100 classes
        changes |= {"encoder": {"name": "small-resnet", "width": width, "stem": recipe.encoder.options["stem"]}}
    if recipe.schedule.name == "warmup-cosine":
        changes["schedule.warmup_epochs"] = 0
    if "queue" in recipe.method.options:
        changes["method.queue"] = 64
    if "hidden" in recipe.head.options:
        changes["head.hidden"] = 64
    if recipe.train.fit_every:
        changes["train.fit_every"] = 1
    return resolve(recipe.override(changes))


def _short(protocol: dict[str, Any]) -> dict[str, Any]:
    return {**protocol, **PROTOCOLS.get(protocol["name"], {})}
