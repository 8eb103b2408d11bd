"""Charts: every kind is a specification that Vega-Lite draws, with as many marks as there are numbers."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy import stats

from kontrast.experiments import charts
from kontrast.experiments.charts._records import records
from kontrast.experiments.experiment import Chart, Row
from kontrast.experiments.intervals import interval

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
    "line with a rule": (
        Chart("c", "t", "line", "temperature", "knn", rule=lambda rows: 81.0),
        {"symbol": 16, "line": 4, "rule": 20, "text": 4},  # data and loss are not drawn: a panel for each pair of them
    ),
    "points": (Chart("c", "t", "points", "loss", "knn", "data"), {"symbol": 16, "rule": 16}),
    "points of two measures": (Chart("c", "t", "points", "distance", "knn", "loss"), {"symbol": 16, "rule": 32}),
    "heat": (Chart("c", "t", "heat", "temperature", "loss", "knn", "data"), {"rect": 16, "text": 16}),
    "box": (Chart("c", "t", "box", "loss", "knn", "data"), {"rule": 16, "rect": 32}),  # bars and ticks
    "box of records": (Chart("c", "t", "box", "kind", "cosine", data=cloud, rule=0.0), {"rule": 3, "rect": 4}),
    "density": (Chart("c", "t", "density", "cosine", "density", "kind", data=cloud), {"area": 2, "line": 2}),
    "curve": (Chart("c", "t", "curve", "step", "loss", "method", data=path), {"line": 4}),
    "range": (Chart("c", "t", "range", "rank", "median", data=spans), {"symbol": 5, "rule": 5}),
}


@pytest.mark.parametrize("name", DRAWN)
def test_every_kind_is_drawn_whole(name: str) -> None:
    chart, expected = DRAWN[name]
    spec = charts.spec(chart, made_up())
    assert json.loads(json.dumps(spec, allow_nan=False)) == spec, "plain JSON"
    svg = charts.svg(spec)
    assert {mark: count(svg, mark) for mark in expected} == expected
    assert "NaN" not in svg


def test_points_are_means_with_intervals_over_seeds() -> None:
    rows = made_up()
    found = records(Chart("c", "t", "line", "temperature", "knn", "loss", "data"), rows)
    values = [row.values["knn"] for row in rows[:3]]
    expected = interval(values)  # type: ignore[arg-type]
    first = {"x": 0.05, "colour": "ordinary", "panel": "cifar10", "n": 3, "censored": 0}
    assert {key: found[0][key] for key in first} == first
    assert (found[0]["y"], found[0]["low"], found[0]["high"]) == (expected.mean, expected.low, expected.high)


def test_one_seed_has_points_and_no_spans() -> None:
    spec = charts.spec(Chart("c", "t", "line", "temperature", "knn", "loss"), made_up(seeds=1))
    svg = charts.svg(spec)
    assert (count(svg, "symbol"), count(svg, "rule")) == (16, 0)


def test_boxes_are_quantiles_and_densities_integrate_to_one() -> None:
    given = [record["cosine"] for record in cloud([]) if record["kind"] == "a"]
    [box, _] = records(Chart("c", "t", "box", "kind", "cosine", data=cloud), [])
    shown = [box[key] for key in ("low", "q1", "y", "q3", "high")]
    assert shown == pytest.approx(np.quantile(given, [0.05, 0.25, 0.5, 0.75, 0.95]).tolist(), rel=1e-12)
    curve = [
        r for r in records(Chart("c", "t", "density", "cosine", "y", "kind", data=cloud), []) if r["colour"] == "a"
    ]
    x, y = (np.array([record[key] for record in curve]) for key in ("x", "y"))
    assert np.trapezoid(y, x) == pytest.approx(1.0, abs=0.005)  # 0.3 % of a kernel lie beyond three widths
    width = 0.9 * min(np.std(given, ddof=1), stats.iqr(given) / 1.34) * 200**-0.2
    oracle = stats.gaussian_kde(given, bw_method=width / np.std(given, ddof=1))
    assert y == pytest.approx(oracle(x), rel=1e-9)  # the same sum in doubles


def test_records_that_are_summed_up_already_are_taken_as_they_are() -> None:
    box = [{"kind": "a", "low": 0.1, "q1": 0.2, "cosine": 0.3, "q3": 0.4, "high": 0.5}]
    assert records(Chart("c", "t", "box", "kind", "cosine", data=lambda rows: box), []) == [
        {"x": "a", "low": 0.1, "q1": 0.2, "y": 0.3, "q3": 0.4, "high": 0.5}
    ]


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
        if chart.data is None and not callable(chart.rule):
            spec = charts.spec(chart, rows)
            assert "no finished run" in charts.svg(spec)
            assert not spec["data"]["values"]


def test_png() -> None:
    made = charts.png(charts.spec(Chart("c", "t", "line", "temperature", "knn"), made_up()), scale=1.0)
    assert made.startswith(b"\x89PNG")


def test_errors() -> None:
    with pytest.raises(ValueError, match="has the kind 'pie'; expected one of line"):
        charts.spec(Chart("c", "t", "pie", "loss", "knn"), made_up())
    with pytest.raises(ValueError, match="wants the axis 'losss'; the rows have data, loss"):
        charts.spec(Chart("c", "t", "line", "temperature", "knn", "losss"), made_up())
    with pytest.raises(ValueError, match="wants 'cosinus' of its records; they have kind, cosine"):
        charts.spec(Chart("c", "t", "box", "kind", "cosinus", data=cloud), [])
    with pytest.raises(ValueError, match="heat map without colour"):
        charts.spec(Chart("c", "t", "heat", "loss", "temperature"), made_up())
