"""Records to Vega-Lite marks: one function a kind gives the layers; scales, colours and panels are the same for all.

Colours are Okabe and Ito's, which the colour-blind tell apart, without the two that vanish on white or black; numbers
and long lists are graded (viridis without its ends). Ink is a middle grey on no background, so that a chart can be read
on a light page and on a dark one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

from kontrast.experiments.charts._records import Record

Json = dict[str, Any]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
SHAPES = ("circle", "square", "diamond", "triangle-down", "cross", "triangle-right")
INK, GRID = "#808080", "#80808033"
DECADES = 1e4  # a positive curve that spans more is drawn on a logarithmic scale
MOST_TICKS = 12
FEW = 25  # steps of a curve whose points are marked
VIOLIN, MIDDLE = 0.46, 0.3  # half the width of a violin, and of the line at its median; 1 is the distance of two


def layers(kind: str, records: Sequence[Record], names: Json, log_x: bool) -> list[Json]:
    """The marks of a kind; ``names`` has the titles of x, y and colour."""
    return _KINDS[kind](records, names, log_x)


def is_number(value: Any) -> bool:
    """Whether an axis can have it to scale."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def domain(records: Sequence[Record], key: str) -> list[Any]:
    """The values of a key in their order; numbers rising."""
    found = list(dict.fromkeys(record[key] for record in records if record.get(key) is not None))
    return sorted(found) if all(map(is_number, found)) else found


def along(records: Sequence[Record], key: str, title: str, log: bool = False) -> Json:
    """An axis: to scale for numbers, else a place for each word."""
    values = domain(records, key)
    if not values or not all(map(is_number, values)):
        angle = _angle(values, any("panel" in record for record in records))
        return {"field": key, "type": "nominal", "sort": values, "title": title, "axis": {"labelAngle": angle}}
    scale: Json = {"zero": False, "nice": False} if key == "x" else {"zero": False}
    axis: Json = {"labelOverlap": "greedy", "labelSeparation": 4, "format": ",.6~g"}
    if log:
        scale["type"] = "log" if min(values) > 0 else "symlog"
        if len(values) <= MOST_TICKS:
            axis["values"] = values
    if key == "x":
        scale["padding"] = 12
    return {"field": key, "type": "quantitative", "title": title, "scale": scale, "axis": axis}


def _angle(values: Sequence[Any], in_panel: bool) -> int:
    """Words lie slanted where they would not fit side by side."""
    room = 40 if in_panel else 70  # letters
    return -30 if len(values) * max((len(str(value)) + 1 for value in values), default=0) > room else 0


def colour(records: Sequence[Record], title: str | None) -> Json:
    """A colour for each value, numbers graded; without one all have the first."""
    values = domain(records, "colour")
    if not values or title is None:
        return {"value": COLOURS[0]}
    legend = {"orient": "top", "title": title, "symbolOpacity": 1}
    if all(map(is_number, values)) or len(values) > len(COLOURS):
        scale: Json = {"domain": values, "scheme": {"name": "viridis", "extent": [0.1, 0.85]}}
        return {"field": "colour", "type": "ordinal", "sort": values, "scale": scale, "legend": legend}
    return {
        "field": "colour",
        "type": "nominal",
        "scale": {"domain": values, "range": list(COLOURS[: len(values)])},
        "legend": legend,
    }


def _shape(records: Sequence[Record], title: str | None) -> Json:
    """A shape for each value beside its colour, where there are enough."""
    values = domain(records, "colour")
    if title is None or not values or all(map(is_number, values)) or len(values) > len(SHAPES):
        return {}
    scale = {"domain": values, "range": list(SHAPES[: len(values)])}
    return {
        "shape": {"field": "colour", "type": "nominal", "scale": scale, "legend": {"orient": "top", "title": title}}
    }


