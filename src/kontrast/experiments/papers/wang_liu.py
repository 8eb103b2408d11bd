"""Wang & Liu: accuracy, uniformity, tolerance and local separation against temperature, ordinary and hard loss.

At the `cpu` scale the method is the paper's: a memory bank with one slot an image, one augmented view, the paper's
views and linear head; `SMALL` has what is smaller. The hard loss keeps the share of negatives that the paper's does.

Local separation is how near an anchor's positive is, and its ten nearest negatives (Figure 8). For a run with a memory
bank its analysis has ``bank_positive [n]`` and ``bank_nearest [n, 10]``: views of training rows, through the network in
train mode, against the bank, as the paper draws it. For any other run it has ``positive`` and ``nearest``: two views of
test rows. A ledger keeps histograms over fixed bins, from which the figure is drawn:

    separation         [11, 200] whole numbers: the positive, then the nearest negatives, over bins of 0.01 from −1 to 1
    separation_bank    1 if they are of the memory bank, else 0
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kontrast import recipes
from kontrast.experiments import claims, outcome
from kontrast.experiments.cell import At
from kontrast.experiments.chart_records import violin_records
from kontrast.experiments.experiment import Chart, Experiment, Measure, Preset, Row
from kontrast.experiments.outcome import KNN, PROBE, UNIFORMITY
from kontrast.experiments.papers import BESIDE, paper_value, per_set, presets, shorten
from kontrast.recipe import Recipe
from kontrast.recipes import published
from kontrast.runs import Run

# ----------------------------------------------------------------------------------------------------- local separation


EDGES = np.linspace(-1.0, 1.0, 201)
FEW = 12  # runs that are drawn in bins of 0.02; more in bins of 0.04, else 48 of them would be megabytes
NAMES = ("bank_positive", "bank_nearest", "positive", "nearest")


def similarities(folder: Path) -> tuple[np.ndarray, np.ndarray, bool] | None:
    """The cosines of a run: positive ``[n]``, nearest negatives ``[n, k]``, whether they are of the memory bank.

    Returns:
        None for a run whose analysis has neither.
    """
    arrays = Run(folder).arrays(NAMES)
    for before in ("bank_", ""):
        if f"{before}positive" in arrays and f"{before}nearest" in arrays:
            return arrays[f"{before}positive"], arrays[f"{before}nearest"], bool(before)
    return None


def keep_separation(folder: Path) -> dict[str, np.ndarray]:
    """The histograms of a run, for `kontrast.experiments.experiment.Experiment.keeps`."""
    cosines = similarities(folder)
    if cosines is None:
        return {}
    positive, nearest, of_bank = cosines
    columns = np.concatenate([positive[:, None], nearest], axis=1).astype(np.float64)
    inside = np.clip(columns, EDGES[0], EDGES[-1])  # cosines in float32 exceed 1 by a rounding
    counts = np.stack([np.histogram(column, EDGES)[0] for column in inside.T])
    return {"separation": counts.astype(np.uint16), "separation_bank": np.array([of_bank], np.uint8)}


def separation_gap(folder: Path) -> float | None:
    """The mean similarity of the positive minus that of the nearest negative."""
    cosines = similarities(folder)
    return None if cosines is None else float((cosines[0] - cosines[1][:, 0]).mean())


def positive_similarity(folder: Path) -> float | None:
    """The mean similarity of the positive."""
    cosines = similarities(folder)
    return None if cosines is None else float(cosines[0].mean())


def separation_records(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The records of a chart of the kind ``violin``, of the first seed's runs: a panel a temperature (and data set).

    Keys: the row's axes, ``panel``, ``neighbour`` (pos, n1 … n10), ``similarity`` (the middle of a bin), ``share``.

    >>> kept = {"separation": np.eye(2, 200, 150, dtype=np.uint16)}
    >>> row = Row({"data": "svhn", "temperature": 0.1, "seed": 0}, "run", "done", arrays=kept)
    >>> [(r["panel"], r["neighbour"]) for r in separation_records([row]) if r["share"] == 1.0]
    [('τ = 0.1', 'pos'), ('τ = 0.1', 'n1')]
    """
    several = len({row.at.get("data") for row in rows}) > 1
    runs = [(row, arrays) for row, arrays in outcome.analyses(rows) if "separation" in arrays]
    width = 2 if len(runs) <= FEW else 4  # of a bin that is drawn, in those of the histogram
    records = []
    for row, arrays in runs:
        panel = (f"{row.at['data']}, " if several else "") + f"τ = {row.at['temperature']}"
        for k, counts in enumerate(arrays["separation"]):
            name = "pos" if k == 0 else f"n{k}"
            coarse = counts.astype(np.int64).reshape(-1, width).sum(1)
            parts = violin_records(coarse, EDGES[::width], "similarity")
            records += [{**row.at, "panel": panel, "neighbour": name, **part} for part in parts]
    return records


