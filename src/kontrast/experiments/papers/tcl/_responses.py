"""How SupCon and TCL answer to the hardest positive and the hardest negative, on random and on trained embeddings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from kontrast.experiments import claims, outcome
from kontrast.experiments.cell import At, Task
from kontrast.experiments.experiment import Chart, Experiment, Preset
from kontrast.runs import Run

if TYPE_CHECKING:
    from torch import Tensor

# ------------------------------------------------------------------------------------------------------------- the task


ANCHORS, CLASSES, DIM, TAU = 1000, 10, 128, 0.1


def respond(folder: Path, *, embeddings: str, k1: float, k2: float, seed: int) -> dict[str, Any]:
    """The mean responses at k1 and k2, over anchors."""
    from kontrast import geometry  # with torch: the names of experiments are listed without it

    z, labels = _random(seed) if embeddings == "random" else _trained(folder.parent, seed)
    found = geometry.gradient_response(z, labels, temperature=TAU, k1=k1, k2=k2)
    return {
        "positive": float(found.positive.double().mean()),
        "negative": float(found.negative.double().mean()),
        "anchors": len(found.anchors),
        "temperature": TAU,
    }


def _random(seed: int) -> tuple[Tensor, Tensor]:
    import torch

    from kontrast.data.loader import Stream, generator

    draw = generator(seed, Stream.NETWORK, 4)
    return torch.randn(ANCHORS, DIM, generator=draw), torch.arange(ANCHORS) % CLASSES


def _trained(out: Path, seed: int) -> tuple[Tensor, Tensor]:
    """Features of test rows after SupCon; the run lies beside the tasks and is made once."""
    import torch

    from kontrast import recipes
    from kontrast.pipeline import run_recipe

    changes = {"name": "tcl-study-supcon", "train.epochs": 10, "seed": seed, "run.out": str(out), "run.progress": False}
    run = run_recipe(recipes.find("supcon-fashion-mini").override(changes))
    arrays = Run(run.path).arrays(("features", "labels"))
    z, labels = torch.from_numpy(arrays["features"]), torch.from_numpy(arrays["labels"])
    return z[:ANCHORS], labels[:ANCHORS]


# -------------------------------------------------------------------------------------------------------- tcl-gradients


K1 = (0.0, 1.0, 10.0, 100.0, 1000.0, 2000.0, 4000.0, 5000.0, 8000.0)
K2 = (1.0, 1.2, 1.5, 2.0)


def _response(at: At) -> Task:
    return Task("kontrast.experiments.papers.tcl._responses:respond", dict(at))


GRADIENTS = Experiment(
    name="tcl-gradients",
    title="How strongly SupCon (k1 = 0, k2 = 1) and TCL answer to the hardest positive and the hardest negative",
    source="TCL, Theorems 1 and 2 (the main paper's figure is not known to us)",
    axes={"embeddings": ("random", "trained"), "k2": K2, "k1": K1},
    presets={
        name: Preset(
            "Random unit vectors, and features of a small encoder after ten epochs of SupCon; 1,000 anchors, τ = 0.1.",
            _response,
            seeds=3,
            axes={} if name != "smoke" else {"embeddings": ("random",), "k1": (0.0, 1.0, 5000.0), "k2": (1.0, 2.0)},
        )
        for name in ("paper", "cpu", "smoke")
    },
    measures=(
        outcome.value("positive", "response to the hardest positive |X − P + Y|, mean over anchors", 4),
        outcome.value("negative", "response to the hardest negative P, mean over anchors", 4),
    ),
    rows="k1",
    claims=[
        claims.higher(
            "Theorem 1: TCL answers more strongly to the hardest positive (k1 = 5000, k2 = 1 against SupCon)",
            "positive",
            {"k1": 5000.0, "k2": 1.0},
            {"k1": 0.0, "k2": 1.0},
            within=("embeddings",),
        ),
        claims.rises(
            "Theorem 2: the answer to the hardest negative rises with k2",
            "negative",
            "k2",
            where={"k1": 5000.0},
            within=("embeddings",),
        ),
        claims.higher(
            "raising k1 alone lowers the answer to the hardest negative",
            "negative",
            {"k1": 0.0, "k2": 1.0},
            {"k1": 5000.0, "k2": 1.0},
            within=("embeddings",),
        ),
    ],
    charts=[
        Chart("positive", "Response to the hardest positive", "line", "k1", "positive", "k2", "embeddings", log_x=True),
        Chart("negative", "Response to the hardest negative", "line", "k1", "negative", "k2", "embeddings", log_x=True),
    ],
)
