"""How near a simplex trained representations are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from kontrast import recipes
from kontrast.experiments import claims, outcome
from kontrast.experiments.cell import At
from kontrast.experiments.experiment import Chart, Experiment, Measure, Preset, Row
from kontrast.experiments.papers.graf._scale import ABOUT_CPU, ERROR, SETS, SMOKE, cpu, smoke, views
from kontrast.recipe import Recipe

KINDS = ("ce", "ce-fix", "ce-random", "sc", "sc-projector")


def _kind(kind: str) -> tuple[str, dict[str, Any]]:
    """The method and the changes of a kind: fixed random weights, or a projector before the loss."""
    if kind == "ce-random":
        return "ce-fix", {"method.weights": "random"}
    if kind == "sc-projector":
        return "sc", {"head": "tcl"}
    return kind, {}


def _geometry_cpu(at: At) -> Recipe:
    method, changes = _kind(str(at["method"]))
    return cpu(method, at["data"], {**views(False), **changes, "name": f"graf-{at['method']}"})


def _geometry_paper(at: At) -> Recipe:
    method, changes = _kind(str(at["method"]))
    return recipes.find(f"{method}-{at['data']}").override(changes)


BETWEEN = {"between_means": "class means", "between_weights": "weights"}
SAMPLES = {"within": "samples to their mean"}


def cosine_records(parts: Mapping[str, str], rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Quantiles of cosines, as angles, of the first seed's runs."""
    several = len({row.at["data"] for row in rows}) > 1
    records = []
    for row, arrays in outcome.analyses(rows):
        for key, name in parts.items():
            # A contrastive loss has no weights; Graf et al. draw its class means again.
            if (key := key if key in arrays else "between_means") in arrays:
                values = 1 - np.arccos(np.clip(arrays[key].astype(np.float64), -1, 1)) / np.pi
                low, q1, middle, q3, high = np.quantile(values, [0.05, 0.25, 0.5, 0.75, 0.95])
                found = {"low": low, "q1": q1, "angle": middle, "q3": q3, "high": high}
                panel = f"{row.at['data']}, {name}" if several else name
                records.append({**row.at, "panel": panel, **{k: float(v) for k, v in found.items()}})
    return records


def _optimum(rows: Sequence[Row]) -> float | None:
    """The angle of class means at the simplex, if all data have as many classes."""
    from kontrast.geometry.simplex import optimum  # with torch, which the names of experiments do without

    done = [outcome.result(row.path)["geometry"] for row in rows if row.status == "done" and row.path is not None]
    classes = {found["simplex"]["embeddings"]["num_classes"] for found in done if found.get("simplex")}
    return optimum(int(classes.pop()), angular=True) if len(classes) == 1 else None


DISTANCE = outcome.simplex("distance", "distance", "deviation from equal distances (S3) of class means, training rows")
ACROSS = outcome.simplex("across", "across_means", "mean cosine of class means, training rows")
WITHIN_CLASS = outcome.simplex("within", "within", "mean cosine of samples to their class mean, training rows")
AT_ENCODER = outcome.simplex("encoder", "distance", "S3 at the encoder's output, before a projector", of="features")


def _from_simplex(folder: Path) -> float | None:
    found = outcome.result(folder)["geometry"].get("simplex", {}).get("embeddings")
    return None if not found else abs(float(found["across_means"]) - float(found["optimum"]))


FROM_SIMPLEX = Measure("off", "|mean cosine of class means − its value at the simplex|", _from_simplex, 4)

GEOMETRY = Experiment(
    name="graf-geometry",
    title="How near a regular simplex the trained representations are",
    source="Graf et al., geometry of real encoders (box plots of the slides)",
    axes={"data": SETS, "method": KINDS},
    presets={
        "paper": Preset("As the paper; three seeds (it has one run).", _geometry_paper, seeds=3),
        "cpu": Preset(
            ABOUT_CPU.partition(" For data")[0] + " Without augmentation, so that the classes can collapse.",
            _geometry_cpu,
            seeds=3,
            axes={"data": ("fashion-mini",)},
        ),
        "smoke": Preset(SMOKE, lambda at: smoke(_geometry_cpu(at)), seeds=2, axes={"data": ("fashion-mini",)}),
    },
    measures=(FROM_SIMPLEX, DISTANCE, WITHIN_CLASS, ACROSS, AT_ENCODER, ERROR),
    rows="method",
    claims=[
        claims.lower(
            "SC's class means are closer to the simplex than CE's",
            "distance",
            {"method": "sc"},
            {"method": "ce"},
            within=("data",),
        ),
        claims.lower(
            "CE-fix's class means are closer to the simplex than CE's",
            "distance",
            {"method": "ce-fix"},
            {"method": "ce"},
            within=("data",),
        ),
        claims.higher(
            "SC's samples are closer to their class mean than CE's",
            "within",
            {"method": "sc"},
            {"method": "ce"},
            within=("data",),
        ),
        claims.correlated("closeness to the simplex goes with lower error", "distance", "error", 1, within=("data",)),
        claims.lower(
            "weights fixed at a simplex err less than weights fixed at random",
            "error",
            {"method": "ce-fix"},
            {"method": "ce-random"},
            within=("data",),
        ),
    ],
    charts=[
        Chart(
            "angles",
            "1 − angle/π between class means and between weights (quantiles, first seed; line: the simplex)",
            "box",
            "method",
            "angle",
            panel="panel",
            rule=_optimum,
            data=partial(cosine_records, BETWEEN),
        ),
        Chart(
            "samples",
            "1 − angle/π between samples and their class mean (quantiles, first seed; line: collapse)",
            "box",
            "method",
            "angle",
            panel="panel",
            rule=1.0,
            data=partial(cosine_records, SAMPLES),
        ),
        Chart("error", "Test error (%) against deviation from the simplex", "points", "distance", "error", "method"),
    ],
)