# ------------------------------------------------------------------------------------------------------ the experiments


TEMPERATURES = (0.05, 0.07, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
SETS = ("cifar10", "cifar100", "svhn", "imagenet100")

LINEAR = outcome.accuracy("linear", "linear probe (the paper's where the run has it)", "wang-liu", "probe")
TOLERANCE = outcome.geometry("tolerance", "tolerance", "tolerance of test embeddings")

# The `cpu` scale, for 10,000 images: what a pilot decides stands here.
SMALL: dict[str, Any] = {
    # Views of 24 × 24 pixels and 256 features learn more in the same time (docs/experiments/trials.md).
    "augment": {"views": ["wang-liu"], "size": 24},
    "head": "wang-liu",
    "encoder.width": 16,
    "encoder.features": 256,
    "train.epochs": 200,
    "train.batch_size": 128,
    # The paper's SGD has 78,200 steps at 0.03; 15,800 at 0.1 come to two thirds of its rate × steps (and of its decay).
    "optim": {"name": "sgd", "lr": 0.1, "momentum": 0.9, "weight_decay": 5e-4},
    "schedule": {"name": "multi-step", "milestones": [160, 190], "factor": 0.1},
    "evaluate.protocols": ["wang-liu", "probe", "knn20"],
}
HARD_NEGATIVES = 819  # of 9,999: the 8.19 % that 4,095 are of 50,000
SMALL_TEMPERATURES = {"ordinary": (0.05, 0.07, 0.1, 0.2, 0.4, 1.0), "hard": (0.07, 0.2, 1.0)}

ABOUT_CPU = (
    f"Against the paper: 10,000 images, and small-resnet (width {SMALL['encoder.width']}, "
    f"{SMALL['encoder.features']} features) for ResNet-18; training views of {SMALL['augment']['size']} pixels a side, "
    f"evaluation at the images' own; SGD at {SMALL['optim']['lr']} for 0.03, since as many epochs have a fifth of the "
    "steps; ordinary loss at "
    f"{len(SMALL_TEMPERATURES['ordinary'])} of the twelve temperatures, hard loss at "
    f"{len(SMALL_TEMPERATURES['hard'])}; it keeps {HARD_NEGATIVES} of 9,999 negatives (the paper 4,095 of 50,000). "
    "The paper's probe (rate 30, made for 512 features) gives the linear accuracy; one whose rate is chosen on "
    "held-out training rows stands beside it. Memory bank, one view, views, linear head and weight decay are the "
    f"paper's. Epochs {SMALL['train.epochs']}, batch {SMALL['train.batch_size']}, steps at "
    f"{SMALL['schedule']['milestones']} (the paper's: 200, 128, 160 and 190)."
)


def paper(loss: str, at: At) -> Recipe:
    """The paper's run at a place."""
    kind = "instance" if loss == "ordinary" else f"instance-{loss}"
    recipe = recipes.find(f"{kind}-{at['data']}")
    return recipe if at["temperature"] is None else recipe.override({"method.temperature": at["temperature"]})


def cpu(loss: str, at: At) -> Recipe:
    """The memory bank on a small encoder."""
    about = f"A cell of Wang & Liu's experiments at a small scale: {loss} loss, memory bank."
    changes: dict[str, Any] = {"name": f"wang-liu-{loss}", "about": about, "data": at["data"], "method.loss": loss}
    changes |= SMALL
    if at["temperature"] is not None:
        changes["method.temperature"] = at["temperature"]
    if loss.startswith("hard"):
        changes["method.hard_negatives"] = HARD_NEGATIVES
    return recipes.find("instance-fashion-mini").override(changes)


def smoke(recipe: Recipe) -> Recipe:
    """The smoke run of a recipe."""
    changes: dict[str, Any] = {"train.epochs": 1, "encoder.width": 4, "schedule": "constant"}
    if "hard_negatives" in recipe.method.options:
        changes["method.hard_negatives"] = 15
    return shorten(recipe, changes)


def small_grid(at: At) -> bool:
    """The hard loss has fewer of the temperatures that the ordinary one has by default; others are the user's own."""
    dropped = set(SMALL_TEMPERATURES["ordinary"]) - set(SMALL_TEMPERATURES["hard"])
    return at.get("loss") != "hard" or at["temperature"] not in dropped


def study(
    loss: str | None,
    beside: str = f" {BESIDE}",
    *,
    temperatures: Sequence[float | None] | None = None,
    few: Sequence[float | None] = (0.1, 0.3, 1.0),
) -> dict[str, Preset]:
    """Of a table with one loss, or with the loss as an axis; ``temperatures`` are the cpu's, ``few`` the smoke's."""

    def with_loss(recipe_of: Callable[[str, At], Recipe]) -> Callable[[At], Recipe]:
        return lambda at: recipe_of(loss or str(at["loss"]), at)

    return presets(
        with_loss(paper),
        with_loss(cpu),
        smoke,
        about=ABOUT_CPU + beside,
        axes={"temperature": temperatures or SMALL_TEMPERATURES[loss or "ordinary"]},
        few={"temperature": few},
        full="As the paper; three seeds (it has one run a cell); see the recipes for what is not stated there.",
        keep=small_grid,
    )


def main_table(at: At, measure: str) -> float | None:
    """The main text's Table 1, where it has the loss and the temperature."""
    column = {"linear": 0, "uniformity": 1, "tolerance": 2}.get(measure)
    data = published.printed_set(at["data"], SETS)
    if column is None or data is None:
        return None
    values = published.WANG_LIU_MAIN[data].get((str(at["loss"]), at["temperature"]))  # type: ignore[arg-type]
    return None if values is None else values[column]


def is_simple(loss: Any) -> bool:
    """Whether the loss knows no temperature."""
    return "simple" in str(loss)


OF = "cosine; training views against the bank where there is one, else test embeddings"

# The paper finds the best temperature at 0.2 or 0.3 on every set; 0.5 is the middle of its range of temperatures.
TOP_BEFORE = 0.5


TABLES = {loss: {data: tables[loss] for data, tables in published.WANG_LIU.items()} for loss in ("ordinary", "hard")}
"""The supplement's Tables 1 and 2."""


def _table(number: int, loss: str) -> Experiment:
    ordinary = loss == "ordinary"
    shape = (
        per_set.rises_then_falls(
            "accuracy rises, then falls with the temperature (a reverse U), and is best at a small one (its top is "
            f"below {TOP_BEFORE:g})",
            "linear",
            "temperature",
            before=TOP_BEFORE,
        )
        if ordinary
        else per_set.rises("with the hard loss accuracy rises with the temperature", "linear", "temperature")
    )
    return Experiment(
        name=f"wl-table-{number}",
        title=f"Linear accuracy against temperature, {loss} contrastive loss",
        source=f"Wang & Liu, supplement, Table {number}; main text, Figure 9",
        axes={"data": SETS, "temperature": TEMPERATURES},
        presets=study(loss),
        measures=(LINEAR, PROBE, KNN, UNIFORMITY, TOLERANCE),
        rows="temperature",
        published=paper_value(TABLES[loss], lambda at: at["temperature"]),
        claims=[shape],
        charts=[Chart("accuracy", "Linear accuracy (%)", "line", "temperature", "linear", panel="data", log_x=True)],
    )


ORDINARY, HARD, SIMPLE, HARD_SIMPLE = ({"loss": loss} for loss in ("ordinary", "hard", "simple", "hard-simple"))
BOTH = {"data": SETS, "loss": ("ordinary", "hard"), "temperature": TEMPERATURES}
MARGIN = 1.0  # points below which two losses count as equally good
SMALL_TAUS = (0.05, 0.07, 0.1, 0.2)  # up to the best of the paper's, where it separates

GAP_FALLS = per_set.falls(
    "the gap between the positive and the nearest negatives falls with the temperature",
    "gap",
    "temperature",
    where=ORDINARY,
)
POSITIVE_RISES = per_set.rises(
    "positives come closer to 1 as the temperature rises", "positive", "temperature", where=ORDINARY
)
HARD_GAP_FALLS = per_set.falls(
    "with the hard loss too the gap falls with the temperature", "gap", "temperature", where=HARD
)

EXPERIMENTS = [
    _table(1, "ordinary"),
    _table(2, "hard"),
    Experiment(
        name="wl-uniformity-tolerance",
        title="Uniformity and tolerance against temperature, ordinary and hard loss",
        source="Wang & Liu, Figures 4 to 7 and Table 1 of the main text",
        axes=BOTH,
        presets=study(None),
        measures=(UNIFORMITY, TOLERANCE),
        rows="temperature",
        published=main_table,
        claims=[
            per_set.falls(
                "with the ordinary loss uniformity falls with the temperature",
                "uniformity",
                "temperature",
                where=ORDINARY,
            ),
            per_set.rises(
                "with the ordinary loss tolerance rises with the temperature",
                "tolerance",
                "temperature",
                where=ORDINARY,
            ),
            per_set.varies_less(
                "the hard loss's uniformity varies less across temperatures than the ordinary loss's",
                "uniformity",
                "temperature",
                HARD,
                ORDINARY,
                pooled=True,
            ),
            per_set.higher(
                "the hard loss is more uniform than the ordinary one", "uniformity", HARD, ORDINARY, pooled=True
            ),
        ],
        charts=[
            Chart("uniformity", "−uniformity", "line", "temperature", "uniformity", "loss", "data", log_x=True),
            Chart("tolerance", "Tolerance", "line", "temperature", "tolerance", "loss", "data", log_x=True),
        ],
    ),
    Experiment(
        name="wl-losses",
        title="Ordinary, simple, hard and hard-simple contrastive loss",
        source="Wang & Liu, main text, Table 1",
        axes={
            "data": SETS,
            "loss": ("ordinary", "simple", "hard", "hard-simple"),
            "temperature": (0.07, 0.3, 0.7, 1.0, None),
        },
        keep=lambda at: is_simple(at["loss"]) == (at["temperature"] is None),
        presets=study(None, temperatures=(*SMALL_TEMPERATURES["hard"], None), few=(0.3, None)),
        measures=(LINEAR, PROBE, KNN, UNIFORMITY, TOLERANCE),
        rows="loss",
        published=main_table,
        claims=[
            per_set.lower(
                "the simple loss, which weighs all negatives alike, is worse than the ordinary one",
                "linear",
                SIMPLE,
                ORDINARY,
                pooled=True,
            ),
            per_set.higher(
                "with hard negatives alone the simple loss is better than with all",
                "linear",
                HARD_SIMPLE,
                SIMPLE,
                pooled=True,
            ),
            per_set.not_below(
                f"with hard negatives alone it is as good as the ordinary loss (not below it by {MARGIN:g} point)",
                "linear",
                HARD_SIMPLE,
                ORDINARY,
                MARGIN,
                pooled=True,
            ),
            per_set.higher(
                "the simple loss's embeddings are the least uniform", "uniformity", ORDINARY, SIMPLE, pooled=True
            ),
        ],
        charts=[Chart("accuracy", "Linear accuracy (%)", "points", "loss", "linear", "temperature", "data")],
    ),
    Experiment(
        name="wl-separation",
        title="Local separation: the positive and the ten nearest negatives",
        source="Wang & Liu, Figure 8; supplement, Figures 1 to 7",
        axes=BOTH,
        presets=study(None, beside=""),
        measures=(
            Measure("gap", f"positive − nearest negative ({OF})", separation_gap, digits=3, kind="geometry"),
            Measure("positive", f"positive ({OF})", positive_similarity, digits=3, kind="geometry"),
        ),
        rows="temperature",
        claims=[
            GAP_FALLS,
            POSITIVE_RISES,
            HARD_GAP_FALLS,
            per_set.stays(
                "at small temperatures (to 0.2) the positive is nearer than the nearest negative",
                "gap",
                0.0,
                where={**ORDINARY, "temperature": SMALL_TAUS},
            ),
            per_set.higher(
                "at τ = 1 the hard loss separates more than the ordinary one",
                "gap",
                {**HARD, "temperature": 1.0},
                {**ORDINARY, "temperature": 1.0},
            ),
            claims.everywhere("the gap falls with the temperature on all data sets", GAP_FALLS),
            claims.everywhere("positives come closer to 1 on all data sets", POSITIVE_RISES),
            claims.everywhere("the hard loss's gap falls with the temperature on all data sets", HARD_GAP_FALLS),
        ],
        charts=[
            Chart(
                "separation",
                "Similarity of the positive and of the ten nearest negatives (line: median; first seed)",
                "violin",
                "neighbour",
                "similarity",
                "loss",
                "panel",
                data=separation_records,
            )
        ],
        keeps=keep_separation,
    ),
]
