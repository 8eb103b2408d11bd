"""Points without an encoder: the toy example, and batches of every label configuration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kontrast.experiments import claims, outcome
from kontrast.experiments.cell import At, Task
from kontrast.experiments.experiment import Chart, Experiment, Preset, Row
from kontrast.files import read_npz


def _toy(at: At) -> Task:
    return Task("kontrast.experiments.papers.graf._points:toy", {"setting": at["setting"], "seed": at["seed"]})


def _configuration(at: At) -> Task:
    return Task("kontrast.experiments.papers.graf._points:configuration", {"labels": at["labels"], "seed": at["seed"]})


def _path_records(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The loss above its bound along the way."""
    records = []
    for row in rows:
        if row.status == "done" and row.path is not None:
            arrays = read_npz(row.path / "points.npz", "remove its folder, and it is made again")
            for step, value, bound in zip(arrays["steps"], arrays["values"], arrays["bounds"], strict=True):
                above = max(float(value - bound), 1e-12)
                records.append({**row.at, "step": int(step), "above": above})
    return records


def same(preset: Preset, smoke_axes: dict[str, Any]) -> dict[str, Preset]:
    """One scale for all: what trains no encoder is as quick as it is."""
    few = Preset(preset.about, preset.make, seeds=1, axes=smoke_axes)
    return {"paper": preset, "cpu": preset, "smoke": few}


SETTINGS = ("sc", "ce-l2", "ce-l2-long", "tcl")
CONFIGURATIONS = (
    "9-0-0", "8-1-0", "7-2-0", "7-1-1", "6-3-0", "6-2-1", "5-4-0", "5-3-1", "5-2-2", "4-4-1", "4-3-2", "3-3-3",
    "all batches",
)  # fmt: skip

TOY = Experiment(
    name="graf-toy",
    title="Four classes of free points on the sphere, minimising SC, CE with a penalty, and TCL",
    source="Graf et al., numerical simulation",
    axes={"setting": SETTINGS},
    presets=same(
        Preset(
            "As the authors' notebook, with our step sizes where theirs need thousands of steps; TCL is ours.",
            _toy,
            seeds=3,
        ),
        {"setting": ("sc", "ce-l2")},
    ),
    measures=(
        outcome.value("excess", "loss above its lower bound", 8),
        outcome.value("cosine", "largest |cosine of class means − (−1/3)|", 6),
        outcome.value("collapse", "largest distance of a point from its class mean", 6),
        outcome.value("radius", "|weight length − r_W|", 6),
    ),
    rows="setting",
    claims=[
        claims.near("the loss reaches its bound", "excess", 0.0, 1e-4),
        claims.near("class means form the regular simplex", "cosine", 0.0, 1e-2),
        claims.near("classes collapse to points", "collapse", 0.0, 1e-2),
        claims.near(
            "with a penalty the weights have the length r_W",
            "radius",
            0.0,
            1e-2,
            where={"setting": ("ce-l2", "ce-l2-long")},
        ),
    ],
    charts=[Chart("loss", "Loss above its bound", "curve", "step", "above", "setting", data=_path_records)],
)

CONFIGURED = Experiment(
    name="graf-label-configurations",
    title="Where the loss of one batch is least, by its labels, and where that of all batches",
    source="Graf et al., theory: challenges (K = 3, batch 9, on the circle)",
    axes={"labels": CONFIGURATIONS},
    presets=same(
        Preset(
            "As the paper; the best of several starts by L-BFGS for one descent. Three points a class for the "
            "sum over all batches.",
            _configuration,
            seeds=3,
        ),
        {"labels": ("9-0-0", "5-2-2", "3-3-3")},
    ),
    measures=(
        outcome.value("value", "least loss of such a batch", 4),
        outcome.value("gap", "the simplex's loss above it", 6),
    ),
    rows="labels",
    claims=[
        claims.near("the balanced batch is least at the simplex", "gap", 0.0, 1e-6, where={"labels": "3-3-3"}),
        claims.near("so is the sum over all batches", "gap", 0.0, 1e-3, where={"labels": "all batches"}),
        claims.higher(
            "other batches are least elsewhere (5-2-2 against 3-3-3)",
            "gap",
            {"labels": "5-2-2"},
            {"labels": "3-3-3"},
        ),
    ],
    charts=[Chart("gap", "The simplex's loss above the least", "points", "labels", "gap")],
)
