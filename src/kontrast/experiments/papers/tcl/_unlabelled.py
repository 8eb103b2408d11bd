"""TCL without labels, its control, and SimCLR.

The control has TCL's three views with k1 = 0 and k2 = 1, which is SupCon's loss with the other views as positives: what
TCL gains over SimCLR may be the third view's.
"""

from __future__ import annotations

from kontrast import recipes
from kontrast.experiments import claims
from kontrast.experiments.cell import At
from kontrast.experiments.experiment import Chart, Experiment
from kontrast.experiments.outcome import KNN
from kontrast.experiments.papers import BESIDE
from kontrast.experiments.papers.tcl._scale import LINEAR, WITHOUT_LABELS, presets
from kontrast.recipe import Recipe
from kontrast.recipes import published

K1, K2 = (0.0, 1.0, 1000.0), (1.0, 1.5)
STRONG_K2 = 1.5
MARGIN = 0.5  # points that count as no help


def _keep(at: At) -> bool:
    """SimCLR has neither; a large k1 is tried at the paper's k2 alone."""
    if at["method"] == "simclr":
        return at["k1"] is None and at["k2"] is None
    return at["k1"] is not None and at["k2"] is not None and (at["k1"] != K1[-1] or at["k2"] == STRONG_K2)


def _changed(made: Recipe, at: At) -> Recipe:
    return made.override({f"method.{k}": at[k] for k in ("k1", "k2") if at[k] is not None})


def _paper(at: At) -> Recipe:
    return _changed(recipes.find(f"{at['method']}-{at['data']}"), at)


def _small(at: At) -> Recipe:
    made = recipes.find(f"{at['method']}-fashion-mini")
    views = ["strong"] * (2 if at["method"] == "simclr" else 3)
    changes = {"name": f"tcl-self-study-{at['method']}", "data": at["data"], "augment": views, **WITHOUT_LABELS}
    return _changed(made.override(changes), at)


def _value(at: At, measure: str) -> float | None:
    data = published.printed_set(at["data"], published.SOLO_SELF)
    if measure != "linear" or data is None:
        return None
    return published.SOLO_SELF[data].get(str(at["method"]))


TCL, CONTROL = {"method": "tcl-self", "k1": 1.0, "k2": STRONG_K2}, {"method": "tcl-self", "k1": 0.0, "k2": 1.0}

UNLABELLED = Experiment(
    name="tcl-self",
    title="Without labels: TCL with three views, its control (k1 = 0, k2 = 1), and SimCLR with two",
    source="TCL, supplement, sections 2.3 and 3; solo-learn's baselines",
    axes={
        "data": ("cifar10", "cifar100", "imagenet100"),
        "method": ("simclr", "tcl-self"),
        "k1": (*K1, None),
        "k2": (*K2, None),
    },
    keep=_keep,
    presets=presets(
        _paper,
        _small,
        axes={"data": ("fashion-mini",)},
        few={"k1": (0.0, 1.0, None)},
        about=(
            f"Against the paper: 10,000 images, and small-resnet (width {WITHOUT_LABELS['encoder.width']}, "
            f"{WITHOUT_LABELS['encoder.features']} features) for ResNet-18; training views of "
            f"{WITHOUT_LABELS['augment.size']} pixels a side, evaluation at the images' own; "
            f"{WITHOUT_LABELS['train.epochs']} epochs for 1,000; SGD at 0.1 for LARS at 0.4; SCE's "
            "strong views for solo-learn's; a projector 256–128 for 2048–256. The value beside SimCLR's is "
            "solo-learn's. k1 = 0 and k2 = 1 on three views are the control, and k1 = 1,000 is ours: the paper "
            f"gives no value that it tried. {BESIDE}"
        ),
        full="k1 = 0 and k2 = 1 on three views are the control; k1 = 1,000 is ours.",
    ),
    measures=(LINEAR, KNN),
    rows="k1",
    published=_value,
    claims=[
        claims.higher(
            "TCL without labels (three views) is better than SimCLR (two)",
            "linear",
            TCL,
            {"method": "simclr"},
            within=("data",),
        ),
        claims.higher(
            "TCL without labels is better than its control on the same three views (k1 = 0, k2 = 1)",
            "linear",
            TCL,
            CONTROL,
            within=("data",),
        ),
        claims.not_above(
            f"k1 does not help without labels (k1 = 1 gains less than {MARGIN} points on k1 = 0)",
            "linear",
            {"method": "tcl-self", "k1": 1.0},
            {"method": "tcl-self", "k1": 0.0},
            MARGIN,
            within=("data",),
        ),
        claims.not_above(
            f"nor does a large one (k1 = 1,000 gains less than {MARGIN} points on k1 = 1)",
            "linear",
            {"method": "tcl-self", "k1": K1[-1], "k2": STRONG_K2},
            TCL,
            MARGIN,
            within=("data",),
        ),
        claims.higher(
            "k2 helps without labels (1.5 against 1)",
            "linear",
            {"method": "tcl-self", "k2": STRONG_K2, "k1": K1[:2]},
            {"method": "tcl-self", "k2": 1.0, "k1": K1[:2]},
            within=("data",),
        ),
    ],
    charts=[Chart("accuracy", "Linear accuracy (%)", "points", "k1", "linear", "k2", "data")],
)
