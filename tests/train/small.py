"""Recipes of a second or two, and what two runs must have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from kontrast import methods
from kontrast.recipe import Recipe
from kontrast.runs import WALL_CLOCK, Run
from kontrast.runs.reading import read_metrics_file
from kontrast.train import checkpoint

ADAPTED: dict[str, Any] = {
    "encoder": {"name": "small-resnet", "width": 4},
    "optim.layer_decay": 0.5,
    "optim.head_lr": 0.1,
    "train.freeze": 1,
    "train.head_first": 1.5,
    "train.clip": 0.5,
    "train.average": 0.8,
    "train.checkpoint_activations": True,
}
"""Every control of adaptation at once; the first 9 of 18 steps are the head's."""

VIEWS = {"simclr": 2, "moco": 2, "ressl": 2, "sce": 2, "instance": 1, "tcl-self": 3}


def recipe(method: str = "supcon", out: Path | str = "runs", **changes: Any) -> Recipe:
    """A run of 3 epochs of 6 steps on digits, through a perceptron with batch norm."""
    views = VIEWS.get(method, 2)
    small: dict[str, Any] = {"queue": 50, "key_parts": 1} if method in ("moco", "ressl", "sce") else {}
    made = Recipe.of(
        {
            "name": f"{method}-digits",
            "data": {"name": "digits", "limit": 200, "test_limit": 100},
            "augment": [{"name": "crop-flip", "padding": 1}] * views,
            "encoder": {"name": "mlp", "hidden": 32, "features": 16},
            "head": {"name": "wang-liu", "out": 12},
            "method": {"name": method, **small},
            "optim": {"name": "sgd", "lr": 0.05},
            "train": {"epochs": 3, "batch_size": 32},
            "evaluate": {"protocols": ["knn20"]},
            "run": {"out": str(out), "threads": 1, "progress": False, "log_every": 4, "checkpoint_every": 1000},
        }
    )
    return made.override(changes)


def same_runs(one: Path, other: Path) -> None:
    """Bit-identical weights, memories, optimiser, metrics, results; only the clock may differ."""
    a, b = Run(one), Run(other)
    weights = load_file(a.weights_file), load_file(b.weights_file)
    assert weights[0].keys() == weights[1].keys()
    for name, tensor in weights[0].items():
        assert torch.equal(tensor, weights[1][name]), name
    assert comparable(a.metrics_file) == comparable(b.metrics_file)
    first, second = checkpoint.load(a.last_checkpoint), checkpoint.load(b.last_checkpoint)
    for part in ("method", "average", "optimiser", "sums", "patience", "step"):
        equal(first[part], second[part], part)
    results = [folder.result for folder in (a, b)]
    assert results[0] == results[1]


def comparable(path: Path) -> list[dict[str, Any]]:
    """The records without what the clock says."""
    return [{k: v for k, v in record.items() if k not in WALL_CLOCK} for record in read_metrics_file(path)]


def equal(one: Any, other: Any, where: str) -> None:
    """Nested containers of tensors, equal to the bit."""
    assert type(one) is type(other), where
    if isinstance(one, torch.Tensor):
        assert torch.equal(one, other), where
    elif isinstance(one, dict):
        assert one.keys() == other.keys(), where
        for key in one:
            equal(one[key], other[key], f"{where}.{key}")
    elif isinstance(one, list | tuple):
        assert len(one) == len(other), where
        for i, (x, y) in enumerate(zip(one, other, strict=True)):
            equal(x, y, f"{where}.{i}")
    else:
        assert one == other, where


ALL = methods.names()
