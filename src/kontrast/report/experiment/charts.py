"""The experiment's own charts, fitted to the page: as wide as their place, and a single panel without a grid.

Colours and fonts are the page's (`kontrast.report.figures.themed`); data and marks stay as they are.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]

HIGH = 320
PANEL = 380
LETTERS = 44  # of a title's line


def fit_to_page(spec: Mapping[str, Any]) -> Json:
    """The same chart for a page.

    >>> chart = fit_to_page({"width": 420, "height": 260, "layer": [], "data": {"values": []}})
    >>> chart["width"], chart["height"]
    ('container', 320)
    """
    chart: Json = _single_panel(_without_zero(spec))
    if "facet" in chart and chart.get("columns") == 2:
        return _two_panels(chart)
    if "facet" in chart or not isinstance(chart.get("width"), int | float):
        return chart  # panels and heat maps have their own size
    chart |= {"width": "container", "height": HIGH, "autosize": {"type": "fit-x", "contains": "padding"}}
    chart |= {"title": _in_lines(chart["title"])} if "title" in chart else {}
    return chart


def is_wide(spec: Mapping[str, Any]) -> bool:
    """Whether the chart needs its own line."""
    return "facet" in spec


def _single_panel(spec: Json) -> Json:
    """A grid of one panel becomes that panel; its name becomes the subtitle."""
    facet, values = spec.get("facet"), spec.get("data", {}).get("values", [])
    panels = {record.get("panel") for record in values} if isinstance(facet, Mapping) else set()
    if len(panels) != 1 or "spec" not in spec:
        return spec
    chart = {key: value for key, value in spec.items() if key not in ("facet", "columns", "spec", "resolve", "title")}
    title = spec.get("title", "")
    text = title.get("text", "") if isinstance(title, Mapping) else title
    return {**chart, "title": {"text": text, "subtitle": str(panels.pop())}, **spec["spec"]}


def _in_lines(title: Any) -> Any:
    """A title in several lines: one line does not fit a phone."""
    if not isinstance(title, Mapping):
        return _in_lines({"text": title})
    return {**title, "text": textwrap.wrap(str(title.get("text", "")), LETTERS)}


def _two_panels(spec: Json) -> Json:
    """Two panels in a line have more room than three."""
    inner = dict(spec["spec"])
    if isinstance(inner.get("width"), int | float):
        inner |= {"width": PANEL}
    return {**spec, "spec": inner}


def _without_zero(x: Any) -> Any:
    """Logarithmic scales have no zero; Vega-Lite warns about the option."""
    if isinstance(x, Mapping):
        logarithmic = x.get("type") == "log" and "zero" in x
        return {key: _without_zero(value) for key, value in x.items() if not (logarithmic and key == "zero")}
    return [_without_zero(value) for value in x] if isinstance(x, list) else x
