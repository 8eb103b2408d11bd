"""What a page is made of: sections of text, numbers, tables, figures, galleries and widgets.

All text is as a user or a file has it; `kontrast.report.page.render` escapes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Text:
    """A paragraph. Kinds: plain, note (small), code (as it stands); good, bad, watch (with a coloured edge).

    Of several lines of the last three, the first is a heading.
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
    """A table cell that is highlighted. Tones: good, bad, watch, same, differs."""

    text: str
    tone: str


@dataclass(frozen=True)
class Table:
    """Columns of numbers are set to the right."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str | Mark]]
    caption: str = ""


@dataclass(frozen=True)
class Figure:
    """A Vega-Lite specification (Altair's ``to_dict()``); ``name`` is the file's name in ``--figures``.

    Figures that follow each other share a line where there is room; a ``wide`` one has it alone.
    """

    name: str
    spec: Mapping[str, Any]
    caption: str = ""
    wide: bool = False


@dataclass(frozen=True)
class Widget:
    """Markup and script of this package's own. Never put a user's words into them: those belong into ``data``.

    ``script`` is the body of a function of ``root`` (the element that holds ``html``) and ``data`` (parsed JSON),
    called once when the page stands. It needs no handlers inside the markup: the page forbids them.
    """

    name: str
    html: str
    script: str
    data: Any
    caption: str = ""


@dataclass(frozen=True)
class Picture:
    """A small image, as a data URL, with the words below it; the tones good and bad give it a sign and a colour.

    ``about`` is shown on hover; the label, if it is empty.
    """

    source: str
    label: str
    tone: str = ""
    about: str = ""


@dataclass(frozen=True)
class Strip:
    """A picture, and those that belong to it."""

    first: Picture
    others: Sequence[Picture]
    tone: str = ""


@dataclass(frozen=True)
class Gallery:
    """Strips side by side. With ``only``, a box that leaves the strips of the tone bad: its words."""

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
    """A heading and what stands below it; closed, if it is not ``open``."""

    title: str
    parts: Sequence[Part]
    open: bool = True


@dataclass(frozen=True)
class Page:
    """Everything."""

    title: str
    subtitle: str
    sections: Sequence[Section]


def figures(page: Page) -> list[Figure]:
    """Every figure of a page, folded ones too."""

    def inside(parts: Sequence[Part]) -> list[Figure]:
        found: list[Figure] = []
        for part in parts:
            found += [part] if isinstance(part, Figure) else inside(part.parts) if isinstance(part, Fold) else []
        return found

    return [figure for section in page.sections for figure in inside(section.parts)]
