"""Steps until random labels are fitted, and how rows of other classes act on a row of SC meanwhile.

The criterion is one for all methods: every training label predicted by a linear classifier that is fitted anew on the
frozen features (`kontrast.train.fitting`). The interaction of rows (`kontrast.train.interaction`) is measured in the
same runs, at the same steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kontrast import recipes
from kontrast.experiments.cell import At
from kontrast.experiments.experiment import Chart, Experiment, Measure, Row
from kontrast.experiments.papers import per_set, presets
from kontrast.experiments.papers.graf.encoders import CE, METHODS, OFF, S1, S2, S3, SC, SETS, cpu, smoke, views
from kontrast.recipe import Recipe
from kontrast.runs import Run

# What pilots decide about the preset `cpu`: so many images that CE's time rises with the fraction too.
IMAGES, WIDTH, BATCH, RATE, SEEDS = 5000, 16, 128, 0.1, 4
STEPS, EVERY = 6000, 50  # steps at most, and how often the criterion is asked
CPU_FRACTIONS = (0.0, 0.25, 0.5, 0.75, 1.0)
FRACTIONS = tuple(round(0.1 * i, 1) for i in range(11))
LINEAR = 1 / 8  # "about linear": the curve bends at most half as much against its rise as a square does
MOST_KEPT = 100  # evaluations of a run that its figures draw


def _labels_cpu(at: At) -> Recipe:
    changes: dict[str, Any] = {
        **views(False),
        "name": f"graf-random-{at['method']}",
        "data.limit": IMAGES,
        "encoder.width": WIDTH,
        "data.noise": at["fraction"],
        "train.steps": STEPS,
        "train.fit_every": EVERY,
        "train.batch_size": BATCH,
        "optim.lr": RATE,
        "schedule": "constant",
        "evaluate.protocols": [],
    }
    return cpu(str(at["method"]), at["data"], changes)


def _labels_paper(at: At) -> Recipe:
    return recipes.find(f"{at['method']}-{at['data']}-random-labels").override({"data.noise": at["fraction"]})


def _steps(folder: Path) -> float | None:
    result = Run(folder).read_result()
    steps = result.fitted_at or result.steps
    return None if steps is None else float(steps)


def _censored(folder: Path) -> float | None:
    return float(Run(folder).read_result().fitted_at is None)


STEPS_TO_FIT = Measure("steps", "steps until every training label is predicted", _steps, 0, kind="accuracy")
CENSORED = Measure("censored", "share of runs that did not fit in time", _censored, 2)


def evaluations(folder: Path) -> list[dict[str, Any]]:
    """The lines of the run's log that say how much is fitted."""
    return [dict(line) for line in Run(folder).metrics() if "fitted" in line]


def keep_evaluations(folder: Path) -> dict[str, np.ndarray]:
    """Step, share of labels fitted, and the interaction by batch composition; thinned to `MOST_KEPT` evaluations."""
    lines = evaluations(folder)
    if not lines:
        return {}
    few = [lines[i] for i in np.unique(np.linspace(0, len(lines) - 1, min(len(lines), MOST_KEPT)).astype(int))]
    names = [key for key in few[0] if key == "fitted" or key.startswith("interaction/")]
    columns = {
        name.removeprefix("interaction/"): np.array([line.get(name, np.nan) for line in few], dtype=np.float32)
        for name in names
    }
    return {"step": np.array([line["step"] for line in few], dtype=np.int32), **columns}


