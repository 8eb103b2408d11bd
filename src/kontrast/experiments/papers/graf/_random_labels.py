"""Steps until random labels are fitted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kontrast import recipes
from kontrast.experiments import claims, outcome
from kontrast.experiments.cell import At
from kontrast.experiments.experiment import Chart, Experiment, Measure, Preset
from kontrast.experiments.papers.graf._scale import METHODS, SETS, SMOKE, cpu, smoke, views
from kontrast.recipe import Recipe

FRACTIONS = tuple(round(0.1 * i, 1) for i in range(11))
FIT = 3000  # steps at most


def _labels_cpu(at: At) -> Recipe:
    changes: dict[str, Any] = {
        **views(False),
        "name": f"graf-random-{at['method']}",
        "data.limit": 1000,
        "encoder.width": 8,
        "data.noise": at["fraction"],
        "train.steps": FIT,
        "train.fit_every": 20,
        "evaluate.protocols": [],
    }
    return cpu(str(at["method"]), at["data"], changes)


def _labels_paper(at: At) -> Recipe:
    made = recipes.find(f"{at['method']}-{at['data']}-random-labels")
    return made.override({"data.noise": at["fraction"]})


def _steps(folder: Path) -> float | None:
    found = outcome.result(folder)
    return float(found["fitted_at"] or found["steps"])


def _censored(folder: Path) -> float | None:
    return float(outcome.result(folder)["fitted_at"] is None)


RANDOM_LABELS = Experiment(
    name="graf-random-labels",
    title="Steps until random labels are fitted",
    source="Graf et al., random labels",
    axes={"data": SETS, "method": METHODS, "fraction": FRACTIONS},
    presets={
        "paper": Preset(
            "As the paper, three seeds; fitted means every training label predicted, asked every 500 steps.",
            _labels_paper,
            seeds=3,
        ),
        "cpu": Preset(
            "Against the paper: 1,000 images of fashion-mini and small-resnet (width 8) for the whole sets and "
            f"ResNet-18; batches of 128 for 256; at most {FIT:,} steps for 100,000, asked every 20; fitted means "
            "every training label predicted. Runs that do not fit in time are censored.",
            _labels_cpu,
            seeds=3,
            axes={"data": ("fashion-mini",), "fraction": (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)},
        ),
        "smoke": Preset(
            SMOKE,
            lambda at: smoke(_labels_cpu(at)),
            seeds=2,
            axes={"data": ("fashion-mini",), "fraction": (0.0, 0.5, 1.0)},
        ),
    },
    measures=(
        Measure("steps", "steps until every training label is predicted", _steps, 0),
        Measure("censored", "share of runs that did not fit in time", _censored, 2),
    ),
    rows="fraction",
    claims=[
        claims.convex(
            "SC fits random labels superlinearly in their fraction",
            "steps",
            "fraction",
            where={"method": "sc"},
            within=("data",),
        ),
        claims.rises(
            "SC needs more steps the more labels are random",
            "steps",
            "fraction",
            where={"method": "sc"},
            within=("data",),
            scale="linear",
        ),
        claims.varies_less(
            "CE's steps depend less on the fraction than SC's",
            "steps",
            "fraction",
            {"method": "ce"},
            {"method": "sc"},
            within=("data",),
        ),
        claims.more_convex(
            "SC's curve is more convex than CE's",
            "steps",
            "fraction",
            {"method": "sc"},
            {"method": "ce"},
            within=("data",),
        ),
    ],
    charts=[Chart("steps", "Steps until fitted", "line", "fraction", "steps", "method", "data")],
)
