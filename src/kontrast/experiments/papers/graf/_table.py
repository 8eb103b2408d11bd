"""Test errors."""

from __future__ import annotations

from kontrast import recipes
from kontrast.experiments import claims
from kontrast.experiments.cell import At
from kontrast.experiments.experiment import Chart, Experiment, Preset
from kontrast.experiments.papers import BESIDE
from kontrast.experiments.papers.graf._distance import OFF, S1, S2, S3
from kontrast.experiments.papers.graf._scale import (
    ABOUT_CPU,
    ERROR,
    METHODS,
    PROBE,
    SEEDS,
    SETS,
    SMOKE,
    cpu,
    smoke,
    views,
)
from kontrast.recipe import Recipe
from kontrast.recipes import published


def _table_cpu(at: At) -> Recipe:
    return cpu(str(at["method"]), at["data"], views(bool(at["augmented"])))


def _table_paper(at: At) -> Recipe:
    return recipes.find(f"{at['method']}-{at['data']}" + ("" if at["augmented"] else "-plain"))


def _table_value(at: At, measure: str) -> float | None:
    data = published.printed_set(at["data"], published.GRAF)
    if measure != "error" or data is None:
        return None
    return published.GRAF[data].get((str(at["method"]), bool(at["augmented"])))


TABLE = Experiment(
    name="graf-table",
    title="Test error of CE, CE-fix and SC, with and without augmentation",
    source="Graf et al., the table of the slides (CIFAR-100); stored results of their code (CIFAR-10)",
    axes={"data": SETS, "augmented": (True, False), "method": METHODS},
    presets={
        "paper": Preset("As the paper; three seeds (it has one run).", _table_paper, seeds=3),
        "cpu": Preset(f"{ABOUT_CPU} {BESIDE}", _table_cpu, seeds=SEEDS, axes={"data": ("fashion-mini",)}),
        "smoke": Preset(SMOKE, lambda at: smoke(_table_cpu(at)), seeds=2, axes={"data": ("fashion-mini",)}),
    },
    measures=(ERROR, PROBE, OFF, S1, S2, S3),
    rows="method",
    published=_table_value,
    claims=[
        claims.lower(
            "with augmentation SC's error is below CE's",
            "error",
            {"method": "sc", "augmented": True},
            {"method": "ce", "augmented": True},
            within=("data",),
            pooled=True,
        ),
        claims.lower(
            "CE-fix's error is below CE's",
            "error",
            {"method": "ce-fix"},
            {"method": "ce"},
            within=("data",),
            pooled=True,
        ),
        claims.lower(
            "augmentation lowers the error", "error", {"augmented": True}, {"augmented": False}, within=("data",)
        ),
    ],
    charts=[Chart("error", "Test error (%)", "points", "method", "error", "augmented", "data")],
)