def fit_records(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The share of labels fitted along the way, of the first seed."""
    return _along(rows, {"fitted": "fitted"}, lambda row: str(row.at["method"]))


def _along(
    rows: Sequence[Row], names: dict[str, str], panel: Callable[[Row], str] | None = None
) -> list[dict[str, Any]]:
    """A record an evaluation and a name, for rows of the first seed that have it."""
    records = []
    for row in rows:
        if row.at.get("seed") != 0 or "step" not in row.arrays:
            continue
        for key, name in names.items():
            for step, value in zip(row.arrays["step"], row.arrays.get(key, ()), strict=False):
                if np.isfinite(value):
                    records.append(
                        {**row.at, "step": int(step), "value": float(value), "panel": panel(row) if panel else name}
                    )
    return records


ABOUT_FIT = (
    f"Against the paper: at most {IMAGES:,} images of fashion-mini and small-resnet (width {WIDTH}) for the "
    f"whole sets and ResNet-18; batches of {BATCH} for 256; at most {STEPS:,} steps for 100,000, asked every "
    f"{EVERY}; a constant rate, for one that decays within so few steps would end the fitting by itself. Fitted "
    "means that a linear classifier fitted anew on the frozen features predicts every training label, for all methods. "
    "Runs that do not fit in time are censored."
)
ABOUT_PAPER = "As the paper, three seeds; fitted: every training label predicted, asked every 500 steps."

RANDOM_LABELS = Experiment(
    name="graf-random-labels",
    title="Steps until random labels are fitted",
    source="Graf et al., random labels",
    axes={"data": SETS, "method": METHODS, "fraction": FRACTIONS},
    presets=presets(
        _labels_paper,
        _labels_cpu,
        smoke,
        about=ABOUT_FIT,
        axes={"method": ("ce", "sc"), "fraction": CPU_FRACTIONS},
        few={"method": METHODS, "fraction": (0.0, 0.5, 1.0)},
        seeds=SEEDS,
        full=ABOUT_PAPER,
    ),
    measures=(STEPS_TO_FIT, CENSORED, OFF, S1, S2, S3),
    rows="fraction",
    claims=[
        per_set.about_linear(
            "CE's steps grow about linearly with the fraction", "steps", "fraction", where=CE, share=LINEAR
        ),
        per_set.convex("SC fits random labels superlinearly in their fraction", "steps", "fraction", where=SC),
        per_set.rises("SC needs more steps the more labels are random", "steps", "fraction", where=SC, scale="linear"),
        per_set.varies_less("CE's steps depend less on the fraction than SC's", "steps", "fraction", CE, SC),
        per_set.more_convex("SC's curve is more convex than CE's", "steps", "fraction", SC, CE),
        per_set.higher(
            "random labels take SC longer than CE (implicit regularisation)",
            "steps",
            {"method": "sc", "fraction": 1.0},
            {"method": "ce", "fraction": 1.0},
        ),
        per_set.lower(
            "where every label is fitted, SC stands closer to the simplex than CE (other dynamics, same minimiser)",
            "off",
            SC,
            CE,
        ),
    ],
    charts=[
        Chart("steps", "Steps until fitted", "line", "fraction", "steps", "method", "data"),
        Chart(
            "fitting",
            "Share of training labels that a fresh linear classifier predicts (first seed)",
            "curve",
            "step",
            "value",
            "fraction",
            "panel",
            data=fit_records,
        ),
    ],
    keeps=keep_evaluations,
)

# ------------------------------------------------------------------------------------- open question 3: interaction

KINDS = {"share": "share from other classes", "net": "left after pull and push cancel", "agreement": "agreement"}
ROWS = "rows of the class"  # in a batch; an axis of a chart
MEASURED = 8  # rows of the class in the batch of 128, nearest to a tenth of it among the compositions


def interaction(name: str, title: str) -> Measure:
    """The mean over a run's evaluations, until its labels are fitted, at one batch composition."""

    def mean(folder: Path) -> float | None:
        key = f"interaction/{name}_{MEASURED}"
        values = [line[key] for line in evaluations(folder) if line.get(key) is not None]
        return float(np.mean(values)) if values else None

    return Measure(name, f"{title}, {MEASURED} rows of its class in the batch", mean)


def interaction_records(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The three measures along training, of the first seed."""
    return _along(rows, {f"{kind}_{MEASURED}": name for kind, name in KINDS.items()})


def composition_records(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Means over a run's evaluations, by the number of rows of its class, of the first seed."""
    records = []
    for row in rows:
        if row.at.get("seed") == 0:
            for key, values in row.arrays.items():
                kind, _, own = key.rpartition("_")
                if kind in KINDS and np.isfinite(values).any():
                    at = {"fraction": row.at["fraction"], "panel": KINDS[kind]}
                    records.append({**at, ROWS: int(own), "value": float(np.nanmean(values))})
    return sorted(records, key=lambda record: (list(KINDS.values()).index(record["panel"]), record[ROWS]))


INTERACTION = Experiment(
    name="graf-interaction",
    title="Why SC is slow on random labels: how rows of other classes act on a row",
    source="Graf et al., open question 3 (interaction terms); no numbers in the paper",
    axes={"data": SETS, "method": ("sc",), "fraction": (0.0, 1.0)},
    presets=presets(
        _labels_paper,
        _labels_cpu,
        smoke,
        about="The SC runs of graf-random-labels, without and with random labels. " + ABOUT_FIT,
        seeds=SEEDS,
        full=ABOUT_PAPER + " The runs of graf-random-labels.",
    ),
    measures=(
        interaction("share", "share of the force on a row that comes from other classes"),
        interaction("net", "what is left of pull and push after they cancel (1: all)"),
        interaction("agreement", "agreement of the forces over batches with other rows (1: the others do not matter)"),
        STEPS_TO_FIT,
        CENSORED,
    ),
    rows="fraction",
    claims=[
        per_set.lower("with random labels pull and push cancel more", "net", {"fraction": 1.0}, {"fraction": 0.0}),
        per_set.lower(
            "with random labels the force on a row depends more on which other rows are in the batch",
            "agreement",
            {"fraction": 1.0},
            {"fraction": 0.0},
        ),
    ],
    charts=[
        Chart(
            "training",
            f"Along training, {MEASURED} rows of the class in the batch (first seed)",
            "curve",
            "step",
            "value",
            "fraction",
            "panel",
            data=interaction_records,
        ),
        Chart(
            "composition",
            "By the number of rows of the class in the batch (mean over training, first seed)",
            "line",
            ROWS,
            "value",
            "fraction",
            "panel",
            log_x=True,
            data=composition_records,
        ),
    ],
    keeps=keep_evaluations,
)
