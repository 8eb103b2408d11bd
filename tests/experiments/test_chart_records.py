"""What the charts of experiments draw, as records."""

from __future__ import annotations

import numpy as np
import pytest

from kontrast.experiments.chart_records import records, violin_records
from kontrast.experiments.experiment import Chart
from kontrast.intervals import interval
from tests.experiments.test_charts import cloud, made_up


def test_points_are_means_with_intervals_over_seeds() -> None:
    rows = made_up()
    found = records(Chart("c", "t", "line", "temperature", "knn", "loss", "data"), rows)
    values = [row.values["knn"] for row in rows[:3]]
    expected = interval(values)  # type: ignore[arg-type]
    first = {"x": 0.05, "colour": "ordinary", "panel": "cifar10", "n": 3, "censored": 0}
    assert {key: found[0][key] for key in first} == first
    assert (found[0]["y"], found[0]["low"], found[0]["high"]) == (expected.mean, expected.low, expected.high)


def test_boxes_are_quantiles() -> None:
    given = [record["cosine"] for record in cloud([]) if record["kind"] == "a"]
    [box, _] = records(Chart("c", "t", "box", "kind", "cosine", data=cloud), [])
    shown = [box[key] for key in ("low", "q1", "y", "q3", "high")]
    assert shown == pytest.approx(np.quantile(given, [0.05, 0.25, 0.5, 0.75, 0.95]).tolist(), rel=1e-12)


def test_violins_are_histograms_with_the_median() -> None:
    given = np.array([record["cosine"] for record in cloud([])])
    shape = [r for r in records(Chart("c", "t", "violin", "kind", "cosine", data=cloud), []) if r["x"] == "a"]
    edges = np.linspace(given.min(), given.max(), 41)
    counts = np.histogram(given[:200], edges)[0]
    first, last = np.flatnonzero((np.cumsum(counts) > 1) & (np.cumsum(counts) - counts < 199))[[0, -1]]  # 0.5 % is one
    assert [r["share"] for r in shape] == pytest.approx([0, *(counts[first : last + 1] / counts.max()), 0])
    assert [r["y"] for r in shape][1:-1] == pytest.approx(((edges[1:] + edges[:-1]) / 2)[first : last + 1])
    assert shape[0]["middle"] == pytest.approx(np.median(given[:200]), abs=edges[1] - edges[0])
    assert all(record.get("middle") is None for record in shape[1:])


def test_values_of_one_bin_have_a_shape_and_none_have_none() -> None:
    edges = np.linspace(0, 1, 5)
    one = violin_records(np.array([0, 7, 0, 0]), edges, "y")
    assert [(r["y"], r["share"]) for r in one] == [(0.25, 0.0), (0.375, 1.0), (0.5, 0.0)]
    assert one[0]["middle"] == pytest.approx(0.375)
    assert violin_records(np.zeros(4, int), edges, "y") == []


def test_records_that_are_summed_up_already_are_taken_as_they_are() -> None:
    box = [{"kind": "a", "low": 0.1, "q1": 0.2, "cosine": 0.3, "q3": 0.4, "high": 0.5}]
    assert records(Chart("c", "t", "box", "kind", "cosine", data=lambda rows: box), []) == [
        {"x": "a", "low": 0.1, "q1": 0.2, "y": 0.3, "q3": 0.4, "high": 0.5}
    ]
