"""TCL without labels."""

from __future__ import annotations

from kontrast import recipes
from kontrast.experiments import claims
from kontrast.experiments.cell import At
from kontrast.experiments.experiment import Chart, Experiment
from kontrast.experiments.papers.tcl._scale import KNN, LINEAR, presets
from kontrast.recipe import Recipe
from kontrast.recipes import published


def _self(at: At) -> Recipe:
    made = recipes.find(f"{at['method']}-fashion-mini")
    changes = {"name": f"tcl-self-study-{at['method']}", "data": at["data"], "train.epochs": 10}
    return made.override({**changes, "method.temperature": 0.2})


def _self_value(at: At, measure: str) -> float | None:
    data = str(at["data"]) if at["data"] in published.SOLO_SELF else "cifar10"
    name = {"simclr": "SimCLR"}.get(str(at["method"]))
    return published.SOLO_SELF[data].get(name) if name and measure == "linear" else None


UNLABELLED = Experiment(
    name="tcl-self",
    title="Without labels: TCL with three views, and SimCLR",
    source="TCL, supplement, section 2.3; solo-learn's baselines",
    axes={"data": ("cifar10", "cifar100", "imagenet100"), "method": ("simclr", "tcl-self")},
    presets=presets(
        lambda at: recipes.find(f"{at['method']}-{at['data']}"),
        _self,
        axes={"data": ("fashion-mini",)},
        few={},
        about="Ten epochs for 1,000, SGD for LARS. The value beside ours is solo-learn's SimCLR on CIFAR-10.",
    ),
    measures=(LINEAR, KNN),
    rows="method",
    published=_self_value,
    reference="CIFAR-10",
    claims=[
        claims.higher(
            "TCL without labels is at least as good as SimCLR",
            "linear",
            {"method": "tcl-self"},
            {"method": "simclr"},
            within=("data",),
        )
    ],
    charts=[Chart("accuracy", "Linear accuracy (%)", "points", "method", "linear", panel="data")],
)
