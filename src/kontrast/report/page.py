"""What a page is made of, and how it becomes one HTML file.

A `Page` has sections, a `Section` has parts; `render` writes them as a file that needs nothing else: styles, the chart
library and the data are inside. Text that comes from a user (names, recipes, errors) stays text: `render` escapes it.
Only a `Widget` has markup and script, and those are this package's own.

Three defences keep foreign text from becoming code. Text is escaped. JSON stands in blocks that no browser executes,
without ``<``. And the page forbids itself (Content-Security-Policy) every network address, and every script except
those whose hash it names. Vega would compile its expressions with ``eval``; it interprets them instead (``ast``), which
is a little slower and needs no ``unsafe-eval``.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

import kontrast
from kontrast.files import finite
from kontrast.report.figures import describe, library, themed
from kontrast.runs import Displayed

PANELS = {"facet", "concat", "hconcat", "vconcat", "repeat"}


# -------------------------------------------------------------------------------------------------------------- parts


@dataclass(frozen=True)
class Text:
    """A paragraph. Kinds: plain, note (small), code (as it stands); good, bad, watch (with a coloured edge).

    In the last three the first of several lines is a heading.
    """

    text: str
    kind: str = "plain"


@dataclass(frozen=True)
class Number:
    """A headline number with its protocol. Tones: good, bad, watch or none."""

    label: str
    value: str
    about: str = ""
    tone: str = ""


@dataclass(frozen=True)
class Numbers:
    """A row of cards."""

    items: Sequence[Number]


@dataclass(frozen=True)
class Mark:
    """A highlighted table cell. Tones: good, bad, watch, same, differs."""

    text: str
    tone: str


Cell = str | Mark


@dataclass(frozen=True)
class Table(Displayed):
    """Columns of numbers are aligned to the right."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""


@dataclass(frozen=True)
class Figure:
    """A Vega-Lite specification (Altair's ``to_dict()``); ``name`` is the file's name in ``--figures``.

    Figures that follow each other share a line where there is room; a ``wide`` one has its own.
    """

    name: str
    spec: Mapping[str, Any]
    caption: str = ""
    wide: bool = False


@dataclass(frozen=True)
class Widget:
    """Markup and script of this package's own. Never put a user's words into them: those belong into ``data``.

    ``script`` is the body of a function of ``root`` (the element that holds ``html``) and ``data`` (parsed JSON),
    called once when the page is loaded. The markup has no event handlers: the page forbids them.
    """

    name: str
    html: str
    script: str
    data: Any
    caption: str = ""


@dataclass(frozen=True)
class Picture:
    """A small image, as a data URL, with a label below it; the tones good and bad give it a sign and a colour.

    ``about`` is shown on hover; the label, if it is empty.
    """

    source: str
    label: str
    tone: str = ""
    about: str = ""


@dataclass(frozen=True)
class Strip:
    """A picture, and the pictures that belong to it."""

    first: Picture
    others: Sequence[Picture]
    tone: str = ""


@dataclass(frozen=True)
class Gallery:
    """Strips side by side. ``only`` is the label of a box that hides all strips but those with the tone bad."""

    strips: Sequence[Strip]
    caption: str = ""
    only: str = ""


@dataclass(frozen=True)
class Fold:
    """Parts behind a line that opens them."""

    title: str
    parts: Sequence[Part]


Part = Text | Numbers | Table | Figure | Widget | Gallery | Fold


@dataclass(frozen=True)
class Section:
    """A heading and what stands below it; closed unless ``open``."""

    title: str
    parts: Sequence[Part]
    open: bool = True


@dataclass(frozen=True)
class Page:
    """A whole page.

    ``beside`` is the name of the folder with its pictures, if they do not stand inside the file.
    """

    title: str
    subtitle: str
    sections: Sequence[Section]
    beside: str = ""


def figures(page: Page) -> list[Figure]:
    """Every figure of a page, folded ones too."""

    def inside(parts: Sequence[Part]) -> list[Figure]:
        result: list[Figure] = []
        for part in parts:
            result += [part] if isinstance(part, Figure) else inside(part.parts) if isinstance(part, Fold) else []
        return result

    return [figure for section in page.sections for figure in inside(section.parts)]


def data_url(pixels: NDArray[np.uint8]) -> str:
    """A picture uint8 ``[C, H, W]`` as a data URL (one channel: grey; otherwise the first three).

    WebP if Pillow has it: a picture of 32 pixels takes half a kilobyte, PNG takes three.

    Raises:
        ValueError: The array is not uint8 ``[C, H, W]``.

    >>> data_url(np.zeros((1, 8, 8), dtype=np.uint8)).partition(",")[0]
    'data:image/webp;base64'
    """
    from PIL import Image, features

    if pixels.ndim != 3 or pixels.dtype != np.uint8:
        raise ValueError(f"pixels: {pixels.dtype} {list(pixels.shape)} must be uint8 [C, H, W]")
    image = pixels[0] if pixels.shape[0] < 3 else np.moveaxis(pixels[:3], 0, -1)
    kind = "webp" if features.check("webp") else "png"
    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(image)).save(file, kind, quality=82)
    return f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode()}"


