"""SupCon and TCL, with intervals, and twice as long."""

from __future__ import annotations

from kontrast import recipes
from kontrast.experiments import claims
from kontrast.experiments.cell import At
from kontrast.experiments.experiment import Chart, Experiment, Published
from kontrast.experiments.outcome import KNN, PROBE
from kontrast.experiments.papers import BESIDE
from kontrast.experiments.papers.tcl._scale import (
    FASHION,
    LINEAR,
    LONGER,
    METHODS,
    SETS,
    SMALL,
    about_cpu,
    cpu,
    presets,
    tcl_wins,
)
from kontrast.recipe import Recipe
from kontrast.recipes import published

TOTAL = {150: "", 250: "-200"}  # epochs of both stages, and how the recipes of the paper end
# Points of accuracy that count as no improvement: the margin by which TCL may be below SupCon, too.
NOTHING = 0.5


def _paper(at: At) -> Recipe:
    method = at["method"] if at["method"] in METHODS else f"{at['method']}-tcl"
    return recipes.find(f"{method}-{at['data']}{TOTAL[_total(at)]}")


def _small(at: At) -> Recipe:
    return cpu(str(at["method"]), at, {} if _total(at) == 150 else {"train.epochs": LONGER})


def _total(at: At) -> int:
    total = at.get("epochs", 150)
    if total not in TOTAL:
        raise ValueError(
            f"epochs is {total!r}; expected one of {', '.join(map(str, TOTAL))} (both stages, as the paper)"
        )
    return int(total)  # type: ignore[arg-type]


def _value(at: At, measure: str) -> Published:
    data = published.printed_set(at["data"], SETS)
    if measure != "linear" or data is None:
        return None
    return published.TCL[data].get((str(at["method"]), _total(at)))


TABLES = [
    Experiment(
        name="tcl-table-1",
        title="SupCon and TCL, 100 + 50 epochs, with 95 % intervals",
        source="TCL, supplement, Table 1",
        axes={"data": SETS, "method": (*METHODS, "ce", "ce-fix")},
        presets=presets(
            _paper,
            _small,
            axes={"data": ("fashion-mini",), "method": METHODS},
            few={"method": (*METHODS, "ce", "ce-fix")},
            about=f"{about_cpu()} {BESIDE} method=[ce,ce-fix] adds cross-entropy: two views, no projector.",
            seeds=8,
            paper_seeds=lambda at: published.TCL_SEEDS.get(str(at["data"]), 5),
        ),
        measures=(LINEAR, PROBE, KNN),
        rows="method",
        published=_value,
        claims=tcl_wins(within=("data",)),
        charts=[Chart("accuracy", "Linear accuracy (%)", "points", "method", "linear", panel="data")],
    ),
    Experiment(
        name="tcl-table-2",
        title="SupCon and TCL, 200 + 50 epochs beside 100 + 50",
        source="TCL, supplement, Tables 1 and 2",
        axes={"data": SETS, "epochs": tuple(TOTAL), "method": METHODS},
        presets=presets(
            _paper,
            _small,
            axes={"data": ("fashion-mini",)},
            few={},
            about=f"{about_cpu()} {BESIDE} Epochs are the paper's: 150 are {SMALL['train.epochs']} here, 250 {LONGER}.",
        ),
        measures=(LINEAR, PROBE, KNN),
        rows="method",
        published=_value,
        claims=[
            *tcl_wins(within=("data",), where={"epochs": 250}),
            claims.not_above(
                f"on Fashion-MNIST 250 epochs gain nothing over 150 (less than {NOTHING} points), for either loss",
                "linear",
                {"epochs": 250, "data": FASHION},
                {"epochs": 150, "data": FASHION},
                NOTHING,
                within=("method",),
                pooled=True,
            ),
        ],
        charts=[Chart("accuracy", "Linear accuracy (%)", "points", "epochs", "linear", "method", "data")],
    ),
]
