"""Specifications of charts: their look on a page, and their files.

On a page, ink is ``currentColor`` and paper ``var(--paper)``: a chart has the colours of the text around it, in light,
dark and on paper, and nothing is drawn again when they change. In a file those are dark grey and white. Data have Okabe
and Ito's colours, which the colour-blind tell apart, without the two that vanish on white or black.

A chart has its data inside. Specifications may come from somebody else's folder, and Vega-Lite could name addresses to
load data and pictures from (to draw a file is to fetch them), links to open, and settings for what embeds it. The first
two are refused, the last are dropped: to draw a chart asks nothing of the network or the disk.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kontrast.report.library import version, vl_convert

KINDS = ("svg", "pdf", "png")
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
INK, PAPER = "currentColor", "var(--paper)"
LIGHT = {INK: "#333333", PAPER: "#ffffff"}
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
WIDE = 640  # of a chart that fills the page's width, in a file

THEME: dict[str, Any] = {
    "background": None,
    "font": FONT,
    "padding": 4,
    "axis": {
        "labelColor": INK,
        "labelOpacity": 0.8,
        "titleColor": INK,
        "titleOpacity": 0.8,
        "titleFontWeight": "normal",
        "domainColor": INK,
        "domainOpacity": 0.35,
        "tickColor": INK,
        "tickOpacity": 0.35,
        "gridColor": INK,
        "gridOpacity": 0.1,
        "labelFontSize": 11,
        "titleFontSize": 12,
        "titlePadding": 8,
    },
    "header": {"labelColor": INK, "titleColor": INK, "labelFontSize": 12, "labelFontWeight": "normal"},
    "legend": {
        "labelColor": INK,
        "titleColor": INK,
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "labelLimit": 220,
    },
    "title": {
        "color": INK,
        "subtitleColor": INK,
        "fontSize": 14,
        "fontWeight": 600,
        "anchor": "start",
        "offset": 12,
        "subtitlePadding": 4,
    },
    "text": {"color": INK},
    "view": {"stroke": None},
}


def themed(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The same chart in the page's colours, without the address of its schema and what it would tell the embedder.

    >>> made = themed({"$schema": "https://…", "mark": "bar", "config": {"axis": {"labelColor": "red", "offset": 2}}})
    >>> made["config"]["axis"]["labelColor"], made["config"]["axis"]["offset"], "$schema" in made
    ('currentColor', 2, False)
    """
    if key := leading_out(spec):
        raise ValueError(
            f"a chart has the key {key!r}, by which it would load or open something; expected data inside it"
        )
    made = {key: value for key, value in spec.items() if key not in ("$schema", "config", "usermeta")}
    return {**made, "config": _merged(spec.get("config", {}), THEME)}


def leading_out(spec: Any) -> str | None:
    """The key by which a chart would load data or pictures, or link to somewhere; None if only data have such keys.

    >>> leading_out({"data": {"url": "https://…"}}), leading_out({"data": {"values": [{"url": "https://…"}]}})
    ('url', None)
    """
    if isinstance(spec, Mapping):
        inside = (leading_out(value) for key, value in spec.items() if key not in ("values", "datasets"))
        return next((key for key in ("url", "href") if key in spec), None) or next(filter(None, inside), None)
    return next(filter(None, map(leading_out, spec)), None) if isinstance(spec, list | tuple) else None


def described(spec: Mapping[str, Any]) -> str:
    """What a chart shows, in words: its description, or its title."""
    title = spec.get("title", "")
    said = spec.get("description") or (title.get("text", "") if isinstance(title, Mapping) else title)
    return " ".join(map(str, said)) if isinstance(said, list) else str(said)


def drawn(spec: Mapping[str, Any], kind: str) -> bytes:
    """The chart as a file of a kind, in light colours on nothing.

    >>> drawn({"data": {"values": [{"x": 1}]}, "mark": "point", "encoding": {"x": {"field": "x"}}}, "svg")[:4]
    b'<svg'
    """
    if kind not in KINDS:
        raise ValueError(f"figures can be {', '.join(KINDS)}; got {kind!r}")
    made = _light(themed(spec))
    if made.get("width") == "container":
        made |= {"width": WIDE, "autosize": {"type": "fit-x", "contains": "padding"}}
    converter, settings = vl_convert(), {"vl_version": version(), "allowed_base_urls": []}
    if kind == "svg":
        return str(converter.vegalite_to_svg(made, **settings)).encode()
    if kind == "pdf":
        return bytes(converter.vegalite_to_pdf(made, **settings))
    made["config"]["background"] = LIGHT[PAPER]
    return bytes(converter.vegalite_to_png(made, scale=2.0, **settings))


def _merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    both = {**under, **over}
    for key, value in over.items():
        if isinstance(value, Mapping) and isinstance(under.get(key), Mapping):
            both[key] = _merged(under[key], value)
    return both


def _light(x: Any) -> Any:
    if isinstance(x, Mapping):
        return {key: _light(value) for key, value in x.items()}
    if isinstance(x, list | tuple):
        return [_light(value) for value in x]
    return LIGHT.get(x, x) if isinstance(x, str) else x
