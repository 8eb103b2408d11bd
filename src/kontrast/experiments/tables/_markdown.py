"""Markdown, as GitHub has it: the tables, the claims, and the run folders of each place."""

from __future__ import annotations

import re

from kontrast.experiments.tables._layout import Entry, Layout, findings, folders, heading, layouts, text
from kontrast.experiments.tables._summary import Summary

MARKUP = re.compile(r"([\\`*_\[\]|~$#])")


def markdown(summary: Summary) -> str:
    """A page."""
    parts = [f"# {escaped(summary['title'])}", *map(escaped, heading(summary))]
    parts += [_table(layout) for layout in layouts(summary)]
    if summary["claims"]:
        parts.append("## Claims")
    for claim, statistic, found in findings(summary):
        lines = [f"- {escaped(says)}: **{escaped(verdict)}**" for verdict, says in found]
        parts.append("\n".join([f"**{escaped(claim)}** Statistic: {escaped(statistic)}.", "", *lines]))
    parts.append("## Runs")
    parts.append(
        "\n".join(f"- {escaped(place)}: {', '.join(map(escaped, names))}" for place, names in folders(summary))
        or "There are none."
    )
    return "\n\n".join(parts) + "\n"


def escaped(value: object) -> str:
    r"""One line without markup.

    >>> print(escaped("a|b <script> *c* x_1"))
    a\|b &lt;script&gt; \*c\* x\_1
    """
    plain = text(value).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return MARKUP.sub(r"\\\1", plain)


def _table(layout: Layout) -> str:
    lines = [f"**{escaped(layout.caption)}**", ""] if layout.caption else []
    lines.append(_line([layout.corner, *layout.columns]))
    lines.append("|---" * (1 + len(layout.columns)) + "|")
    for name, entries in zip(layout.rows, layout.entries, strict=True):
        lines.append("| " + " | ".join([escaped(name), *map(_cell, entries)]) + " |")
    return "\n".join(lines)


def _line(names: list[str]) -> str:
    return "| " + " | ".join(map(escaped, names)) + " |"


def _cell(entry: Entry | None) -> str:
    if entry is None:
        return ""
    ours = escaped(entry.ours) if entry.good else f"*{escaped(entry.ours)}*"
    return f"{ours}<br>{escaped(entry.paper)}" if entry.paper else ours
