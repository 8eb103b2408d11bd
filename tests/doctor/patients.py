"""Runs of a second or two, each made to have one disease, and healthy ones beside them; made when first asked for.

Images are fashion-mini's (a few hundred, 28 × 28, a small-resnet of width 8) or scikit-learn's digits as vectors of 64
(a perceptron). Nothing of a run's files is edited here, but for `edited`.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from kontrast import data, doctor
from kontrast.doctor import Finding
from kontrast.pipeline import run_recipe
from kontrast.recipe import Recipe
from kontrast.recipes import recipe as recipe_of
from kontrast.runs import Run
from kontrast.train import NonFiniteLoss, resolve

QUICK: dict[str, Any] = {
    "run.progress": False, "run.device": "cpu", "run.log_every": 4, "run.keep_memory": False, "run.monitor_every": 1000,
    "evaluate.protocols": ["knn20"],
}  # fmt: skip
IMAGES: dict[str, Any] = {
    **QUICK,
    "data": "fashion-mini", "data.limit": 512, "data.test_limit": 500,
    "encoder": {"name": "small-resnet", "width": 8},
    "train": {"epochs": 4, "batch_size": 64},
}  # fmt: skip
VECTORS: dict[str, Any] = {
    **QUICK,
    "encoder": "mlp", "augment": ["vector-noise"] * 2,
    "train": {"epochs": 5, "batch_size": 128},
}  # fmt: skip
# Methods with a queue: how ill a run looks depends on rate, views and momentum, and recipes are tuned further.
QUEUE: dict[str, Any] = {
    "augment": ["weak", "strong"], "optim": {"name": "sgd", "lr": 0.12, "weight_decay": 5e-4},
    "encoder": {"name": "small-resnet", "width": 8},
}  # fmt: skip
LONGER: dict[str, Any] = {"train": {"epochs": 4, "batch_size": 32}}  # 64 steps: fewer than 50 are too short to judge


@cache
def _folder() -> Path:
    made = tempfile.TemporaryDirectory(prefix="kontrast-doctor-")
    KEPT.append(made)  # until the tests end
    return Path(made.name)


KEPT: list[tempfile.TemporaryDirectory[str]] = []


def _images(base: str, **changes: Any) -> Recipe:
    return small(base).override({**deepcopy(IMAGES), "run.out": str(_folder()), **_dotted(changes)})


def small(method: str) -> Recipe:
    """The recipe of a method on the bundled set; of methods with a queue with settings that stay."""
    made = recipe_of(f"{method}-fashion-mini")
    if method not in ("moco", "ressl", "sce"):
        return made
    keys = {"name": method, "queue": 2048, "momentum": 0.99}
    return made.override({**deepcopy(QUEUE), "method": keys, "train.batch_size": 256})


def _vectors(method: str, **changes: Any) -> Recipe:
    base = Recipe.of({"name": f"{method}-vectors", "method": method, "train": {"epochs": 1}, "head": "tcl"})
    given = {"data": _file("digits", **digits()), **_dotted(changes)}
    return base.override({**deepcopy(VECTORS), "run.out": str(_folder()), **given})


def _dotted(changes: dict[str, Any]) -> dict[str, Any]:
    return {key.replace("__", "."): value for key, value in changes.items()}


def _file(name: str, **arrays: Any) -> str:
    path = _folder() / f"{name}.npz"
    np.savez(path, **arrays)
    return str(path)


def digits() -> dict[str, np.ndarray[Any, Any]]:
    """The digits as arrays."""
    loaded = data.load("digits")
    assert loaded.test is not None
    assert loaded.train.labels is not None
    assert loaded.test.labels is not None
    rows = {"x_train": loaded.train.inputs, "x_test": loaded.test.inputs}
    found = {
        key: np.asarray(inputs.read(torch.arange(len(inputs)))).reshape(len(inputs), -1) for key, inputs in rows.items()
    }
    return {**found, "y_train": loaded.train.labels.numpy(), "y_test": loaded.test.labels.numpy()}


def shuffled(labels: np.ndarray[Any, Any], share: float, seed: int = 0) -> np.ndarray[Any, Any]:
    """Labels with a share of them moved on to another class."""
    rng = np.random.default_rng(seed)
    wrong = rng.random(len(labels)) < share
    return np.where(wrong, (labels + rng.integers(1, 10, len(labels))) % 10, labels)


def _mislabelled() -> Recipe:
    d = digits()
    d |= {key: shuffled(d[key], 0.3, seed) for seed, key in enumerate(("y_train", "y_test"))}
    return _vectors("simclr", data=_file("mislabelled", **d))


def _one_class() -> Recipe:
    """SupCon with one label for all: it only pulls, so everything falls into one point."""
    d = digits()
    return _vectors("supcon", data=_file("one", x_train=d["x_train"], y_train=np.zeros(len(d["x_train"]), np.int64)))


def _divided() -> Recipe:
    """Pixels divided by 255 twice."""
    loaded = data.load("fashion-mini", limit=128, test_limit=100)
    assert loaded.train.labels is not None
    pixels = np.asarray(loaded.train.inputs.read(torch.arange(128)))
    name = _file("divided", x_train=pixels / 255.0**2, y_train=loaded.train.labels.numpy())
    return _images("supcon", data={"name": name, "limit": None, "test_limit": None}, train__epochs=1)


def _imbalanced() -> Recipe:
    d = digits()
    kept = np.concatenate([np.flatnonzero(d["y_train"] == c)[: 2 if c == 9 else None] for c in range(10)])
    name = _file("imbalanced", **{**d, "x_train": d["x_train"][kept], "y_train": d["y_train"][kept]})
    return _vectors("supcon", data=name, train__batch_size=32, train__epochs=1)


def _big_pictures() -> Recipe:
    """Pictures of about 900 pixels a side, decoded again and again for a network that sees 16 of them."""
    root, rng = _folder() / "pictures", np.random.default_rng(0)
    for i in range(16):
        place = root / f"class{i % 2}"
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 255, (900 + i, 900, 3), dtype=np.uint8)).save(place / f"{i}.jpg")
    where = {"name": str(root), "limit": None, "test_limit": None}
    views: dict[str, Any] = {"augment": ["weak", "weak"], "augment.size": 16}
    return _images("supcon", data=where, train={"epochs": 4, "batch_size": 8}, run__log_every=1, **views)


def _pulled() -> Recipe:
    """TCL that pulls so hard that everything in one point is as good as any: it collapses, far below chance."""
    return _vectors("tcl", method__k1=1e9, method__temperature=0.1, optim__lr=0.1)


def _tuned(**changes: Any) -> Recipe:
    """Goes on from the weights of a healthy run."""
    return _images("supcon", encoder__pretrained=str(run("healthy")), **{**LONGER, "optim__lr": 1e-4, **changes})


RECIPES: dict[str, Callable[[], Recipe]] = {
    "healthy": lambda: _images("supcon", train__epochs=8),
    "healthy-self": lambda: _images("simclr", train__epochs=8),
    "healthy-queue": lambda: _images("moco", method__queue=256, method__key_parts=1, train__epochs=7),
    "cold": lambda: _images("simclr", method__temperature=0.005, **LONGER),
    "hot": lambda: _images("simclr", method__temperature=5.0, **LONGER),
    "fast": lambda: _images("supcon", optim__lr=1000.0, **LONGER),
    "slow": lambda: _images("supcon", optim__lr=1e-6, **LONGER),
    "diverged": lambda: _images("ce", optim__lr=1e12),
    "identical": lambda: _images("simclr", augment=["none", "none"]),
    "easy": lambda: _vectors("simclr", augment=[{"name": "vector-noise", "noise": 0.02}] * 2, train__epochs=10),
    "one-class": _one_class,
    "narrow": lambda: _vectors("simclr", encoder={"name": "mlp", "hidden": 1}),
    "mislabelled": _mislabelled,
    "lonely": lambda: _images("sc", train={"epochs": 1, "batch_size": 4}, run__log_every=32),
    "imbalanced": _imbalanced,
    "short-queue": lambda: _images("moco", method__queue=8, method__key_parts=1, train__epochs=2),
    "stale": lambda: _images("moco", method__queue=512, method__momentum=0.5, method__key_parts=1, train__epochs=2),
    "by-heart": lambda: _images("sc", data__limit=60, augment=["none"], train={"steps": 100, "batch_size": 60}),
    "divided": _divided,
    "big-pictures": _big_pictures,
    "pulled": _pulled,
    "spoiled": lambda: _tuned(encoder__norm="train", optim__lr=300.0),
    "tuned": _tuned,
}


HEALTHY = ("healthy", "healthy-self", "healthy-queue")
DISEASES = {
    "cold": "temperature-low",
    "hot": "temperature-high",
    "fast": "learning-rate-high",
    "slow": "learning-rate-low",
    "diverged": "failed-run",
    "identical": "weak-views",
    "easy": "loss-at-bound",
    "one-class": "complete-collapse",
    "narrow": "dimensional-collapse",
    "mislabelled": "label-noise",
    "lonely": "lone-anchors",
    "imbalanced": "class-imbalance",
    "short-queue": "small-queue",
    "stale": "stale-queue",
    "by-heart": "train-test-gap",
    "divided": "double-normalisation",
    "big-pictures": "data-bound",
    "spoiled": "worse-than-start",
}
"""What each run was made to have; "lonely" also has a batch too small, "slow" a loss at chance; "pulled" collapses."""


@cache
def run(name: str) -> Path:
    """The run's folder."""
    recipe = RECIPES[name]()
    try:
        return run_recipe(recipe).path
    except NonFiniteLoss:
        return Run.of(resolve(recipe)).path


@cache
def findings(name: str) -> dict[str, Finding]:
    """What the doctor says of it, by rule."""
    return {finding.rule: finding for finding in doctor.examine_run(run(name))}


def of_recipe(name: str, *settings: str) -> dict[str, Finding]:
    """What the doctor says of a recipe of the bundled set with some settings, by rule."""
    found = doctor.examine_recipe(small(name).override(settings))
    return {finding.rule: finding for finding in found}


def of_features(features: Any, labels: Any = None, **options: Any) -> dict[str, Finding]:
    """Of features, by rule."""
    return {finding.rule: finding for finding in doctor.examine_features(features, labels, **options)}


def edited(name: str, to: Path, **changes: Callable[[dict[str, Any]], dict[str, Any]]) -> Path:
    """A copy of a run with its JSON files changed: ``edited("healthy", tmp_path / "run", run=lambda r: {**r, …})``."""
    shutil.copytree(run(name), to, ignore=shutil.ignore_patterns("checkpoints"))
    for stem, change in changes.items():
        file = to / f"{stem}.json"
        file.write_text(json.dumps(change(json.loads(file.read_text()))))
    return to
