"""TCL without labels."""

from __future__ import annotations

from kontrast import recipes
from kontrast.experiments import claims
from kontrast.experiments.cell import At
from kontrast.experiments.experiment import Chart, Experiment
from kontrast.experiments.outcome import KNN
from kontrast.experiments.papers.tcl._scale import LINEAR, presets
from kontrast.recipe import Recipe
from kontrast.recipes import published


def _self(at: At) -> Recipe:
    made = recipes.find(f"{at['method']}-fashion-mini")
    changes = {"name": f"tcl-self-study-{at['method']}", "data": at["data"], "train.epochs": 10}
    return made.override({**changes, "method.temperature": 0.2})


def _self_value(at: At, measure: str) -> float | None:
    data = str(at["data"]) if at["data"] in published.SOLO_SELF else "cifar10"
    return published.SOLO_SELF[data].get(str(at["method"])) if measure == "linear" else None


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
        about=(
            "Against the paper: fashion-mini and small-resnet (width 16) for the whole sets and ResNet-18; ten epochs "
            "for 1,000; SGD at 0.1 for LARS at 0.4; SCE's strong views for solo-learn's; a projector 256–128 for "
            "2048–256. The value beside SimCLR's is solo-learn's."
        ),
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