# --------------------------------------------------------------------------------------------------------------- HTML


def render(page: Page) -> str:
    """Write a page as one HTML file.

    Args:
        page: The page; all its text is escaped.

    Returns:
        The file's text.

    Raises:
        ValueError: A chart would load or open something, or a widget's script would end its block.

    >>> html = render(Page("<b>", "a run", [Section("Numbers", [Numbers([Number("kNN", "85.8 %", "k = 20")])])]))
    >>> "<h1>&lt;b&gt;</h1>" in html, "<b>" in html, "85.8 %" in html
    (True, False, True)
    """
    writer = _Writer()
    names = _anchors([section.title for section in page.sections])
    body = "".join(writer.section(name, section) for name, section in zip(names, page.sections, strict=True))
    links = "".join(
        f'<li><a href="#{name}">{escape(section.title)}</a></li>'
        for name, section in zip(names, page.sections, strict=True)
    )
    script = _resource("page.js") + "".join(writer.scripts)
    scripts = [library(), script] if writer.has_charts else [script]
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in scripts)
    # Pictures beside the page: 'self' where a server shows it, file: where it is opened from the disk.
    sources = "data: 'self' file:" if page.beside else "data:"
    complete = (
        f"It loads its pictures from the folder {escape(page.beside)} beside it, and sends nothing."
        if page.beside
        else "This file is complete: it loads nothing and sends nothing."
    )
    policy = (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src {sources}; "
        "base-uri 'none'; form-action 'none'"
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="kontrast {kontrast.__version__}">
<title>{escape(page.title)}</title>
<style>{_resource("style.css")}</style>
</head>
<body>
<a class="skip" href="#content">Skip to content</a>
<nav aria-label="Contents"><ul>{links}</ul></nav>
<div class="page">
<header><h1>{escape(page.title)}</h1><p>{escape(page.subtitle)}</p>
<button type="button" id="theme" aria-label="Light or dark" hidden></button></header>
<main id="content">
{body}</main>
<footer>Made by kontrast {kontrast.__version__}. {complete}</footer>
</div>
{"".join(f"<script>{script}</script>" for script in scripts)}
</body>
</html>
"""


def fragment(parts: Sequence[Part]) -> str:
    """Parts as HTML for the page of somebody else, such as a notebook: without charts and widgets, which need scripts.

    Args:
        parts: Texts, numbers, tables, galleries and folds of them; all text is escaped.

    Returns:
        One element, with its styles inside.

    Raises:
        ValueError: There is a chart or a widget among the parts.

    >>> "a &lt;b&gt;</p>" in fragment([Text("a <b>", "note")])
    True
    """
    writer = _Writer()
    inside = writer.parts(parts)
    if writer.count:
        raise ValueError("a fragment has a chart or a widget: must have neither. Use render")
    return f'<div class="kontrast"><style>{_resource("fragment.css")}</style>{inside}</div>'


def _anchors(titles: Sequence[str]) -> list[str]:
    """Names for the links: letters and digits of the titles, each name once."""
    names: list[str] = []
    for title in titles:
        name = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "section"
        while name in names or name in ("content", "theme"):
            name += "-2"
        names.append(name)
    return names


def _resource(name: str) -> str:
    return resources.files("kontrast.report").joinpath(name).read_text(encoding="utf-8")


class _Writer:
    """Parts to HTML. Counts the charts and collects the widgets' scripts."""

    def __init__(self) -> None:
        self.count, self.has_charts, self.scripts = 0, False, list[str]()

    def section(self, name: str, section: Section) -> str:
        inside, title = self.parts(section.parts), f"<h2>{escape(section.title)}</h2>"
        if not section.open:
            return f'<section id="{name}"><details><summary>{title}</summary>{inside}</details></section>\n'
        return f'<section id="{name}">{title}{inside}</section>\n'

    def parts(self, parts: Sequence[Part]) -> str:
        """Neighbouring figures share a grid."""
        html, row = "", list[str]()
        for part in parts:
            if isinstance(part, Figure):
                row.append(self.figure(part))
                continue
            html, row = html + _grid(row) + self.part(part), []
        return html + _grid(row)

    def part(self, part: Part) -> str:
        match part:
            case Text(text, "code"):
                return f"<pre><code>{escape(text)}</code></pre>"
            case Text(text, kind):
                first, more, rest = text.partition("\n") if kind in ("good", "bad", "watch") else ("", "", text)
                strong = f"<strong>{escape(first)}</strong>\n" if more else escape(first)
                return f'<p class="{escape(kind)}">{strong}{escape(rest)}</p>'
            case Numbers(items):
                return f'<div class="numbers">{"".join(map(_number, items))}</div>'
            case Table():
                return _table(part)
            case Gallery():
                return _gallery(part)
            case Fold(title, parts):
                return f"<details><summary>{escape(title)}</summary>{self.parts(parts)}</details>"
            case Widget():
                return self.widget(part)
            case Figure():
                return self.figure(part)

    def figure(self, figure: Figure) -> str:
        self.count, self.has_charts = self.count + 1, True
        title = describe(figure.spec) or figure.name
        label = escape(". ".join(filter(None, [title.rstrip("."), figure.caption])))
        # Panels have their own size: where they do not fit, the figure scrolls, by keys too.
        has_panels = not PANELS.isdisjoint(figure.spec)
        kind = "".join([" wide" if figure.wide else "", " panels" if has_panels else ""])
        keys = ' tabindex="0"' if has_panels else ""
        return (
            f'<figure class="chart{kind}" data-name="{escape(figure.name)}">'
            f'<div class="vega" role="img"{keys} aria-label="{label}">'
            f"<noscript>{escape(title)} (drawn by JavaScript)</noscript></div>"
            f'<script type="application/json">{_json(themed(figure.spec))}</script>{_caption(figure.caption)}</figure>'
        )

    def widget(self, widget: Widget) -> str:
        if "</script" in widget.script.lower():
            raise ValueError(f"the script of the widget {widget.name!r} must not contain </script: it would end there")
        self.count += 1
        self.scripts.append(
            f'\nkontrast.widget("widget-{self.count}", function (root, data) {{\n{widget.script}\n}});\n'
        )
        return (
            f'<figure class="widget" id="widget-{self.count}" data-name="{escape(widget.name)}">'
            f'<div class="root">{widget.html}</div>'
            f'<script type="application/json">{_json(widget.data)}</script>{_caption(widget.caption)}</figure>'
        )


def _grid(figures: Sequence[str]) -> str:
    return f'<div class="figures">{"".join(figures)}</div>' if figures else ""


def _caption(text: str) -> str:
    return f"<figcaption>{escape(text)}</figcaption>" if text else ""


def _number(number: Number) -> str:
    about = f"<small>{escape(number.about)}</small>" if number.about else ""
    return (
        f'<div class="number {escape(number.tone)}"><span>{escape(number.label)}</span>'
        f"<strong>{escape(number.value)}</strong>{about}</div>"
    )


_NUMERIC = re.compile(r"[−+\-~≈<>≥≤\d][\d.,  eE+\-−±/%×]*( ?(s|ms|min|h|MB|KB))?|–|")


def _table(table: Table) -> str:
    texts = [[cell.text if isinstance(cell, Mark) else cell for cell in row] for row in table.rows]
    right = [
        bool(texts) and all(_NUMERIC.fullmatch(row[i]) for row in texts if i < len(row))
        for i in range(len(table.columns))
    ]

    def of(i: int, tone: str = "") -> str:
        classes = " ".join(c for c in (tone, "right" if i < len(right) and right[i] else "") if c)
        return f' class="{escape(classes)}"' if classes else ""

    head = "".join(f'<th scope="col"{of(i)}>{escape(column)}</th>' for i, column in enumerate(table.columns))
    head = f"<thead><tr>{head}</tr></thead>" if any(table.columns) else ""
    body = ""
    for row in table.rows:
        cells = (
            f"<td{of(i, cell.tone)}>{escape(cell.text)}</td>"
            if isinstance(cell, Mark)
            else f"<td{of(i)}>{escape(cell)}</td>"
            for i, cell in enumerate(row)
        )
        body += f"<tr>{''.join(cells)}</tr>"
    caption = f"<caption>{escape(table.caption)}</caption>" if table.caption else ""
    return f'<div class="table" tabindex="0"><table>{caption}{head}<tbody>{body}</tbody></table></div>'


def _gallery(gallery: Gallery) -> str:
    strips = "".join(
        f'<li class="{escape(strip.tone)}">{_picture(strip.first)}'
        f"<div>{''.join(map(_picture, strip.others))}</div></li>"
        for strip in gallery.strips
    )
    only = f'<label><input type="checkbox"> {escape(gallery.only)}</label>' if gallery.only else ""
    few = " few" if max((len(strip.others) for strip in gallery.strips), default=0) <= 3 else ""
    return f'<figure class="gallery{few}">{only}<ul>{strips}</ul>{_caption(gallery.caption)}</figure>'


def _picture(picture: Picture) -> str:
    sign = {"good": "✓ ", "bad": "✗ "}.get(picture.tone, "")
    label, about = escape(picture.label), escape(picture.about or picture.label)
    return (
        f'<span class="picture {escape(picture.tone)}">'
        f'<img src="{escape(picture.source)}" alt="{label}" title="{about}">'
        f"<small>{sign}{label}</small></span>"
    )


def _json(data: Any) -> str:
    """JSON that cannot end a script block or start a comment in it."""
    text = json.dumps(finite(data), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text
