"""Charts of experiments: every kind is drawn whole."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from kontrast.experiments import charts
from kontrast.experiments.chart_records import records, violin_records
from kontrast.experiments.experiment import Chart, Experiment, Row

pytest.importorskip("vl_convert", reason="the docs extra is not installed")


TAUS = (0.05, 0.1, 0.2, 0.4)


def made_up(seeds: int = 3) -> list[Row]:
    return [
        Row(
            {"data": data, "loss": loss, "temperature": tau, "seed": seed},
            f"{loss}-{tau}-{seed}",
            "done",
            {"knn": 80 + 5 * tau + seed**2 + (loss == "hard"), "distance": tau + 0.01 * seed},
        )
        for data in ("cifar10", "svhn")
        for loss in ("ordinary", "hard")
        for tau in TAUS
        for seed in range(seeds)
    ]


def cloud(rows: Sequence[Row]) -> list[dict[str, Any]]:
    values = np.random.default_rng(0).normal(size=(2, 200))
    return [{"kind": k, "cosine": float(v)} for k, column in zip("ab", values, strict=True) for v in column]


def path(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [
        {"method": m, "seed": s, "step": t, "loss": math.exp(-0.1 * t)} for m in "ab" for s in (0, 1) for t in range(9)
    ]


def spans(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [{"rank": f"{k}", "median": 0.5, "low": 0.4, "high": 0.6} for k in range(5)]


def places(rows: Sequence[Row]) -> list[dict[str, Any]]:
    marks = ("front", "behind", "weight")
    return [{"a": 0.5, "b": 0.1, "class": c, "part": p, "mark": m} for p in "pq" for c in "ab" for m in marks]


def levels(rows: Sequence[Row]) -> list[dict[str, Any]]:
    box = {"low": 0.1, "q1": 0.2, "cosine": 0.3, "q3": 0.4, "high": 0.5}
    return [{"kind": k, "part": p, "theory": t, **box} for p, t in (("p", 0.0), ("q", 1.0)) for k in "ab"]


def count(svg: str, mark: str) -> int:
    """How many shapes a kind of mark has drawn, the legend's and axes' left out."""
    groups = re.findall(rf'<g class="mark-{mark} role-mark[^"]*"[^>]*>(.*?)</g>', svg, flags=re.DOTALL)
    return sum(len(re.findall(r"<(?:path|line|text|rect)\b", group)) for group in groups)


# Chart, then how many of which shapes: Vega draws points as symbols and a line as one path.
DRAWN = {
    "line": (
        Chart("c", "t", "line", "temperature", "knn", "loss", "data", log_x=True),
        {"symbol": 16, "line": 4, "rule": 16},
    ),
    "points": (Chart("c", "t", "points", "loss", "knn", "data"), {"symbol": 16, "rule": 16}),
    "points of two measures": (Chart("c", "t", "points", "distance", "knn", "loss"), {"symbol": 16, "rule": 32}),
    "heat": (Chart("c", "t", "heat", "temperature", "loss", "knn", "data"), {"rect": 16, "text": 16}),
    "box": (Chart("c", "t", "box", "loss", "knn", "data"), {"rule": 16, "rect": 32}),  # bars and ticks
    "box of records": (Chart("c", "t", "box", "kind", "cosine", data=cloud), {"rule": 2, "rect": 4}),
    "violin": (Chart("c", "t", "violin", "kind", "cosine", data=cloud), {"area": 2, "rule": 2}),
    "violin of runs": (Chart("c", "t", "violin", "data", "knn", "loss"), {"area": 16, "rule": 16}),
    "curve": (Chart("c", "t", "curve", "step", "loss", "method", data=path), {"line": 4}),
    "range": (Chart("c", "t", "range", "rank", "median", data=spans), {"symbol": 5, "rule": 5}),
    "plane": (
        Chart("c", "t", "plane", "a", "b", "class", "part", data=places),
        {"symbol": 12, "line": 2, "rule": 4},  # a circle a panel, a line to each weight
    ),
    "box with a level a panel": (
        Chart("c", "t", "box", "kind", "cosine", panel="part", data=levels),
        {"rule": 4 + 2, "rect": 8},
    ),
}


@pytest.mark.parametrize("name", DRAWN)
def test_every_kind_is_drawn_whole(name: str) -> None:
    chart, expected = DRAWN[name]
    spec = charts.spec(chart, made_up())
    assert json.loads(json.dumps(spec, allow_nan=False)) == spec, "plain JSON"
    svg = charts.svg(spec)
    assert {mark: count(svg, mark) for mark in expected} == expected
    assert "NaN" not in svg


def test_one_seed_has_points_and_no_spans() -> None:
    spec = charts.spec(Chart("c", "t", "line", "temperature", "knn", "loss"), made_up(seeds=1))
    svg = charts.svg(spec)
    assert (count(svg, "symbol"), count(svg, "rule")) == (16, 0)


def test_two_colours_share_a_violin() -> None:
    def halves(rows: Sequence[Row]) -> list[dict[str, Any]]:
        parts = violin_records(np.array([1, 2, 1]), np.linspace(0, 1, 4), "cosine")
        return [{"kind": k, "loss": loss, **part} for k in "ab" for loss in ("ordinary", "hard") for part in parts]

    spec = charts.spec(Chart("c", "t", "violin", "kind", "cosine", "loss", data=halves), [])
    for at, kind in enumerate("ab"):
        left = [r for r in spec["data"]["values"] if r["x"] == kind and r["colour"] == "ordinary"]
        right = [r for r in spec["data"]["values"] if r["x"] == kind and r["colour"] == "hard"]
        assert {r["right"] for r in left} == {r["left"] for r in right} == {at}
        assert [at - r["left"] for r in left] == pytest.approx([r["right"] - at for r in right])
        assert max(r["right"] for r in right) < at + 0.5, "it does not reach into the next"


def test_learning_curves() -> None:
    small = Experiment("e", "t", "s", {"data": ("one",), "temperature": TAUS[:2]}, {}, (), "temperature")
    curve = [{"step": s, "loss": 5.0 - s, "chance": 5.5, "bound": 1.0} for s in (1, 2)] + [{"step": 2, "knn": 0.5}]
    rows = [
        Row({"data": "one", "temperature": t, "seed": s}, "", "done", curve=curve) for t in TAUS[:2] for s in (0, 1)
    ]
    loss, knn = charts.learning(small, rows)
    assert (loss.name, knn.name) == ("learning-loss", "learning-knn")
    shown = records(loss, rows)
    assert len(shown) == 2 * 3 * 2, "first seed: loss, chance and bound at two steps of two places"
    assert {r["panel"] for r in shown} == {"temperature = 0.05", "temperature = 0.1"}
    assert sorted({(r["x"], r["y"]) for r in shown if r["colour"] == "loss"}) == [(1, 4.0), (2, 3.0)]
    accuracies = records(knn, rows)
    assert [r["y"] for r in accuracies] == [50.0] * 4
    assert {(r["colour"], r["seed"]) for r in accuracies} == {(t, s) for t in TAUS[:2] for s in (0, 1)}
    for chart in (loss, knn):
        assert "NaN" not in charts.svg(charts.spec(chart, rows))
    assert charts.learning(small, [Row({"seed": 0}, "", "done")]) == [], "a task learns nothing"


def test_where_the_axis_does_not_apply_there_is_a_level() -> None:
    rows = [Row({"method": "sce", "target": t, "seed": 0}, "", "done", {"knn": 50 + t}) for t in (0.05, 0.1)]
    rows.append(Row({"method": "moco", "target": None, "seed": 0}, "", "done", {"knn": 49.0}))
    svg = charts.svg(charts.spec(Chart("c", "t", "line", "target", "knn", "method"), rows))
    assert (count(svg, "symbol"), count(svg, "rule"), count(svg, "line")) == (2, 1, 1)


def test_a_lower_bound_is_an_open_triangle() -> None:
    rows = [
        Row({"share": share, "seed": seed}, "", "done", {"steps": 900 * share, "censored": float(share == 1.0)})
        for share in (0.5, 0.8, 1.0)
        for seed in range(2)
    ]
    found = records(Chart("c", "t", "line", "share", "steps"), rows)
    assert [(record["censored"], record["low"] is None) for record in found] == [(0, False), (0, False), (2, True)]
    spec = charts.spec(Chart("c", "t", "line", "share", "steps"), rows)
    assert [layer["mark"].get("shape") for layer in spec["layer"]].count("triangle-up") == 1
    assert count(charts.svg(spec), "symbol") == 3


def test_a_curve_over_many_decades_is_logarithmic() -> None:
    def scale(rate: float) -> str | None:
        data = [{"step": t, "loss": math.exp(-rate * t)} for t in range(10)]
        spec = charts.spec(Chart("c", "t", "curve", "step", "loss", data=lambda rows: data), [])
        found: str | None = spec["layer"][0]["encoding"]["y"]["scale"].get("type")
        return found

    assert (scale(0.1), scale(2.0)) == (None, "log")
    beside = [{"step": t, "what": what, "loss": y} for t in range(3) for what, y in (("loss", 5.0), ("bound", 1e-9))]
    spec = charts.spec(Chart("c", "t", "curve", "step", "loss", "what", data=lambda rows: beside), [])
    assert "type" not in spec["layer"][0]["encoding"]["y"]["scale"], "two levels far apart are no fall"


def test_titles_and_words() -> None:
    rows = [Row({"augmented": yes, "seed": 0}, "", "done", {"error": 1.0}) for yes in (True, False)]
    spec = charts.spec(Chart("c", "t", "points", "augmented", "error"), rows, {"error": "test error (%)"})
    svg = charts.svg(spec)
    assert all(word in svg for word in (">yes<", ">no<", "test error (%)"))
    assert spec["config"]["background"] is None


def test_a_name_of_the_users_is_only_text() -> None:
    name = "a<b>&\"x'] + datum.y"
    rows = [Row({"data": name, "loss": name, "seed": 0}, "", "done", {"knn": 1.0})]
    svg = charts.svg(charts.spec(Chart("c", name, "points", "loss", "knn", "loss", "data"), rows))
    assert "<b>" not in svg
    assert "a&lt;b&gt;&amp;" in svg


def test_nothing_done_is_an_empty_chart_that_says_so() -> None:
    rows = [Row(row.at, row.folder, "missing") for row in made_up()]
    for chart, _ in DRAWN.values():
        if chart.data is None:
            spec = charts.spec(chart, rows)
            assert "no finished run" in charts.svg(spec)
            assert not spec["data"]["values"]


def test_png() -> None:
    made = charts.png(charts.spec(Chart("c", "t", "line", "temperature", "knn"), made_up()), scale=1.0)
    assert made.startswith(b"\x89PNG")


def test_errors() -> None:
    with pytest.raises(ValueError, match=r"chart 'c': kind=pie: must be one of line"):
        charts.spec(Chart("c", "t", "pie", "loss", "knn"), made_up())
    with pytest.raises(ValueError, match="wants the axis 'losss'; the rows have data, loss"):
        charts.spec(Chart("c", "t", "line", "temperature", "knn", "losss"), made_up())
    with pytest.raises(ValueError, match="wants 'cosinus' of its records; they have kind, cosine"):
        charts.spec(Chart("c", "t", "box", "kind", "cosinus", data=cloud), [])
    with pytest.raises(ValueError, match="colour=None: must be the measure that a heat map shows"):
        charts.spec(Chart("c", "t", "heat", "loss", "temperature"), made_up())
