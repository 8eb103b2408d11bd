"""SupCon and TCL, with intervals."""

from __future__ import annotations

from kontrast import recipes
from kontrast.experiments.cell import At
from kontrast.experiments.experiment import Chart, Experiment, Published
from kontrast.experiments.outcome import KNN
from kontrast.experiments.papers.tcl._scale import ABOUT_CPU, LINEAR, METHODS, SETS, cpu, presets, tcl_wins
from kontrast.recipe import Recipe
from kontrast.recipes import published


def _table(number: int, epochs: int) -> Experiment:
    total = epochs + 50
    suffix = "" if epochs == 100 else "-200"

    def paper(at: At) -> Recipe:
        method = at["method"] if at["method"] in METHODS else f"{at['method']}-tcl"
        return recipes.find(f"{method}-{at['data']}{suffix}")

    def value(at: At, measure: str) -> Published:
        data = str(at["data"]) if at["data"] in SETS else "fashion-mnist"
        found = published.TCL[data].get((str(at["method"]), total))
        return found if measure == "linear" else None

    def small(at: At) -> Recipe:
        return cpu(str(at["method"]), at, {} if epochs == 100 else {"train.epochs": 20})

    about = f"{ABOUT_CPU} The paper's FMNIST values stand beside ours."
    about += " CE and CE-fix: two views, no projector." if epochs == 100 else " 20 epochs for 200."
    methods = (*METHODS, "ce", "ce-fix") if epochs == 100 else METHODS
    return Experiment(
        name=f"tcl-table-{number}",
        title=f"SupCon and TCL, {epochs} + 50 epochs" + (", with 95 % intervals" if epochs == 100 else ""),
        source=f"TCL, supplement, Table {number}",
        axes={"data": SETS, "method": methods},
        presets=presets(
            paper,
            small,
            axes={"data": ("fashion-mini",)},
            few={},
            about=about,
            seeds=5 if epochs == 100 else 3,
            paper_seeds=(lambda at: published.TCL_SEEDS.get(str(at["data"]), 5)) if epochs == 100 else None,
        ),
        measures=(LINEAR, KNN),
        rows="method",
        published=value,
        reference="FMNIST",
        claims=tcl_wins(within=("data",)),
        charts=[Chart("accuracy", "Linear accuracy (%)", "points", "method", "linear", panel="data")],
    )


TABLES = [_table(1, 100), _table(2, 200)]
