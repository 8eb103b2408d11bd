"""How much k1 is good: none (SupCon), little, the paper's range, and too much."""

from __future__ import annotations

from kontrast import recipes
from kontrast.experiments import claims
from kontrast.experiments.cell import At
from kontrast.experiments.experiment import Chart, Experiment
from kontrast.experiments.outcome import KNN, PROBE
from kontrast.experiments.papers.tcl._scale import LINEAR, about_cpu, cpu, presets
from kontrast.recipe import Recipe

HELPS = (100.0, 1000.0, 2000.0, 4000.0)  # "any value less than 5 × 10³" improves on SupCon
BEST = (1000.0, 2000.0, 4000.0, 5000.0, 8000.0, 10_000.0)  # "in the range of 10³ to 10⁴ works the best"
BELOW, ABOVE = (0.0, 100.0), 100_000.0
SMALL_K1 = (0.0, 100.0, 1000.0, 2000.0, 4000.0, 5000.0, 8000.0, 100_000.0)


def _method(at: At) -> str:
    return "tcl" if at["k1"] else "supcon"  # k1 = 0 is SupCon, and shares its runs with tcl-table-1


def _paper(at: At) -> Recipe:
    made = recipes.find(f"{_method(at)}-{at['data']}")
    return made.override({"method.k1": at["k1"]}) if at["k1"] else made


def _small(at: At) -> Recipe:
    return cpu(_method(at), at, {"method.k1": at["k1"]} if at["k1"] else {})


STRENGTH = Experiment(
    name="tcl-k1",
    title="Accuracy against k1 at k2 = 1, from SupCon (0) on",
    source="TCL, supplement, section 3",
    axes={"data": ("cifar100",), "k1": (*BELOW, *BEST, ABOVE)},
    presets=presets(
        _paper,
        _small,
        axes={"data": ("fashion-mini",), "k1": SMALL_K1},
        few={"k1": (0.0, 1000.0, 4000.0)},
        about=f"{about_cpu()} 100 and 100,000, below and above the paper's range, are ours.",
        full="100 and 100,000, below and above the paper's range, are ours.",
    ),
    measures=(LINEAR, PROBE, KNN),
    rows="k1",
    claims=[
        claims.higher(
            "k1 in 10³ … 10⁴ (their mean) is better than below (0 and 100)",
            "linear",
            {"k1": BEST},
            {"k1": BELOW},
            within=("data",),
        ),
        claims.higher(
            "k1 in 10³ … 10⁴ (their mean) is better than above (10⁵)",
            "linear",
            {"k1": BEST},
            {"k1": ABOVE},
            within=("data",),
        ),
        *(
            claims.higher(
                f"k1 = {k1:g}, below 5,000, already improves on SupCon",
                "linear",
                {"k1": k1},
                {"k1": 0.0},
                within=("data",),
            )
            for k1 in HELPS
        ),
    ],
    charts=[Chart("accuracy", "Linear accuracy (%)", "points", "k1", "linear", panel="data")],
)
