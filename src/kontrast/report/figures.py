"""Charts: their look on a page, their files, and the JavaScript library that draws them.

On a page, ink is ``currentColor`` and paper ``var(--paper)``: a chart takes the colours of the text around it, in light
and dark mode and in print, and is not drawn again when they change. In a file those are dark grey and white. Data have
the colours of Okabe and Ito, which the colour-blind can tell apart, without the two that vanish on white or black.

A chart has its data inside. Specifications may come from somebody else's folder, and Vega-Lite could name addresses
from which data and pictures are loaded, links that open, and settings for the page around it. The first two are
refused, the last are dropped: drawing a chart needs neither the network nor the disk.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kontrast.files import read_regular, write_atomically

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
    """The same chart in the page's colours, without the address of its schema and its settings for the page around it.

    Raises:
        ValueError: The chart would load or open something.

    >>> chart = themed({"$schema": "https://…", "mark": "bar", "config": {"axis": {"labelColor": "red", "offset": 2}}})
    >>> chart["config"]["axis"]["labelColor"], chart["config"]["axis"]["offset"], "$schema" in chart
    ('currentColor', 2, False)
    """
    if key := outside_key(spec):
        raise ValueError(f"a chart has the key {key!r}, which loads or opens something; its data must be inside it")
    plain = {key: value for key, value in spec.items() if key not in ("$schema", "config", "usermeta")}
    return {**plain, "config": _merge(spec.get("config", {}), THEME)}


def outside_key(spec: Any) -> str | None:
    """The key with which a chart would load data or pictures, or link to somewhere; None if only data have such keys.

    >>> outside_key({"data": {"url": "https://…"}}), outside_key({"data": {"values": [{"url": "https://…"}]}})
    ('url', None)
    """
    if isinstance(spec, Mapping):
        inside = (outside_key(value) for key, value in spec.items() if key not in ("values", "datasets"))
        return next((key for key in ("url", "href") if key in spec), None) or next(filter(None, inside), None)
    return next(filter(None, map(outside_key, spec)), None) if isinstance(spec, list | tuple) else None


def describe(spec: Mapping[str, Any]) -> str:
    """A chart's description, or its title."""
    title = spec.get("title", "")
    text = spec.get("description") or (title.get("text", "") if isinstance(title, Mapping) else title)
    return " ".join(map(str, text)) if isinstance(text, list) else str(text)


def alone(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A chart that stands alone, in a file or a notebook: in light colours, and `WIDE` if it fills its place.

    Raises:
        ValueError: The chart would load or open something.

    >>> alone({"mark": {"type": "bar", "color": "currentColor"}, "width": "container"})["mark"]["color"]
    '#333333'
    """
    light: dict[str, Any] = _light(themed(spec))
    if light.get("width") == "container":
        light |= {"width": WIDE, "autosize": {"type": "fit-x", "contains": "padding"}}
    return light


def draw(spec: Mapping[str, Any], kind: str) -> bytes:
    """Draw a chart as a file, in light colours without a background (PNG: white).

    Args:
        spec: The Vega-Lite specification.
        kind: svg, pdf or png.

    Raises:
        ValueError: Another kind, or a chart that would load or open something.

    >>> draw({"data": {"values": [{"x": 1}]}, "mark": "point", "encoding": {"x": {"field": "x"}}}, "svg")[:4]
    b'<svg'
    """
    if kind not in KINDS:
        raise ValueError(f"figures={kind!r}: must be one of {', '.join(KINDS)}")
    light = alone(spec)
    converter, settings = vl_convert(), {"vl_version": version(), "allowed_base_urls": []}
    if kind == "svg":
        return str(converter.vegalite_to_svg(light, **settings)).encode()
    if kind == "pdf":
        return bytes(converter.vegalite_to_pdf(light, **settings))
    light["config"]["background"] = LIGHT[PAPER]
    return bytes(converter.vegalite_to_png(light, scale=2.0, **settings))


@functools.cache
def library() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, from vl-convert; it sets ``vegaEmbed``, ``vega`` and ``vegaLite``.

    Bundling takes seconds, so the script is kept in the user's cache folder (XDG_CACHE_HOME, or ~/.cache).
    """
    converter = vl_convert()
    root = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(root) if root else Path.home() / ".cache") / "kontrast"
    cached = folder / f"vega-{converter.get_vega_version()}-{version()}-{converter.__version__}.js"
    try:
        return read_regular(cached).decode()
    except (OSError, ValueError):
        script = str(converter.javascript_bundle(vl_version=version()))
    if "</script" in script.lower():
        raise ValueError("the chart library cannot stand inside a page: it contains </script")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(cached, script.encode())
    except OSError:
        pass  # without a cache every page takes some seconds more
    return script


def version() -> str:
    """The newest version of Vega-Lite that vl-convert has."""
    return str(vl_convert().get_vegalite_versions()[-1])


def vl_convert() -> Any:
    """The package that draws charts as files."""
    try:
        import vl_convert as package
    except ImportError as error:
        raise ImportError("a report needs a package: pip install vl-convert-python") from error
    return package


def _merge(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    both = {**under, **over}
    for key, value in over.items():
        if isinstance(value, Mapping) and isinstance(under.get(key), Mapping):
            both[key] = _merge(under[key], value)
    return both


def _light(x: Any) -> Any:
    if isinstance(x, Mapping):
        return {key: _light(value) for key, value in x.items()}
    if isinstance(x, list | tuple):
        return [_light(value) for value in x]
    return LIGHT.get(x, x) if isinstance(x, str) else x
