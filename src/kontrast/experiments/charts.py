"""Charts of experiments: Altair, as Vega-Lite specifications with their data inside, which are drawn anywhere.

`spec` makes one of a `Chart` and rows: records first (means and intervals over seeds, quantiles, histograms), then
layers. `svg` and `png` draw it. Kinds: line, points, heat, box, violin, curve, range (points with the spans that the
chart's own records give as low and high), and plane (points beside the unit circle, x and y to one scale). `learning`
gives the charts of the learning curves.

None on the x axis says that the axis does not apply: a level across the chart. A value that is only a lower bound is an
open triangle that points up, without an interval.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import altair as alt

from kontrast.experiments.chart_records import Record, learning, records
from kontrast.experiments.experiment import Chart, Row
from kontrast.files import finite
from kontrast.report.figures import COLOURS, vl_convert

__all__ = ["learning", "png", "spec", "svg"]

Json = dict[str, Any]
Layer = Any  # an Altair chart

SHAPES = ("circle", "square", "diamond", "triangle-down", "cross", "triangle-right")
INK, GRID = "#808080", "#80808033"
DECADES = 1e4  # a positive curve that spans more is drawn on a logarithmic scale
MOST_TICKS = 12
FEW = 25  # steps of a curve whose points are marked
VIOLIN, MIDDLE = 0.46, 0.3  # half the width of a violin, and of the line at its median; 1 is the distance of two
REACH = 1.35  # of a plane's axes: a unit circle, and room for what stands outside

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
    values = [_words(record) for record in records(chart, rows)]
    if chart.data is not None:  # its records' keys are its own; what y is, the title says
        titles = {**(titles or {}), chart.y: ""}
    names = {
        key: (titles or {}).get(name, name)
        for key, name in (("x", chart.x), ("y", chart.y), ("colour", chart.colour))
        if name is not None
    }
    in_panels = bool(values) and "panel" in values[0]
    marks = layers(chart.kind, values, names, chart.log_x)
    # The data are put in below: Altair would check every record against its schema.
    picture: Layer = alt.layer(*marks, data=alt.InlineData(values=[]))
    if in_panels:
        over = "panel" if chart.panel is None or " = " in str(values[0]["panel"]) else chart.panel
        picture = _panels(chart, values, picture, (titles or {}).get(over, over))
    else:
        picture = picture.properties(**_size(chart, WIDE, HIGH))
    subtitle: dict[str, Any] = {} if values else {"subtitle": "no finished run has these numbers yet"}
    content = picture.properties(title=alt.TitleParams(text=chart.title, anchor="start", **subtitle)).to_dict()
    plain: dict[str, Any] = finite({**content, "data": {"values": values}, "config": CONFIG})
    return plain


def svg(content: Mapping[str, Any]) -> str:
    """The chart as SVG."""
    return str(vl_convert().vegalite_to_svg(dict(content)))


def png(content: Mapping[str, Any], scale: float = 2.0) -> bytes:
    """The chart as PNG, ``scale`` pixels to a point."""
    return bytes(vl_convert().vegalite_to_png(dict(content), scale=scale))


def _words(record: Record) -> Record:
    """The record with yes and no in place of booleans."""
    return {key: ("yes" if value else "no") if isinstance(value, bool) else value for key, value in record.items()}


def _size(chart: Chart, wide: int, high: int) -> dict[str, Any]:
    """A heat map has room for a number in each place; a plane is a square."""
    if chart.kind == "plane":
        side = PLANE if wide == PANEL_WIDE else high
        return {"width": side, "height": side}
    if chart.kind == "heat":
        return {"width": alt.Step(44), "height": alt.Step(30)}
    return {"width": wide, "height": high}


def _panels(chart: Chart, values: list[Record], picture: Layer, title: str) -> Layer:
    """The chart once for each panel; the records get the panels' names in words."""
    panels = domain(values, "panel")
    numbers = all(map(is_number, panels))
    names = {value: str(value) if title == "panel" else f"{title} = {value}" for value in panels}
    for record in values:
        record["panel"] = names.get(record["panel"], f"{title} = none")
    order = list(dict.fromkeys([*names.values(), *(record["panel"] for record in values)]))
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


