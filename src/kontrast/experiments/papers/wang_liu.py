"""Wang & Liu: accuracy, uniformity, tolerance and local separation against temperature, ordinary and hard loss.

The paper trains a memory bank for 200 epochs on a GPU. At the `cpu` scale a bank has barely begun to learn, so there
the loss is computed between two views of each image of a batch (SimCLR with the paper's views and linear head); the
hard loss then keeps a quarter of a batch's negatives, and begins after a few epochs of the ordinary one, without which
it collapses at low temperatures.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from kontrast import recipes
from kontrast.experiments import claims, outcome
from kontrast.experiments.cell import At
from kontrast.experiments.experiment import Chart, Experiment, Measure, Preset, Row
from kontrast.experiments.outcome import KNN, UNIFORMITY
from kontrast.files import RUN_AGAIN, read_npz
from kontrast.recipe import Recipe
from kontrast.recipes import published

TEMPERATURES = (0.05, 0.07, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
SETS = ("cifar10", "cifar100", "svhn", "imagenet100")

LINEAR = outcome.accuracy("linear", "linear probe", "wang-liu", "probe")
TOLERANCE = outcome.geometry("tolerance", "tolerance", "tolerance of test embeddings")

ABOUT_CPU = (
    "Against the paper: small-resnet (width 16) for ResNet-18; 10 epochs for 200; two views and in-batch negatives "
    "(SimCLR, batch 256) for a memory bank with one view; SGD at 0.1 with cosine for 0.03 with steps, weight decay "
    "1e-4 for 5e-4; the hard loss keeps 63 of 255 negatives (the paper 4,095 of 50,000), after 78 steps of the "
    "ordinary one (two epochs of 10,000 images; method.warmup_steps); a probe whose rate is chosen on held-out "
    "training rows for one at rate 30, which is made for 512 features and not for 64."
)
BESIDE = " For data that the paper does not have, its CIFAR-10 values stand beside ours."


def paper(loss: str, at: At) -> Recipe:
    """The paper's run at a place."""
    kind = "instance" if loss == "ordinary" else f"instance-{loss}"
    made = recipes.find(f"{kind}-{at['data']}")
    return made.override({"method.temperature": at["temperature"]})


def cpu(loss: str, at: At) -> Recipe:
    """A run of about a minute on two cores."""
    changes: dict[str, Any] = {
        "name": f"wang-liu-{loss}",
        "data": at["data"],
        "augment": "wang-liu",
        "head": "wang-liu",
        "method.loss": loss,
        "method.temperature": at["temperature"],
        "train.epochs": 10,
        "evaluate.protocols": ["knn20", "probe"],
    }
    if loss.startswith("hard"):
        changes |= {"method.hard_negatives": 63, "method.warmup_steps": 78}
    return recipes.find("simclr-fashion-mini").override(changes)


def smoke(loss: str, at: At) -> Recipe:
    """A run of a second or two."""
    changes: dict[str, Any] = {"data.limit": 200, "data.test_limit": 100, "train.batch_size": 64, "train.epochs": 1}
    changes |= {"encoder.width": 4, "evaluate.protocols": ["knn20", {"name": "probe", "epochs": 2}]}
    if loss.startswith("hard"):
        changes |= {"method.hard_negatives": 15, "method.warmup_steps": 1}
    return cpu(loss, at).override(changes)


def presets(loss: str | None, beside: str = BESIDE) -> dict[str, Preset]:
    """Of a table with one loss, or with the loss as an axis."""

    def made(of: Any) -> Any:
        return partial(of, loss) if loss is not None else lambda at: of(str(at["loss"]), at)

    return {
        "paper": Preset(
            "As the paper; three seeds (it has one run a cell); see the recipes for what is not stated there.",
            made(paper),
            seeds=3,
        ),
        "cpu": Preset(ABOUT_CPU + beside, made(cpu), seeds=3, axes={"data": ("fashion-mini",)}),
        "smoke": Preset(
            "A few steps on 200 images, to see that everything runs.",
            made(smoke),
            seeds=2,
            axes={"data": ("fashion-mini",), "temperature": (0.1, 0.3, 1.0)},
        ),
    }


def of_paper(at: At) -> str:
    """The paper's set to be shown beside: this one, or CIFAR-10."""
    return str(at["data"]) if at["data"] in SETS else "cifar10"


def table(loss: str, at: At, measure: str) -> float | None:
    """The supplement's Tables 1 and 2."""
    if measure != "linear":
        return None
    return published.WANG_LIU[of_paper(at)][loss].get(at["temperature"])  # type: ignore[arg-type]


def main_table(at: At, measure: str) -> float | None:
    """The main text's Table 1, where it has the temperature."""
    column = {"uniformity": 1, "tolerance": 2}.get(measure)
    temperature = None if "simple" in str(at["loss"]) else at["temperature"]
    found = published.WANG_LIU_MAIN[of_paper(at)].get((str(at["loss"]), temperature))  # type: ignore[arg-type]
    return None if found is None or column is None else found[column]