def _tooltip(records: Sequence[Record], names: Json) -> list[Json]:
    titles = {"colour": names.get("colour"), "panel": "part", "x": names["x"], "y": names["y"]}
    titles |= {"low": "from", "high": "to", "left": "x from", "right": "x to", "q1": "25 %", "q3": "75 %"}
    titles |= {"n": "n", "censored": "lower bounds", "seed": "seed"}
    found = []
    for key, title in titles.items():
        values = domain(records, key)
        if values and title:
            number = all(map(is_number, values)) and key not in ("colour", "panel")
            kind: Json = {"type": "quantitative", "format": ".4~g"} if number else {"type": "nominal"}
            found.append({"field": key, "title": title, **kind})
    return found


def _beside(records: Sequence[Record], x: Json) -> Json:
    """Colours stand side by side where x is a word."""
    values = domain(records, "colour")
    if x["type"] == "nominal" and len(values) > 1:
        return {
            "xOffset": {
                "field": "colour",
                "type": "nominal",
                "sort": values,
                "scale": {"domain": values, "paddingOuter": 0.8},
            }
        }
    return {}


def _with(test: str, mark: Json, encoding: Json) -> Json:
    return {"transform": [{"filter": test}], "mark": mark, "encoding": encoding}


def _marked(records: Sequence[Record], names: Json, log_x: bool, *, joined: bool) -> list[Json]:
    """Points with their spans, and lines through them; where x does not apply (None), a level of its own."""
    at = {"x": along(records, "x", names["x"], log_x), "y": along(records, "y", names["y"])}
    paint = {"color": colour(records, names.get("colour"))}
    beside = _beside(records, at["x"])
    tips = {"tooltip": _tooltip(records, names)}
    found: list[Json] = []
    if any(record["x"] is None for record in records):
        level = {"type": "rule", "strokeWidth": 2, "strokeDash": [6, 3]}
        found.append(_with("datum.x === null", level, {"y": at["y"], **paint, **tips}))
    if joined and at["x"]["type"] == "quantitative":
        detail = {"detail": {"field": "seed", "type": "nominal"}} if domain(records, "seed") else {}
        found.append(_with("datum.x !== null", {"type": "line", "strokeWidth": 2}, {**at, **paint, **detail}))
    for spans, start, end in (("y", "low", "high"), ("x", "left", "right")):
        if domain(records, start):
            span = {**at, spans: {**at[spans], "field": start}, f"{spans}2": {"field": end}}
            mark = {"type": "rule", "strokeWidth": 1.5, "opacity": 0.8}
            found.append(_with(f"isValid(datum.{start}) && isValid(datum.x)", mark, {**span, **paint, **beside}))
    dot = {"type": "point", "filled": True, "size": 45, "opacity": 1}
    shape = _shape(records, names.get("colour"))
    plain = {**at, **paint, **beside, **tips, **shape}
    if any(record.get("censored") for record in records):
        arrow = {**dot, "shape": "triangle-up", "filled": False, "size": 90, "strokeWidth": 2}
        bound = {key: value for key, value in plain.items() if key != "shape"}
        found.append(_with("datum.censored > 0 && datum.x !== null", arrow, bound))
        found.append(_with("!(datum.censored > 0) && datum.x !== null", dot, plain))
    else:
        found.append(_with("datum.x !== null", dot, plain))
    return found


def _line(records: Sequence[Record], names: Json, log_x: bool) -> list[Json]:
    return _marked(records, names, log_x, joined=True)


def _scattered(records: Sequence[Record], names: Json, log_x: bool) -> list[Json]:
    return _marked(records, names, log_x, joined=False)


def _spans_decades(records: Sequence[Record]) -> bool:
    """Whether some curve falls through decades; a loss beside its bound of 1e−9 does not."""
    curves: dict[Any, list[float]] = {}
    for record in records:
        curves.setdefault((record.get("colour"), record.get("panel")), []).append(record["y"])
    positive = all(min(y) > 0 for y in curves.values())
    return bool(curves) and positive and any(max(y) / min(y) > DECADES for y in curves.values())