# --------------------------------------------------------------------------------------------------------- layers


def layers(kind: str, records: Sequence[Record], names: Json, log_x: bool) -> list[Layer]:
    """The marks of a kind; ``names`` has the titles of x, y and colour."""
    return _KINDS[kind](records, names, log_x)


def is_number(value: Any) -> bool:
    """Whether an axis can have it to scale."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def domain(records: Sequence[Record], key: str) -> list[Any]:
    """The values of a key in their order; numbers rising."""
    values = list(dict.fromkeys(record[key] for record in records if record.get(key) is not None))
    return sorted(values) if all(map(is_number, values)) else values


def _draw(mark: Json, channels: Json, test: str | None = None) -> Layer:
    """A layer: a mark, its channels, and which records it draws (all by default)."""
    chart = alt.Chart(mark=alt.MarkDef(**mark)).encode(**channels)
    return chart if test is None else chart.transform_filter(test)


def _along(records: Sequence[Record], key: str, title: str, log: bool = False) -> Json:
    """An axis, as the arguments of its channel: to scale for numbers, else a place for each word."""
    values = domain(records, key)
    if not values or not all(map(is_number, values)):
        angle = _angle(values, any("panel" in record for record in records))
        return {"field": key, "type": "nominal", "sort": values, "title": title, "axis": alt.Axis(labelAngle=angle)}
    scale: Json = {"zero": False, "nice": False} if key == "x" else {"zero": False}
    ticks: Json = {}
    if log:
        scale["type"] = "log" if min(values) > 0 else "symlog"
        if scale["type"] == "log":
            del scale["zero"]  # such a scale has no zero, and Vega-Lite warns about the option
        if len(values) <= MOST_TICKS:
            ticks["values"] = values
    if key == "x":
        scale["padding"] = 12
    axis = alt.Axis(labelOverlap="greedy", labelSeparation=4, format=",.6~g", **ticks)
    return {"field": key, "type": "quantitative", "title": title, "scale": alt.Scale(**scale), "axis": axis}


def _angle(values: Sequence[Any], in_panel: bool) -> int:
    """Words lie slanted where they would not fit side by side."""
    room = 40 if in_panel else 70  # letters
    return -30 if len(values) * max((len(str(value)) + 1 for value in values), default=0) > room else 0


def _paint(records: Sequence[Record], title: str | None) -> Json:
    """A colour for each value, numbers graded; without a title all have the first colour."""
    values = domain(records, "colour")
    if not values or title is None:
        return {"color": alt.value(COLOURS[0])}
    legend = alt.Legend(orient="top", title=title, symbolOpacity=1)
    if all(map(is_number, values)) or len(values) > len(COLOURS):
        scale = alt.Scale(domain=values, scheme=alt.SchemeParams(name="viridis", extent=[0.1, 0.85]))
        return {"color": alt.Color(field="colour", type="ordinal", sort=values, scale=scale, legend=legend)}
    scale = alt.Scale(domain=values, range=list(COLOURS[: len(values)]))
    return {"color": alt.Color(field="colour", type="nominal", scale=scale, legend=legend)}


def _shape(records: Sequence[Record], title: str | None) -> Json:
    """A shape for each value beside its colour, if there are enough shapes."""
    values = domain(records, "colour")
    if title is None or not values or all(map(is_number, values)) or len(values) > len(SHAPES):
        return {}
    scale = alt.Scale(domain=values, range=list(SHAPES[: len(values)]))
    return {
        "shape": alt.Shape(field="colour", type="nominal", scale=scale, legend=alt.Legend(orient="top", title=title))
    }


def _tooltip(records: Sequence[Record], names: Json, **more: str) -> list[Any]:
    """The values of a point in words; ``more`` has titles of further keys."""
    titles = {"colour": names.get("colour"), "panel": "part", "x": names["x"], "y": names["y"]}
    titles |= {"low": "from", "high": "to", "left": "x from", "right": "x to", "q1": "25 %", "q3": "75 %"}
    titles |= {"n": "n", "censored": "lower bounds", "seed": "seed"}
    lines = []
    for key, title in titles.items():
        values = domain(records, key)
        if values and title:
            number = all(map(is_number, values)) and key not in ("colour", "panel")
            kind: Json = {"type": "quantitative", "format": ".4~g"} if number else {"type": "nominal"}
            lines.append(alt.Tooltip(field=key, title=title, **kind))
    return lines


def _beside(records: Sequence[Record], x: Json) -> Json:
    """Colours stand side by side where x is a word."""
    values = domain(records, "colour")
    if x["type"] != "nominal" or len(values) < 2:
        return {}
    scale = alt.Scale(domain=values, paddingOuter=0.8)
    return {"xOffset": alt.XOffset(field="colour", type="nominal", sort=values, scale=scale)}


def _by_seed(records: Sequence[Record]) -> Json:
    """A line for each seed."""
    return {"detail": alt.Detail(field="seed", type="nominal")} if domain(records, "seed") else {}


def _dots(records: Sequence[Record], names: Json, log_x: bool, *, lines: bool) -> list[Layer]:
    """Points with their spans, and lines through them; where x does not apply (None), a level of its own."""
    x, y = _along(records, "x", names["x"], log_x), _along(records, "y", names["y"])
    at = {"x": alt.X(**x), "y": alt.Y(**y)}
    paint = _paint(records, names.get("colour"))
    beside = _beside(records, x)
    tips = {"tooltip": _tooltip(records, names)}
    marks: list[Layer] = []
    if any(record["x"] is None for record in records):
        mark = {"type": "rule", "strokeWidth": 2, "strokeDash": [6, 3]}
        marks.append(_draw(mark, {"y": at["y"], **paint, **tips}, "datum.x === null"))
    if lines and x["type"] == "quantitative":
        line = {"type": "line", "strokeWidth": 2}
        marks.append(_draw(line, {**at, **paint, **_by_seed(records)}, "datum.x !== null"))
    rule = {"type": "rule", "strokeWidth": 1.5, "opacity": 0.8}
    if domain(records, "low"):
        span = {**at, "y": alt.Y(**{**y, "field": "low"}), "y2": alt.Y2(field="high")}
        marks.append(_draw(rule, {**span, **paint, **beside}, "isValid(datum.low) && isValid(datum.x)"))
    if domain(records, "left"):
        span = {**at, "x": alt.X(**{**x, "field": "left"}), "x2": alt.X2(field="right")}
        marks.append(_draw(rule, {**span, **paint, **beside}, "isValid(datum.left) && isValid(datum.x)"))
    dot = {"type": "point", "filled": True, "size": 45, "opacity": 1}
    points = {**at, **paint, **beside, **tips}
    shape = _shape(records, names.get("colour"))
    if any(record.get("censored") for record in records):
        arrow = {**dot, "shape": "triangle-up", "filled": False, "size": 90, "strokeWidth": 2}
        marks.append(_draw(arrow, points, "datum.censored > 0 && datum.x !== null"))
        marks.append(_draw(dot, {**points, **shape}, "!(datum.censored > 0) && datum.x !== null"))
    else:
        marks.append(_draw(dot, {**points, **shape}, "datum.x !== null"))
    return marks


def _line(records: Sequence[Record], names: Json, log_x: bool) -> list[Layer]:
    return _dots(records, names, log_x, lines=True)


def _scattered(records: Sequence[Record], names: Json, log_x: bool) -> list[Layer]:
    return _dots(records, names, log_x, lines=False)


def _spans_decades(records: Sequence[Record]) -> bool:
    """Whether some curve falls through decades; a loss beside its bound of 1e−9 does not."""
    curves: dict[Any, list[float]] = {}
    for record in records:
        curves.setdefault((record.get("colour"), record.get("panel")), []).append(record["y"])
    positive = all(min(y) > 0 for y in curves.values())
    return bool(curves) and positive and any(max(y) / min(y) > DECADES for y in curves.values())


def _curve(records: Sequence[Record], names: Json, log_x: bool) -> list[Layer]:
    log_y = _spans_decades(records)
    y = alt.Y(**_along(records, "y", names["y"], log_y))
    if log_y:
        y = y.axis(labelOverlap="greedy", labelSeparation=4, format="~e", tickCount=6)
    few = len(domain(records, "x")) < FEW  # a single point would draw no line
    dots: Json = {"point": alt.OverlayMarkDef(size=18)} if few else {}
    channels = {
        "x": alt.X(**_along(records, "x", names["x"], log_x)),
        "y": y,
        **_paint(records, names.get("colour")),
        "tooltip": _tooltip(records, names),
        **_by_seed(records),
    }
    return [_draw({"type": "line", "strokeWidth": 2, **dots}, channels)]


def _box(records: Sequence[Record], names: Json, log_x: bool) -> list[Layer]:
    """A line for nine tenths of the values, a bar for the middle half, a white tick at the median.

    The bar has a border, so that it can be seen where all values are one.
    """
    values = domain(records, "x")
    angle = _angle(values, any("panel" in record for record in records))
    x = {"field": "x", "type": "nominal", "sort": values, "title": names["x"], "axis": alt.Axis(labelAngle=angle)}
    y = _along(records, "y", names["y"])
    shared = {"x": alt.X(**x), **_beside(records, x), "tooltip": _tooltip(records, names)}
    painted = {**shared, **_paint(records, names.get("colour"))}
    width = max(22 // max(len(domain(records, "colour")), 1), 8)

    def span(start: str, end: str) -> Json:
        return {"y": alt.Y(**{**y, "field": start}), "y2": alt.Y2(field=end)}

    marks: list[Layer] = []
    if domain(records, "theory"):  # a line across the panel at the theory's value, which may differ by panel
        mark = {"type": "rule", "strokeDash": [4, 3], "strokeWidth": 1.5, "color": INK}
        marks.append(_draw(mark, {"y": alt.Y(**{**y, "field": "theory", "aggregate": "mean"})}))
    tick = {"type": "tick", "thickness": 2, "size": width, "orient": "horizontal"}
    return [
        *marks,
        _draw({"type": "rule", "strokeWidth": 1.5}, {**painted, **span("low", "high")}),
        _draw({"type": "bar", "size": width, "stroke": INK, "strokeWidth": 1}, {**painted, **span("q1", "q3")}),
        _draw(tick, {**shared, "y": alt.Y(**y), "color": alt.value("white")}),
    ]


def _heat(records: Sequence[Record], names: Json, log_x: bool) -> list[Layer]:
    """Every value a place, its number written in it."""
    across, up = domain(records, "x"), domain(records, "y")
    at: Json = {
        "x": alt.X(field="x", type="ordinal", sort=across, title=names["x"], axis=alt.Axis(labelAngle=0)),
        "y": alt.Y(field="y", type="ordinal", sort=up[::-1], title=names["y"]),
    }
    values = [record["colour"] for record in records] or [0.0]
    middle = (min(values) + max(values)) / 2
    scale = alt.Scale(scheme="viridis", domain=[min(values), max(values)])
    paint = alt.Color(field="colour", type="quantitative", scale=scale, legend=alt.Legend(title=names["colour"]))
    ink = alt.condition(f"datum.colour > {middle}", alt.value("black"), alt.value("white"))
    number = alt.Text(field="colour", type="quantitative", format=".3~g")
    return [
        _draw({"type": "rect"}, {**at, "color": paint, "tooltip": _tooltip(records, names)}),
        _draw({"type": "text", "fontSize": 11}, {**at, "text": number, "color": ink}),
    ]


def _violin(records: Sequence[Record], names: Json, log_x: bool) -> list[Layer]:
    """A shape for each word on the x axis, as wide at each height as there are values; two colours share a shape.

    Words stand at 0, 1, 2 …, so that widths can be drawn to scale: an area from ``left`` to ``right`` over y.
    """
    words = domain(records, "x")
    _add_widths(records, words, domain(records, "colour"))
    labels = "{" + ", ".join(f"{i}: {json.dumps(str(word))}" for i, word in enumerate(words)) + "}"
    axis = alt.Axis(values=list(range(len(words))), labelExpr=f"({labels})[datum.value]", grid=False)
    scale = alt.Scale(domain=[-0.6, len(words) - 0.4], nice=False, zero=False)
    x: Json = {"type": "quantitative", "title": names["x"], "scale": scale, "axis": axis}
    y = _along(records, "y", names["y"])
    shared = {"detail": alt.Detail(field="x", type="nominal"), **_paint(records, names.get("colour"))}
    area = {"x": alt.X(field="left", **x), "x2": alt.X2(field="right"), "y": alt.Y(**y), **shared}
    marks = [_draw({"type": "area", "orient": "horizontal", "opacity": 0.85}, area)]
    if middles := [record for record in records if record.get("middle") is not None]:
        places: list[Record] = [{k: record[k] for k in ("colour", "panel", "x") if k in record} for record in middles]
        median = alt.Tooltip(field="middle", title="median", type="quantitative", format=".3f")
        line = {
            "x": alt.X(field="left_middle", **x),
            "x2": alt.X2(field="right_middle"),
            "y": alt.Y(**{**y, "field": "middle"}),
            "tooltip": [*_tooltip(places, names), median],
        }
        marks.append(_draw({"type": "rule", "strokeWidth": 1.5, "color": "white"}, line, "isValid(datum.middle)"))
    return marks


def _add_widths(records: Sequence[Record], words: list[Any], colours: list[Any]) -> None:
    """The left and right end of a violin at each record, in place of its share."""
    for record in records:
        at = words.index(record["x"])
        sides = [side == colours.index(record["colour"]) for side in (0, 1)] if len(colours) == 2 else [True, True]
        for name, wide in (("", VIOLIN * record.pop("share")), ("_middle", MIDDLE)):
            record[f"left{name}"], record[f"right{name}"] = (
                round(at + sign * wide * side, 4) for sign, side in zip((-1, 1), sides, strict=True)
            )
        if record.get("middle") is None:
            del record["left_middle"], record["right_middle"]


def _plane(records: Sequence[Record], names: Json, log_x: bool) -> list[Layer]:
    """Points beside the unit circle, without axes: filled in front, hollow behind; weights end in a diamond.

    A record's ``mark`` says which of the three it is (front, behind, weight); without one all are in front.
    """
    scale = alt.Scale(domain=[-REACH, REACH], nice=False)
    place: Json = {"type": "quantitative", "scale": scale, "axis": None, "title": None}
    at: Json = {"x": alt.X(field="x", **place), "y": alt.Y(field="y", **place)}
    channels = {**at, **_paint(records, names.get("colour")), "tooltip": _tooltip(records, {**names, "x": "", "y": ""})}
    turn = [{"x": math.cos(a * math.pi / 36), "y": math.sin(a * math.pi / 36), "order": a} for a in range(73)]
    circle = alt.Chart(
        alt.InlineData(values=turn), mark=alt.MarkDef(type="line", strokeWidth=1, color=INK, opacity=0.6)
    ).encode(**at, order=alt.Order(field="order", type="quantitative"))
    hollow = {"type": "point", "filled": False, "size": 18, "strokeWidth": 1.2, "opacity": 0.7}
    full = {"type": "point", "filled": True, "size": 28, "opacity": 0.85}
    marks = [
        circle,
        _draw(hollow, channels, "datum.mark === 'behind'"),
        _draw(full, channels, "datum.mark !== 'behind' && datum.mark !== 'weight'"),
    ]
    if any(record.get("mark") == "weight" for record in records):
        centre = {"x2": alt.datum(0), "y2": alt.datum(0)}
        tip = {"type": "point", "shape": "diamond", "filled": True, "size": 110, "opacity": 1, "stroke": INK}
        marks.append(_draw({"type": "rule", "strokeWidth": 2.5}, {**channels, **centre}, "datum.mark === 'weight'"))
        marks.append(_draw(tip, channels, "datum.mark === 'weight'"))
    return marks


_KINDS: dict[str, Callable[[Sequence[Record], Json, bool], list[Layer]]] = {
    "line": _line,
    "box": _box,
    "heat": _heat,
    "points": _scattered,
    "violin": _violin,
    "curve": _curve,
    "range": _scattered,
    "plane": _plane,
}
