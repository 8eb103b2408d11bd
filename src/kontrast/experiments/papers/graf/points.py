"""Points without an encoder: the toy example on the sphere, and batches of every label configuration on the circle."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kontrast.experiments import claims, outcome
from kontrast.experiments.cell import At, Task
from kontrast.experiments.experiment import Chart, Experiment, Preset, Row
from kontrast.files import read_npz, whole_file
from kontrast.runs import Run

# ---------------------------------------------------------------------------------------------------------------- tasks


# The authors' two settings, SC beside cross-entropy, and TCL with the temperature of SC.
SETTINGS: dict[str, dict[str, Any]] = {
    "sc": {"loss": "sc", "temperature": 0.3, "steps": 500, "learning_rate": 7.5},
    "ce-l2": {"loss": "ce-l2", "weight_penalty": 0.05, "steps": 500, "learning_rate": 7.5},
    "ce-l2-long": {"loss": "ce-l2", "weight_penalty": 0.005, "steps": 1000, "learning_rate": 10.0},
    "tcl": {"loss": "tcl", "temperature": 0.3, "k1": 5.0, "k2": 1.0, "steps": 1000},
}
CLASSES, EACH, SPACE = 4, 100, 3


def toy(folder: Path, *, setting: str, seed: int) -> dict[str, Any]:
    """Four classes of a hundred points on S²; the whole way is kept for drawing."""
    from kontrast.theory.free_points import free_points  # with torch: the names of experiments are listed without it

    result = free_points(num_classes=CLASSES, per_class=EACH, dim=SPACE, seed=seed, **SETTINGS[setting])
    arrays = {name: getattr(result, name).numpy() for name in ("labels", "steps", "values", "bounds")}
    arrays["path"] = result.path.float().numpy()
    if result.weight_path is not None:
        arrays["weight_path"] = result.weight_path.float().numpy()
    with whole_file(Run(folder).points_file) as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    length, best = result.weight_radius, result.optimal_weight_radius
    return {
        **{name: getattr(result, name) for name in ("loss", "bound", "excess")},
        "cosine": result.deviation.cosine,
        "collapse": result.deviation.collapse,
        "weight_radius": length,
        "optimal_weight_radius": best,
        "radius": None if length is None or best is None else abs(length - best),
        **SETTINGS[setting],
    }


def configuration(folder: Path, *, labels: str, seed: int) -> dict[str, Any]:
    """The minimiser of a batch of nine with so many of each of three classes, or of the sum over all batches."""
    from kontrast.theory.label_configurations import Minimiser, minimise_all_batches, minimise_configuration

    if labels == "all batches":
        least: Minimiser = minimise_all_batches(3, per_class=3, batch_size=9, dim=2, seed=seed)
    else:
        least = minimise_configuration([int(count) for count in labels.split("-")], seed=seed)
    with whole_file(Run(folder).points_file) as file:
        np.savez_compressed(file, points=least.points.numpy(), labels=least.labels.numpy())
    values = {"value": least.value, "gap": least.simplex_gap, "slope": least.slope, "collapse": least.collapse}
    return {**values, "cosines": least.cosines.nan_to_num(nan=0.0).tolist()}


# ---------------------------------------------------------------------------------- graf-toy, graf-label-configurations


FORMERLY = "kontrast.experiments.papers.graf._points"  # where the tasks stood when their folders got their names


def _toy(at: At) -> Task:
    return Task(f"{__name__}:toy", {"setting": at["setting"], "seed": at["seed"]}, formerly=f"{FORMERLY}:toy")


def _configuration(at: At) -> Task:
    options = {"labels": at["labels"], "seed": at["seed"]}
    return Task(f"{__name__}:configuration", options, formerly=f"{FORMERLY}:configuration")


def _keep_points(folder: Path) -> dict[str, np.ndarray]:
    return dict(read_npz(Run(folder).points_file, "remove its folder, and it is made again"))


def _keep_path(folder: Path) -> dict[str, np.ndarray]:
    """Where the points began and ended, the weights at the end, and the loss above its bound along the way."""
    arrays = _keep_points(folder)
    content = {
        "labels": arrays["labels"].astype(np.int16),
        "start": arrays["path"][0].astype(np.float32),
        "end": arrays["path"][-1].astype(np.float32),
        "steps": arrays["steps"].astype(np.int32),
        "above": (arrays["values"] - arrays["bounds"]).astype(np.float64),
    }
    if "weight_path" in arrays:
        content |= {f"weights_{when}": arrays["weight_path"][at] for when, at in (("start", 0), ("end", -1))}
    return content


def _path_records(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The loss above its bound along the way."""
    records = []
    for row in rows:
        for step, above in zip(row.arrays.get("steps", ()), row.arrays.get("above", ()), strict=True):
            records.append({**row.at, "step": int(step), "above": max(float(above), 1e-12)})
    return records


