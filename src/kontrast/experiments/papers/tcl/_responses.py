"""The tasks of `tcl-gradients`: how SupCon and TCL answer, on random embeddings and on trained ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kontrast import geometry, recipes
from kontrast.data.loader import Stream, generator
from kontrast.files import RUN_AGAIN, read_npz
from kontrast.pipeline import run_recipe

ANCHORS, CLASSES, DIM, TAU = 1000, 10, 128, 0.1


def respond(folder: Path, *, embeddings: str, k1: float, k2: float, seed: int) -> dict[str, Any]:
    """The mean responses at k1 and k2, over anchors."""
    z, labels = _random(seed) if embeddings == "random" else _trained(folder.parent, seed)
    found = geometry.gradient_response(z, labels, temperature=TAU, k1=k1, k2=k2)
    return {
        "positive": float(found.positive.double().mean()),
        "negative": float(found.negative.double().mean()),
        "anchors": len(found.anchors),
        "temperature": TAU,
    }


def _random(seed: int) -> tuple[Tensor, Tensor]:
    draw = generator(seed, Stream.NETWORK, 4)
    return torch.randn(ANCHORS, DIM, generator=draw), torch.arange(ANCHORS) % CLASSES


def _trained(out: Path, seed: int) -> tuple[Tensor, Tensor]:
    """Features of test rows after SupCon; the run lies beside the tasks and is made once."""
    changes = {"name": "tcl-study-supcon", "train.epochs": 10, "seed": seed, "run.out": str(out), "run.progress": False}
    run = run_recipe(recipes.find("supcon-fashion-mini").override(changes))
    arrays = read_npz(run.path / "analysis.npz", RUN_AGAIN, names=("features", "labels"))
    z, labels = torch.from_numpy(arrays["features"]), torch.from_numpy(arrays["labels"])
    return z[:ANCHORS], labels[:ANCHORS]