def separation_records(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Quartiles of the positive's and the nearest negatives' similarities, of the first seed's runs."""
    several = len({row.at["data"] for row in rows}) > 1
    records = []
    for row, arrays in outcome.analyses(rows):
        columns = np.concatenate([arrays["positive"][:, None], arrays["nearest"]], axis=1)
        for k, column in enumerate(columns.T):
            low, middle, high = np.quantile(column, [0.25, 0.5, 0.75])
            records.append(
                {
                    **row.at,
                    "panel": (f"{row.at['data']}, " if several else "") + f"τ = {row.at['temperature']}",
                    "neighbour": "positive" if k == 0 else f"{k:02d}",
                    "low": float(low),
                    "similarity": float(middle),
                    "high": float(high),
                }
            )
    return records


def gap(folder: Path) -> float | None:
    """Mean similarity of the positive minus that of the nearest negative."""
    arrays = read_npz(folder / "analysis.npz", RUN_AGAIN, names=("positive", "nearest"))
    return float((arrays["positive"] - arrays["nearest"][:, 0]).mean())


def positive(folder: Path) -> float | None:
    """Mean similarity of the positive."""
    return float(read_npz(folder / "analysis.npz", RUN_AGAIN, names=("positive",))["positive"].mean())


def _table(number: int, loss: str) -> Experiment:
    ordinary = loss == "ordinary"
    shape = claims.rises_then_falls if ordinary else claims.rises
    text = (
        "accuracy rises, then falls with the temperature (a reverse U)"
        if ordinary
        else "with the hard loss accuracy rises with the temperature"
    )
    return Experiment(
        name=f"wl-table-{number}",
        title=f"Linear accuracy against temperature, {loss} contrastive loss",
        source=f"Wang & Liu, supplement, Table {number}; main text, Figure 9",
        axes={"data": SETS, "temperature": TEMPERATURES},
        presets=presets(loss),
        measures=(LINEAR, KNN, UNIFORMITY, TOLERANCE),
        rows="temperature",
        published=partial(table, loss),
        reference="CIFAR-10",
        claims=[shape(text, "linear", "temperature", within=("data",))],
        charts=[
            Chart("accuracy", "Linear accuracy (%)", "line", "temperature", "linear", panel="data", log_x=True),
        ],
    )


ORDINARY, HARD = {"loss": "ordinary"}, {"loss": "hard"}
BOTH = {"data": SETS, "loss": ("ordinary", "hard"), "temperature": TEMPERATURES}

EXPERIMENTS = [
    _table(1, "ordinary"),
    _table(2, "hard"),
    Experiment(
        name="wl-uniformity-tolerance",
        title="Uniformity and tolerance against temperature, ordinary and hard loss",
        source="Wang & Liu, Figures 4 to 7 and Table 1 of the main text",
        axes=BOTH,
        presets=presets(None),
        measures=(UNIFORMITY, TOLERANCE),
        rows="temperature",
        published=main_table,
        reference="CIFAR-10",
        claims=[
            claims.falls(
                "with the ordinary loss uniformity falls with the temperature",
                "uniformity",
                "temperature",
                where=ORDINARY,
                within=("data",),
            ),
            claims.rises(
                "with the ordinary loss tolerance rises with the temperature",
                "tolerance",
                "temperature",
                where=ORDINARY,
                within=("data",),
            ),
            claims.varies_less(
                "the hard loss's uniformity varies less across temperatures than the ordinary loss's",
                "uniformity",
                "temperature",
                HARD,
                ORDINARY,
                within=("data",),
                pooled=True,
            ),
            claims.higher(
                "the hard loss is more uniform than the ordinary one",
                "uniformity",
                HARD,
                ORDINARY,
                within=("data",),
                pooled=True,
            ),
        ],
        charts=[
            Chart("uniformity", "−uniformity", "line", "temperature", "uniformity", "loss", "data", log_x=True),
            Chart("tolerance", "Tolerance", "line", "temperature", "tolerance", "loss", "data", log_x=True),
        ],
    ),
    Experiment(
        name="wl-separation",
        title="Local separation: the positive and the ten nearest negatives",
        source="Wang & Liu, Figure 8; supplement, Figures 1 to 7",
        axes=BOTH,
        presets=presets(None, beside=""),
        measures=(
            Measure("gap", "positive − nearest negative (cosine, test embeddings)", gap, digits=3),
            Measure("positive", "positive (cosine, test embeddings)", positive, digits=3),
        ),
        rows="temperature",
        claims=[
            claims.falls(
                "the gap between the positive and the nearest negatives falls with the temperature",
                "gap",
                "temperature",
                where=ORDINARY,
                within=("data",),
            ),
            claims.rises(
                "positives come closer to 1 as the temperature rises",
                "positive",
                "temperature",
                where=ORDINARY,
                within=("data",),
            ),
        ],
        charts=[
            Chart(
                "separation",
                "Similarity of the positive and of the nearest negatives (quartiles, first seed)",
                "range",
                "neighbour",
                "similarity",
                "loss",
                "panel",
                data=separation_records,
            ),
        ],
    ),
]
