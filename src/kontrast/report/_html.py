"""Parts to HTML; every text is escaped here, and data become JSON that cannot end its block."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import escape
from typing import Any

from kontrast.files import finite
from kontrast.report.figures import described, themed
from kontrast.report.parts import (
    Figure,
    Fold,
    Gallery,
    Mark,
    Number,
    Numbers,
    Part,
    Picture,
    Section,
    Table,
    Text,
    Widget,
)

PANELS = {"facet", "concat", "hconcat", "vconcat", "repeat"}


class Drawing:
    """Parts to HTML, and what the browser must still be told."""

    def __init__(self) -> None:
        self.count, self.drawn, self.scripts = 0, False, list[str]()

    def section(self, name: str, section: Section) -> str:
        inside, title = self.parts(section.parts), f"<h2>{escape(section.title)}</h2>"
        if not section.open:
            return f'<section id="{name}"><details><summary>{title}</summary>{inside}</details></section>\n'
        return f'<section id="{name}">{title}{inside}</section>\n'

    def parts(self, parts: Sequence[Part]) -> str:
        """Neighbouring figures share a grid."""
        made, row = "", list[str]()
        for part in parts:
            if isinstance(part, Figure):
                row.append(self.figure(part))
                continue
            made, row = made + _grid(row) + self.part(part), []
        return made + _grid(row)

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
        self.count, self.drawn = self.count + 1, True
        title = described(figure.spec) or figure.name
        label = escape(". ".join(filter(None, [title.rstrip("."), figure.caption])))
        # Panels have a size of their own: what is too narrow for them is scrolled, by keys too.
        many = not PANELS.isdisjoint(figure.spec)
        kind = "".join([" wide" if figure.wide else "", " panels" if many else ""])
        keys = ' tabindex="0"' if many else ""
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
    """JSON that neither ends a script block nor begins a comment in it."""
    text = json.dumps(finite(data), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text
