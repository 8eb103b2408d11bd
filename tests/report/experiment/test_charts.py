"""The experiment's own charts, fitted to the page."""

from __future__ import annotations

import json
from pathlib import Path

from kontrast.experiments import charts as drawing
from kontrast.experiments.experiment import Chart, Row
from kontrast.report.experiment import fit_chart
from tests.report.experiment.made_up import write_experiment

ROWS = [
    Row({"data": data, "temperature": t, "seed": 0}, "", "done", {"knn": 80 + t})
    for data in ("one", "two")
    for t in (0.1, 1.0)
]
KNN = Chart("knn", "Accuracy", "line", "temperature", "knn", log_x=True)


def test_a_single_panel_is_a_chart_as_wide_as_its_place(tmp_path: Path) -> None:
    spec = json.loads((write_experiment(tmp_path) / "squares.vl.json").read_text())
    made = fit_chart(spec)
    assert "facet" not in made
    assert made["title"] == {"text": ["squares"], "subtitle": "data = mini"}
    assert made["width"] == "container"
    assert made["data"] == spec["data"]
    assert "facet" not in made


def test_a_long_title_takes_several_lines() -> None:
    chart = Chart(
        "knn", "cosine of samples and their class mean, quartiles over all rows", "line", "temperature", "knn"
    )
    made = fit_chart(drawing.spec(chart, ROWS[:2]))
    assert made["title"]["text"] == ["cosine of samples and their class mean,", "quartiles over all rows"]


def test_panels_stay_panels_and_get_a_line() -> None:
    spec = drawing.spec(KNN, ROWS)
    made = fit_chart(spec)
    assert made["facet"] == spec["facet"]
    assert made["spec"]["width"] > spec["spec"]["width"]  # two in a line


def test_logarithmic_scales_have_no_zero() -> None:
    spec = drawing.spec(KNN, ROWS[:2])
    assert '"log"' in json.dumps(spec)
    assert '"zero": false' in json.dumps(spec)
    made = fit_chart(spec)
    scales = [layer["encoding"]["x"]["scale"] for layer in made["layer"] if "scale" in layer["encoding"].get("x", {})]
    assert scales
    assert all("zero" not in scale for scale in scales)
    assert made["data"] == spec["data"]
