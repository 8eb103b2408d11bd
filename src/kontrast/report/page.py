"""A page as one HTML file.

A `Page` has sections, a `Section` has parts; `render` writes them as a file that needs nothing else: styles, charts'
library and data are inside. Whatever comes from a user (names, recipes, errors) is text here, and is escaped; only a
`Widget` has markup and script, and those are this package's own.

Three locks, one behind the other, keep foreign text from becoming code. Text is escaped. JSON stands in blocks that no
browser executes, without ``<``. And the page forbids itself (Content-Security-Policy) every network address and every
script but those whose hash it names. Vega would compile its expressions with ``eval``; it is told to interpret them
instead (``ast``), which is a little slower and needs no ``unsafe-eval``.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from html import escape
from importlib import resources

import kontrast
from kontrast.report._html import Drawing
from kontrast.report.library import library
from kontrast.report.parts import (
    Figure,
    Fold,
    Gallery,
    Mark,
    Number,
    Numbers,
    Page,
    Part,
    Picture,
    Section,
    Strip,
    Table,
    Text,
    Widget,
    figures,
)

__all__ = [
    "Figure",
    "Fold",
    "Gallery",
    "Mark",
    "Number",
    "Numbers",
    "Page",
    "Part",
    "Picture",
    "Section",
    "Strip",
    "Table",
    "Text",
    "Widget",
    "figures",
    "render",
]


def render(page: Page) -> str:
    """The page as one HTML file.

    >>> html = render(Page("<b>", "a run", [Section("Numbers", [Numbers([Number("kNN", "85.8 %", "k = 20")])])]))
    >>> "<h1>&lt;b&gt;</h1>" in html, "<b>" in html, "85.8 %" in html
    (True, False, True)
    """
    drawing = Drawing()
    names = _names([section.title for section in page.sections])
    body = "".join(drawing.section(name, section) for name, section in zip(names, page.sections, strict=True))
    links = "".join(
        f'<li><a href="#{name}">{escape(section.title)}</a></li>'
        for name, section in zip(names, page.sections, strict=True)
    )
    own = _resource("page.js") + "".join(drawing.scripts)
    scripts = [library(), own] if drawing.drawn else [own]
    allowed = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in scripts)
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
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
<footer>Made by kontrast {kontrast.__version__}. This file is complete: it loads nothing and sends nothing.</footer>
</div>
{"".join(f"<script>{script}</script>" for script in scripts)}
</body>
</html>
"""


def _names(titles: Sequence[str]) -> list[str]:
    """For the links: letters and digits of the titles, each once."""
    found: list[str] = []
    for title in titles:
        name = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "section"
        while name in found or name in ("content", "theme"):
            name += "-2"
        found.append(name)
    return found


def _resource(name: str) -> str:
    return resources.files("kontrast.report").joinpath(name).read_text(encoding="utf-8")
