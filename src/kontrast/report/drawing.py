"""What the charts of several pages share: their data and size, the shapes of points, and quantiles as spans."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import altair as alt
import numpy as np

Json = dict[str, Any]  # a Vega-Lite specification, or a row of its data

SHAPES = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-right")
QUANTILES = {"low": 0.05, "q1": 0.25, "median": 0.5, "q3": 0.75, "high": 0.95}


def chart_of(records: Iterable[Json]) -> Any:
    """A chart of records, without marks."""
    return alt.Chart(alt.InlineData(values=list(records)))


def fit_to_page(chart: Any, high: int, title: str) -> Json:
    """The specification of a chart that is as wide as its place."""
    spec: Json = chart.properties(title=title, width="container", height=high).to_dict()
    return spec


def quantiles(values: np.ndarray) -> Json:
    """The quantiles that `spans` draws; NaN is left out."""
    return {name: round(float(np.nanquantile(values, q)), 5) for name, q in QUANTILES.items()}


def spans(base: Any, axis: str, *, bar: int, tick: int) -> list[Any]:
    """The layers of quantiles of cosines: a line for nine tenths, a bar for the middle half, a tick at the median.

    The tick is longer than the bar is wide and of its colour, so it stays visible where the values are nearly equal.

    Args:
        base: A chart of records with `quantiles`, which encodes the other axis.
        axis: Along x or y.
        bar: The width of the bars.
        tick: The length of the ticks.
    """
    channel = alt.X if axis == "x" else alt.Y

    def at(quantile: str) -> Any:
        return channel(f"{quantile}:Q", title="cosine", scale=alt.Scale(zero=False))

    orient = "vertical" if axis == "x" else "horizontal"
    return [
        base.mark_rule(strokeWidth=1.5).encode(**{axis: at("low"), f"{axis}2": "high:Q"}),
        base.mark_bar(size=bar, opacity=0.5).encode(**{axis: at("q1"), f"{axis}2": "q3:Q"}),
        base.mark_tick(thickness=2.5, size=tick, orient=orient).encode(**{axis: at("median")}),
    ]


def quantile_tips() -> list[Any]:
    """The quantiles for a tooltip."""
    words = {"low": "5 %", "q1": "25 %", "median": "median", "q3": "75 %", "high": "95 %"}
    return [alt.Tooltip(f"{key}:Q", title=title, format=".3f") for key, title in words.items()]