WEIGHT_LENGTH = 1.2  # at which weights are drawn: it is their directions that a figure compares


def sphere_records(rows: Sequence[Row]) -> list[dict[str, Any]]:
    r"""The points of S² of the first seed, before and after, seen from between two classes.

    The view is along the mean of the first two class means at the end, m_1 + m_2; across lies m_1 − m_2, and up
    m_3 − m_4. A regular simplex of four is seen as a square on its corner, two classes in front (filled), two behind.
    """
    records = []
    for when in ("start", "end"):
        for row in rows:
            if row.at.get("seed") != 0 or "end" not in row.arrays:
                continue
            labels = row.arrays["labels"]
            view = _view(row.arrays["end"], labels)
            groups = {"point": (row.arrays[when] @ view, labels)}
            if f"weights_{when}" in row.arrays:
                weights = np.asarray(row.arrays[f"weights_{when}"], dtype=np.float64)
                length = np.linalg.norm(weights, axis=1, keepdims=True)
                groups["weight"] = (WEIGHT_LENGTH * weights / np.maximum(length, 1e-12) @ view, np.arange(len(weights)))
            panel = f"{row.at['setting']}, {'before' if when == 'start' else 'after'}"
            for what, (places, classes) in groups.items():
                for (x, y, depth), label in zip(places.tolist(), classes.tolist(), strict=True):
                    mark = what if what == "weight" else "front" if depth >= 0 else "behind"
                    records.append({"x": x, "y": y, "class": f"class {label + 1}", "panel": panel, "mark": mark})
    return records


def _view(points: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Right, up and towards the viewer as the columns of a rotation."""
    means = np.stack([points[labels == k].mean(0) for k in range(4)]).astype(np.float64)
    axes = np.stack([means[0] - means[1], means[2] - means[3], means[0] + means[1]], axis=1)
    u, _, v = np.linalg.svd(axes / np.maximum(np.linalg.norm(axes, axis=0), 1e-12))
    return np.asarray(u @ v)  # the nearest orthonormal columns


STACKED = 0.11  # how far apart points at one place are drawn, inwards
SAME_PLACE = 0.02  # radians


def circle_records(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The minimisers of the first seed on the circle, class 1 on top; points at one place are stacked inwards."""
    records = []
    for row in rows:
        if row.at.get("seed") != 0 or "points" not in row.arrays:
            continue
        points, labels = np.asarray(row.arrays["points"], dtype=np.float64), row.arrays["labels"]
        angles = np.arctan2(points[:, 1], points[:, 0])
        top = points[labels == labels.min()].mean(0)
        angles = angles - np.arctan2(top[1], top[0]) + np.pi / 2
        places: list[float] = []
        for angle, label in zip(angles.tolist(), labels.tolist(), strict=True):
            below = sum(abs(math.remainder(angle - other, math.tau)) < SAME_PLACE for other in places)
            places.append(angle)
            radius = 1 - STACKED * below
            x, y = radius * math.cos(angle), radius * math.sin(angle)
            records.append({"x": x, "y": y, "class": f"class {label + 1}", "panel": str(row.at["labels"])})
    return records


def same(preset: Preset, smoke_axes: dict[str, Any]) -> dict[str, Preset]:
    """One scale for all: what trains no encoder is as quick as it is."""
    few = Preset(preset.about, preset.make, seeds=1, axes=smoke_axes)
    return {"paper": preset, "cpu": preset, "smoke": few}


CONFIGURATIONS = (
    "9-0-0", "8-1-0", "7-2-0", "7-1-1", "6-3-0", "6-2-1", "5-4-0", "5-3-1", "5-2-2", "4-4-1", "4-3-2", "3-3-3",
    "all batches",
)  # fmt: skip

TOY = Experiment(
    name="graf-toy",
    title="Four classes of free points on the sphere, minimising SC, CE with a penalty, and TCL",
    source="Graf et al., numerical simulation",
    axes={"setting": tuple(SETTINGS)},
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
    charts=[
        Chart("loss", "Loss above its bound", "curve", "step", "above", "setting", data=_path_records),
        Chart(
            "sphere",
            "400 points on the sphere, before and after (hollow: behind; diamonds: weights, drawn at one length)",
            "plane",
            "x",
            "y",
            "class",
            "panel",
            data=sphere_records,
        ),
    ],
    keeps=_keep_path,
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
            "other batches are least elsewhere (5-2-2 against 3-3-3)", "gap", {"labels": "5-2-2"}, {"labels": "3-3-3"}
        ),
    ],
    charts=[
        Chart("gap", "The simplex's loss above the least", "points", "labels", "gap"),
        Chart(
            "circle",
            "Where the loss of a batch is least, by rows of each class (points at one place are stacked inwards)",
            "plane",
            "x",
            "y",
            "class",
            "panel",
            data=circle_records,
        ),
    ],
    keeps=_keep_points,
)
