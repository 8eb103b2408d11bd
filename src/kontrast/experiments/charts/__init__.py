"""Charts of experiments: Altair, as Vega-Lite specifications with their data inside, which are drawn anywhere.

`spec` makes one of a `Chart` and rows: records first (means and intervals over seeds, quantiles, histograms), then
layers. `svg` and `png` draw it. Kinds: line, points, heat, box, violin, curve, range (points with the spans that the
chart's own records give as low and high), and plane (points beside the unit circle, x and y to one scale). `learning`
gives the charts of the learning curves.

None on the x axis says that the axis does not apply: a level across the chart. A value that is only a lower bound is an
open triangle that points up, without an interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kontrast.experiments.charts._drawing import GRID, INK, Layer, domain, is_number, layers, level
from kontrast.experiments.charts._records import Record, learning, records, spread
from kontrast.experiments.experiment import Chart, Row
from kontrast.files import finite
from kontrast.report.figures import vl_convert

__all__ = ["learning", "png", "spec", "spread", "svg"]

WIDE, HIGH = 420, 260  # of the plot itself
PANEL_WIDE, PANEL_HIGH, ACROSS = 230, 170, 3  # of a panel
PLANE, PLANES_ACROSS = 150, 5  # side of a plane's panel


def spec(chart: Chart, rows: Sequence[Row], titles: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The Vega-Lite specification of a chart.

    Args:
        chart: What to draw.
        rows: The results.
        titles: Axes and measures in words; without them they have their own names.

    Raises:
        ValueError: The chart has no such kind, or names an axis or a key that the rows or records do not have.

    >>> rows = [Row({"temperature": t, "seed": s}, "", "done", {"knn": 80 + t}) for t in (0.1, 0.2) for s in (0, 1)]
    >>> made = spec(Chart("knn", "Accuracy", "line", "temperature", "knn", log_x=True), rows)
    >>> [layer["mark"]["type"] for layer in made["layer"]], len(made["data"]["values"])
    (['line', 'rule', 'point'], 2)
    """
    import altair as alt

    values = [_words(record) for record in records(chart, rows)]
    if chart.data is not None:  # its records' keys are its own; what y is, the title says
        titles = {**(titles or {}), chart.y: ""}
    names = {
        key: (titles or {}).get(name, name)
        for key, name in (("x", chart.x), ("y", chart.y), ("colour", chart.colour))
        if name is not None
    }
    in_panels = bool(values) and "panel" in values[0]
    drawn = layers(chart.kind, values, names, chart.log_x)
    theory = chart.rule(rows) if callable(chart.rule) else chart.rule
    if theory is not None:
        drawn += level(theory, PANEL_WIDE if in_panels else WIDE)
    # The data are put in below: Altair would check every record against its schema.
    picture: Layer = alt.layer(*drawn, data=alt.InlineData(values=[]))
    if in_panels:
        over = "panel" if chart.panel is None or " = " in str(values[0]["panel"]) else chart.panel
        picture = _panels(chart, values, picture, (titles or {}).get(over, over))
    else:
        picture = picture.properties(**_size(chart, WIDE, HIGH))
    subtitle: dict[str, Any] = {} if values else {"subtitle": "no finished run has these numbers yet"}
    made = picture.properties(title=alt.TitleParams(text=chart.title, anchor="start", **subtitle)).to_dict()
    plain: dict[str, Any] = finite({**made, "data": {"values": values}, "config": CONFIG})
    return plain


def svg(made: Mapping[str, Any]) -> str:
    """The chart as SVG."""
    return str(vl_convert().vegalite_to_svg(dict(made)))


def png(made: Mapping[str, Any], scale: float = 2.0) -> bytes:
    """The chart as PNG, ``scale`` pixels to a point."""
    return bytes(vl_convert().vegalite_to_png(dict(made), scale=scale))


def _words(record: Record) -> Record:
    """Booleans as words."""
    return {key: ("yes" if value else "no") if isinstance(value, bool) else value for key, value in record.items()}


def _size(chart: Chart, wide: int, high: int) -> dict[str, Any]:
    """A heat map has room for a number in each place; a plane is a square."""
    import altair as alt

    if chart.kind == "plane":
        side = PLANE if wide == PANEL_WIDE else high
        return {"width": side, "height": side}
    if chart.kind == "heat":
        return {"width": alt.Step(44), "height": alt.Step(30)}
    return {"width": wide, "height": high}


def _panels(chart: Chart, values: list[Record], picture: Layer, title: str) -> Layer:
    """The chart once for each panel; the records get the panels' names in words."""
    import altair as alt

    panels = domain(values, "panel")
    numbers = all(map(is_number, panels))
    named = {value: str(value) if title == "panel" else f"{title} = {value}" for value in panels}
    for record in values:
        record["panel"] = named.get(record["panel"], f"{title} = none")
    order = list(dict.fromkeys([*named.values(), *(record["panel"] for record in values)]))
    facet = alt.Facet(field="panel", type="nominal", sort=order, header=alt.Header(title=None))
    grid = picture.properties(**_size(chart, PANEL_WIDE, PANEL_HIGH)).facet(facet, columns=_columns(chart, len(panels)))
    # Data sets are not compared by the height of their points; steps of a number are.
    if (not numbers and chart.kind in ("line", "points", "curve")) or any("theory" in record for record in values):
        return grid.resolve_scale(y="independent")
    return grid


def _columns(chart: Chart, panels: int) -> int:
    """Rows of panels are of one length where they can be."""
    if chart.kind == "plane":
        return 4 if panels % 4 == 0 else min(panels, PLANES_ACROSS)
    return 2 if panels in (2, 4) else ACROSS


CONFIG: dict[str, Any] = {  # Altair's Config, as a specification has it
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
