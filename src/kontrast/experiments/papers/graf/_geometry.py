"""How near a simplex trained representations are, and what a signed last layer and a projector change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kontrast import recipes
from kontrast.experiments import claims
from kontrast.experiments.cell import At
from kontrast.experiments.experiment import Chart, Experiment, Preset, Row, by_seed
from kontrast.experiments.papers.graf._distance import (
    ACROSS,
    CLOSE,
    EXCESS,
    OFF,
    S1,
    S2,
    S3,
    WITHIN_CLASS,
    keep_cosines,
)
from kontrast.experiments.papers.graf._scale import ABOUT_CPU, ERROR, SEEDS, SETS, SMOKE, cpu, smoke, views
from kontrast.intervals import interval
from kontrast.recipe import Recipe

SIGNED, PROJECTOR = "-signed", "-projector"
OF_PAPER = ("ce", "ce-fix", "ce-random", "sc", f"sc{PROJECTOR}")
KINDS = (*OF_PAPER, f"ce{SIGNED}", f"sc{SIGNED}")


def of_kind(kind: str) -> tuple[str, dict[str, Any]]:
    """The method and the changes of a kind: fixed random weights, a projector before the loss, a signed last layer."""
    if kind == "ce-random":
        return "ce-fix", {"method.weights": "random"}
    method, changes = kind.removesuffix(PROJECTOR).removesuffix(SIGNED), dict[str, Any]()
    if kind.endswith(PROJECTOR):
        changes |= {"head": "tcl", "evaluate.head": True}
    if SIGNED in kind:
        changes["encoder.signed"] = True
    return method, changes


def geometry_cpu(at: At) -> Recipe:
    """A kind with crop and flip, as the runs of graf-table, with which it shares them."""
    method, changes = of_kind(str(at["method"]))
    # The same name as in graf-table, and so the same folder, where the recipe is the same.
    return cpu(method, at["data"], {**views(True), **changes, "name": f"graf-{at['method']}"})


def geometry_paper(at: At) -> Recipe:
    """The paper's recipe of a kind."""
    method, changes = of_kind(str(at["method"]))
    return recipes.find(f"{method}-{at['data']}").override(changes)


PANELS = {"between_means": "class means", "between_weights": "weights", "within": "samples to their mean"}


def cosine_records(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The three box plots: quantiles of cosines of the first seed, and where the simplex has them."""
    several = len({row.at.get("data") for row in rows}) > 1
    records = []
    for row in rows:
        if row.at.get("seed") != 0 or "num_classes" not in row.arrays:
            continue
        optimum = -1 / (int(row.arrays["num_classes"][0]) - 1)
        for key, name in PANELS.items():
            # A contrastive loss has no weights; Graf et al. draw its class means again.
            if (there := key if key in row.arrays else "between_means") in row.arrays:
                values = np.asarray(row.arrays[there], dtype=np.float64)
                low, q1, middle, q3, high = np.quantile(values, [0.05, 0.25, 0.5, 0.75, 0.95])
                found = {"low": low, "q1": q1, "cosine": middle, "q3": q3, "high": high}
                found["theory"] = 1.0 if key == "within" else optimum
                panel = f"{row.at['data']}, {name}" if several else name
                records.append({**row.at, "panel": panel, **{k: float(v) for k, v in found.items()}})
    return records


DEVIATIONS = {"s1": "S1", "s2": "S2", "s3": "S3", "off": "√(S1²+S2²+S3²)"}


def deviation_records(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """S1–S3 and what they are together: means over seeds and 95 % intervals."""
    places: dict[tuple[Any, Any], list[Row]] = {}
    for row in rows:
        places.setdefault((row.at.get("data"), row.at["method"]), []).append(row)
    records = []
    for (data, method), here in places.items():
        for measure, name in DEVIATIONS.items():
            if seeds := by_seed(here, measure):
                found = interval(seeds.values())
                spans = {"value": found.mean, "low": found.low, "high": found.high, "n": found.n}
                records.append({"method": method, "deviation": name, **spans, "panel": str(data)})
    return records


COSINES = Chart(
    "cosines",
    "Cosines of class means, of weights, of samples to their mean (quantiles, first seed; dashed: the simplex)",
    "box",
    "method",
    "cosine",
    panel="panel",
    data=cosine_records,
)
DEVIATION_CHART = Chart(
    "deviations",
    "S1–S3 of class means, and together (0: the simplex)",
    "range",
    "method",
    "value",
    "deviation",
    "panel",
    data=deviation_records,
)

GEOMETRY = Experiment(
    name="graf-geometry",
    title="How near a regular simplex the trained representations are",
    source="Graf et al., geometry of real encoders (box plots of the slides)",
    axes={"data": SETS, "method": KINDS},
    presets={
        "paper": Preset(
            "As the paper; three seeds (it has one run). ResNet-18 has no signed last layer.",
            geometry_paper,
            seeds=3,
            axes={"method": OF_PAPER},
        ),
        "cpu": Preset(
            ABOUT_CPU + " With crop and flip. Signed: no ReLU at the end of the encoder.",
            geometry_cpu,
            seeds=SEEDS,
            axes={"data": ("fashion-mini",)},
        ),
        "smoke": Preset(SMOKE, lambda at: smoke(geometry_cpu(at)), seeds=2, axes={"data": ("fashion-mini",)}),
    },
    measures=(OFF, S1, S2, S3, EXCESS, WITHIN_CLASS, ACROSS, ERROR),
    rows="method",
    claims=[
        claims.collapses(
            "CE comes close to the simplex, as far as its features' sign allows",
            "excess",
            CLOSE,
            {"method": "ce"},
            within=("data",),
        ),
        claims.collapses(
            "SC comes close to the simplex, as far as its features' sign allows",
            "excess",
            CLOSE,
            {"method": "sc"},
            within=("data",),
        ),
        claims.collapses(
            "with signed features both CE and SC come close to the simplex itself",
            "excess",
            CLOSE,
            {"method": (f"ce{SIGNED}", f"sc{SIGNED}")},
            within=("data",),
        ),
        claims.lower(
            "SC's class means are closer to the simplex than CE's",
            "off",
            {"method": "sc"},
            {"method": "ce"},
            within=("data",),
        ),
        claims.lower(
            "with signed features too, SC's class means are closer to the simplex than CE's",
            "off",
            {"method": f"sc{SIGNED}"},
            {"method": f"ce{SIGNED}"},
            within=("data",),
        ),
        claims.lower(
            "CE-fix's class means are closer to the simplex than CE's",
            "off",
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
        claims.correlated("closeness to the simplex goes with lower error", "off", "error", 1, within=("data",)),
        claims.lower(
            "weights fixed at a simplex err less than weights fixed at random",
            "error",
            {"method": "ce-fix"},
            {"method": "ce-random"},
            within=("data",),
        ),
    ],
    charts=[
        COSINES,
        DEVIATION_CHART,
        Chart("error", "Test error (%) against √(S1² + S2² + S3²)", "points", "off", "error", "method"),
    ],
    keeps=keep_cosines,
)
