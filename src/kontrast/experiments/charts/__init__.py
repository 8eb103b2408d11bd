"""Charts as Vega-Lite specifications: plain dicts, drawn anywhere, with their data inside.

`spec` makes one of a `Chart` and rows: records first (means and intervals over seeds, quantiles, histograms), then
marks. `svg` and `png` draw it. Kinds: line, points, heat, box, violin, curve, range (points with the spans that the
chart's own records give as low and high), and plane (points beside the unit circle, x and y to one scale). `learning`
gives the charts of the learning curves.

None on the x axis says that the axis does not apply: a level across the chart. A value that is only a lower bound is an
open triangle that points up, without an interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kontrast.experiments.charts._drawing import GRID, INK, domain, is_number, layers
from kontrast.experiments.charts._learning import learning
from kontrast.experiments.charts._records import Record, records, spread
from kontrast.experiments.experiment import Chart, Row
from kontrast.files import finite

__all__ = ["learning", "png", "spec", "spread", "svg"]

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
WIDE, HIGH = 420, 260  # of the plot itself
PANEL_WIDE, PANEL_HIGH, ACROSS = 230, 170, 3  # of a panel
PLANE, PLANES_ACROSS = 150, 5  # side of a plane's panel


def spec(chart: Chart, rows: Sequence[Row], titles: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The specification. ``titles`` name axes and measures in words; without them they have their own names.

    >>> rows = [Row({"temperature": t, "seed": s}, "", "done", {"knn": 80 + t}) for t in (0.1, 0.2) for s in (0, 1)]
    >>> made = spec(Chart("knn", "Accuracy", "line", "temperature", "knn", log_x=True), rows)
    >>> [layer["mark"]["type"] for layer in made["layer"]], len(made["data"]["values"])
    (['line', 'rule', 'point'], 2)
    """
    found = [_words(record) for record in records(chart, rows)]
    if chart.data is not None:  # its records' keys are its own; what y is, the title says
        titles = {**(titles or {}), chart.y: ""}
    names = {
        key: (titles or {}).get(name, name)
        for key, name in (("x", chart.x), ("y", chart.y), ("colour", chart.colour))
        if name is not None
    }
    drawn = layers(chart.kind, found, names, chart.log_x)
    level = chart.rule(rows) if callable(chart.rule) else chart.rule
    if level is not None:
        drawn += _level(level, PANEL_WIDE if found and "panel" in found[0] else WIDE)
    made: dict[str, Any] = {
        "$schema": SCHEMA,
        "title": {"text": chart.title, "anchor": "start"},
        "data": {"values": found},
        "config": CONFIG,
    }
    if not found:
        made["title"]["subtitle"] = "no finished run has these numbers yet"
    if not found or "panel" not in found[0]:
        made |= {**_size(chart, WIDE, HIGH), "layer": drawn}
    else:
        over = "panel" if chart.panel is None or " = " in str(found[0]["panel"]) else chart.panel
        made |= _panels(chart, found, drawn, (titles or {}).get(over, over))
    plain: dict[str, Any] = finite(made)
    return plain


def svg(made: Mapping[str, Any]) -> str:
    """The chart as SVG."""
    return str(_converter().vegalite_to_svg(dict(made)))


def png(made: Mapping[str, Any], scale: float = 2.0) -> bytes:
    """The chart as PNG, ``scale`` pixels to a point."""
    return bytes(_converter().vegalite_to_png(dict(made), scale=scale))


def _converter() -> Any:
    try:
        import vl_convert
    except ImportError as error:
        raise ImportError("drawing a chart needs a package: pip install vl-convert-python") from error
    return vl_convert


def _words(record: Record) -> Record:
    """Booleans as words."""
    return {key: ("yes" if value else "no") if isinstance(value, bool) else value for key, value in record.items()}


def _level(value: float, wide: int) -> list[dict[str, Any]]:
    """The theory's value, and its name at the end of the line."""
    line = {"type": "rule", "strokeDash": [4, 3], "strokeWidth": 1.5, "color": INK}
    place = {"align": "right", "baseline": "bottom", "dy": -2}
    name = {"type": "text", "text": "theory", "color": INK, "fontSize": 11, **place}
    shared = {"y": {"datum": value}, "tooltip": {"value": f"theory: {value:.4g}"}}
    data: dict[str, Any] = {"values": [{}]}
    return [
        {"data": data, "mark": line, "encoding": shared},
        {"data": data, "mark": name, "encoding": {**shared, "x": {"value": wide - 2}}},
    ]


def _size(chart: Chart, wide: int, high: int) -> dict[str, Any]:
    """A heat map has room for a number in each place; a plane is a square."""
    if chart.kind == "plane":
        side = PLANE if wide == PANEL_WIDE else high
        return {"width": side, "height": side}
    return {"width": {"step": 44}, "height": {"step": 30}} if chart.kind == "heat" else {"width": wide, "height": high}


def _panels(chart: Chart, found: list[Record], drawn: list[dict[str, Any]], title: str) -> dict[str, Any]:
    values = domain(found, "panel")
    numbers = all(map(is_number, values))
    named = {value: str(value) if title == "panel" else f"{title} = {value}" for value in values}
    for record in found:
        record["panel"] = named.get(record["panel"], f"{title} = none")
    panel = {
        "field": "panel",
        "type": "nominal",
        "sort": list(dict.fromkeys([*named.values(), *(record["panel"] for record in found)])),
        "header": {"title": None},
    }
    made: dict[str, Any] = {
        "facet": panel,
        "columns": _columns(chart, len(values)),
        "spec": {**_size(chart, PANEL_WIDE, PANEL_HIGH), "layer": drawn},
    }
    # Data sets are not compared by the height of their points; steps of a number are.
    if (not numbers and chart.kind in ("line", "points", "curve")) or any("theory" in record for record in found):
        made["resolve"] = {"scale": {"y": "independent"}}
    return made


def _columns(chart: Chart, panels: int) -> int:
    """Rows of panels are of one length where they can be."""
    if chart.kind == "plane":
        return 4 if panels % 4 == 0 else min(panels, PLANES_ACROSS)
    return 2 if panels in (2, 4) else ACROSS


CONFIG: dict[str, Any] = {
    "background": None,
    "font": "Helvetica, Arial, sans-serif",
    "padding": 8,
    "axis": {
        "labelColor": INK,
        "titleColor": INK,
        "domainColor": INK,
        "tickColor": INK,
        "gridColor": GRID,
        "labelFontSize": 11,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
    },
    "axisQuantitative": {"tickCount": 6},
    "header": {"labelColor": INK, "titleColor": INK, "labelFontSize": 12},
    "legend": {"labelColor": INK, "titleColor": INK, "labelFontSize": 11, "titleFontSize": 11, "labelLimit": 300},
    "title": {"color": INK, "subtitleColor": INK, "fontSize": 14, "fontWeight": "normal", "offset": 10},
    "view": {"stroke": None},
}
