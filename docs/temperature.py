"""The pictures of docs/temperature.md, svg from the recorded sweeps: both data sets, both losses.

    python docs/temperature.py            draws them into docs/temperature
    python docs/temperature.py DIR        somewhere else

Nothing is computed here but means and intervals over seeds, of the values that docs/results/…/result.json have.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from kontrast.experiments import charts
from kontrast.experiments.experiment import Chart, Row

DOCS = Path(__file__).parent
CIFAR = "-651b9140"  # the same experiment on the other set


def _line(measure: str, title: str) -> Chart:
    return Chart(measure, title, "line", "temperature", measure, colour="loss", panel="data", log_x=True)


PICTURES: dict[str, tuple[Chart, dict[str, str]]] = {  # the chart, and the loss of each experiment (or its own axis)
    "accuracy": (
        _line("linear", "Linear accuracy against temperature"),
        {"wl-table-1-cpu": "ordinary", "wl-table-2-cpu": "hard"},
    ),
    "uniformity": (_line("uniformity", "−uniformity against temperature"), {"wl-uniformity-tolerance-cpu": ""}),
    "tolerance": (_line("tolerance", "Tolerance against temperature"), {"wl-uniformity-tolerance-cpu": ""}),
    "separation": (_line("gap", "Positive minus nearest negative"), {"wl-separation-cpu": ""}),
}


def rows(experiments: dict[str, str]) -> list[Row]:
    """Every run of some experiments on both sets, with its loss among its axes."""
    runs = []
    for name, loss in experiments.items():
        for folder in (name, name + CIFAR):
            summary = json.loads((DOCS / "results" / folder / "result.json").read_text(encoding="utf-8"))
            for place in summary["places"]:
                at = {**({"loss": loss} if loss else {}), **place["at"]}
                runs += [
                    Row({**at, "seed": run["seed"]}, run["folder"], run["status"], run["values"])
                    for run in place["runs"]
                ]
    return runs


def titles(experiments: dict[str, str]) -> dict[str, str]:
    """Axes and measures in the experiments' own words."""
    name = next(iter(experiments))
    summary = json.loads((DOCS / "results" / name / "result.json").read_text(encoding="utf-8"))
    return {"temperature": "temperature τ", **{m["name"]: m["title"] for m in summary["measures"]}}


def svg(name: str) -> str:
    """A picture as SVG, on white."""
    chart, experiments = PICTURES[name]
    spec = charts.spec(chart, rows(experiments), titles(experiments))
    spec["config"] = {**spec["config"], "background": "white"}
    return charts.svg(spec)


if __name__ == "__main__":
    to = Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS / "temperature"
    to.mkdir(parents=True, exist_ok=True)
    for name in PICTURES:
        (to / f"{name}.svg").write_text(svg(name), encoding="utf-8")
        print(to / f"{name}.svg")