def _curve(records: Sequence[Record], names: Json, log_x: bool) -> list[Json]:
    log_y = _spans_decades(records)
    detail = {"detail": {"field": "seed", "type": "nominal"}} if domain(records, "seed") else {}
    encoding: Json = {
        "x": along(records, "x", names["x"], log_x),
        "y": along(records, "y", names["y"], log_y),
        "color": colour(records, names.get("colour")),
        "tooltip": _tooltip(records, names),
        **detail,
    }
    if log_y:
        encoding["y"]["axis"] |= {"format": "~e", "tickCount": 6}
    few = len(domain(records, "x")) < FEW  # a single point would draw no line
    dots: Json = {"point": {"size": 18}} if few else {}
    return [{"mark": {"type": "line", "strokeWidth": 2, **dots}, "encoding": encoding}]


def _box(records: Sequence[Record], names: Json, log_x: bool) -> list[Json]:
    """A line for nine tenths of the values, a bar for the middle half, a white tick at the median.

    The bar has a border, so that it can be seen where all values are one.
    """
    values = domain(records, "x")
    angle = _angle(values, any("panel" in record for record in records))
    x = {"field": "x", "type": "nominal", "sort": values, "title": names["x"], "axis": {"labelAngle": angle}}
    y = along(records, "y", names["y"])
    shared = {"x": x, **_beside(records, x), "tooltip": _tooltip(records, names)}
    paint = {"color": colour(records, names.get("colour"))}
    count = max(len(domain(records, "colour")), 1)
    width = max(22 // count, 8)

    def of(start: str, end: str) -> Json:
        return {"y": {**y, "field": start}, "y2": {"field": end}}

    level: list[Json] = []
    if domain(records, "theory"):  # a line across the panel at the theory's value, which may differ by panel
        mark = {"type": "rule", "strokeDash": [4, 3], "strokeWidth": 1.5, "color": INK}
        level = [{"mark": mark, "encoding": {"y": {**y, "field": "theory", "aggregate": "mean"}}}]
    return [
        *level,
        {"mark": {"type": "rule", "strokeWidth": 1.5}, "encoding": {**shared, **paint, **of("low", "high")}},
        {
            "mark": {"type": "bar", "size": width, "stroke": INK, "strokeWidth": 1},
            "encoding": {**shared, **paint, **of("q1", "q3")},
        },
        {
            "mark": {"type": "tick", "thickness": 2, "size": width, "orient": "horizontal"},
            "encoding": {**shared, "y": y, "color": {"value": "white"}},
        },
    ]


def _heat(records: Sequence[Record], names: Json, log_x: bool) -> list[Json]:
    """Every value a place, its number written in it."""
    at: Json = {}
    for key in ("x", "y"):
        values = domain(records, key)
        at[key] = {"field": key, "type": "ordinal", "sort": values if key == "x" else values[::-1], "title": names[key]}
    at["x"]["axis"] = {"labelAngle": 0}
    shown = [record["colour"] for record in records] or [0.0]
    middle = (min(shown) + max(shown)) / 2
    scale = {"scheme": "viridis", "domain": [min(shown), max(shown)]}
    paint = {"field": "colour", "type": "quantitative", "scale": scale, "legend": {"title": names["colour"]}}
    ink = {"condition": {"test": f"datum.colour > {middle}", "value": "black"}, "value": "white"}
    text = {"field": "colour", "type": "quantitative", "format": ".3~g"}
    return [
        {"mark": {"type": "rect"}, "encoding": {**at, "color": paint, "tooltip": _tooltip(records, names)}},
        {"mark": {"type": "text", "fontSize": 11}, "encoding": {**at, "text": text, "color": ink}},
    ]


def _violin(records: Sequence[Record], names: Json, log_x: bool) -> list[Json]:
    """A shape for each word on the x axis, as wide at each height as there are values; two colours share a shape.

    Words stand at 0, 1, 2 …, so that widths can be drawn to scale: an area from ``left`` to ``right`` over y.
    """
    words, colours = domain(records, "x"), domain(records, "colour")
    for record in records:
        at = words.index(record["x"])
        sides = [side == colours.index(record["colour"]) for side in (0, 1)] if len(colours) == 2 else [True, True]
        for name, wide in (("", VIOLIN * record.pop("share")), ("_middle", MIDDLE)):
            record[f"left{name}"], record[f"right{name}"] = (
                round(at + sign * wide * side, 4) for sign, side in zip((-1, 1), sides, strict=True)
            )
        if record.get("middle") is None:
            del record["left_middle"], record["right_middle"]
    labels = "{" + ", ".join(f"{i}: {json.dumps(str(word))}" for i, word in enumerate(words)) + "}"
    axis = {"values": list(range(len(words))), "labelExpr": f"({labels})[datum.value]", "grid": False}
    scale = {"domain": [-0.6, len(words) - 0.4], "nice": False, "zero": False}
    encoding: Json = {
        "x": {"field": "left", "type": "quantitative", "title": names["x"], "scale": scale, "axis": axis},
        "x2": {"field": "right"},
        "y": along(records, "y", names["y"]),
        "detail": {"field": "x", "type": "nominal"},
        "color": colour(records, names.get("colour")),
    }
    mark = {"type": "area", "orient": "horizontal", "opacity": 0.85}
    middles = [record for record in records if record.get("middle") is not None]
    found: list[Json] = [{"mark": mark, "encoding": encoding}]
    if middles:
        median = {"field": "middle", "title": "median", "type": "quantitative", "format": ".3f"}
        shown: list[Json] = [
            {key: record[key] for key in ("colour", "panel", "x") if key in record} for record in middles
        ]
        tip = [*_tooltip(shown, names), median]
        tick = {"type": "rule", "strokeWidth": 1.5, "color": "white"}
        span = {"x": {**encoding["x"], "field": "left_middle"}, "x2": {"field": "right_middle"}}
        there = {**span, "y": {**encoding["y"], "field": "middle"}, "tooltip": tip}
        found.append(_with("isValid(datum.middle)", tick, there))
    return found


REACH = 1.35  # of a plane's axes: a unit circle, and room for what stands outside


def _plane(records: Sequence[Record], names: Json, log_x: bool) -> list[Json]:
    """Points beside the unit circle, without axes: filled in front, hollow behind; weights end in a diamond.

    A record's ``mark`` says which of the three it is (front, behind, weight); without one all are in front.
    """
    scale = {"domain": [-REACH, REACH], "nice": False}
    at: Json = {
        key: {"field": key, "type": "quantitative", "scale": scale, "axis": None, "title": None} for key in ("x", "y")
    }
    paint = {"color": colour(records, names.get("colour")), "tooltip": _tooltip(records, {**names, "x": "", "y": ""})}
    turn = [{"x": math.cos(a * math.pi / 36), "y": math.sin(a * math.pi / 36), "order": a} for a in range(73)]
    circle = {"type": "line", "strokeWidth": 1, "color": INK, "opacity": 0.6}
    found = [
        {
            "data": {"values": turn},
            "mark": circle,
            "encoding": {**at, "order": {"field": "order", "type": "quantitative"}},
        }
    ]
    hollow = {"type": "point", "filled": False, "size": 18, "strokeWidth": 1.2, "opacity": 0.7}
    found.append(_with("datum.mark === 'behind'", hollow, {**at, **paint}))
    filled = {"type": "point", "filled": True, "size": 28, "opacity": 0.85}
    found.append(_with("datum.mark !== 'behind' && datum.mark !== 'weight'", filled, {**at, **paint}))
    if any(record.get("mark") == "weight" for record in records):
        centre = {"x2": {"datum": 0}, "y2": {"datum": 0}}
        stem = {"type": "rule", "strokeWidth": 2.5}
        tip = {"type": "point", "shape": "diamond", "filled": True, "size": 110, "opacity": 1, "stroke": INK}
        found.append(_with("datum.mark === 'weight'", stem, {**at, **centre, **paint}))
        found.append(_with("datum.mark === 'weight'", tip, {**at, **paint}))
    return found


_KINDS: dict[str, Callable[[Sequence[Record], Json, bool], list[Json]]] = {
    "line": _line,
    "box": _box,
    "heat": _heat,
    "points": _scattered,
    "violin": _violin,
    "curve": _curve,
    "range": _scattered,
    "plane": _plane,
}
