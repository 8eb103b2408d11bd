"""The terminal's tables, by rich; every word is text to it, never markup."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kontrast.experiments.tables._layout import Entry, Layout, findings, folders, heading, layouts, text
from kontrast.experiments.tables._summary import Summary

COLOURS = {"holds": "green", "does not hold": "red"}


def terminal(summary: Summary, *, show_folders: bool = False) -> RenderableType:
    """Heading, tables, claims with their verdicts, and how many runs there are (or all their folders)."""
    parts: list[RenderableType] = [Text(text(summary["title"]), "bold")]
    parts += [Text(line, "dim") for line in heading(summary)]
    parts += [Padding(_table(layout), (1, 0, 0, 0)) for layout in layouts(summary)]
    parts.append(claims(summary))
    every = folders(summary)
    if show_folders:
        parts.append(Text())
        parts += [Text(f"{place}: {', '.join(names)}", "dim") for place, names in every]
    else:
        parts.append(Padding(Text(f"{sum(len(names) for _, names in every)} runs", "dim"), (1, 0, 0, 0)))
    return Group(*parts)


def claims(summary: Summary, *, nothing: str = "nothing was found") -> RenderableType:
    """Each claim, its statistic, its verdicts; ``nothing`` is said of one without a finding."""
    parts: list[RenderableType] = []
    for claim, statistic, found in findings(summary):
        parts.append(Padding(Text(claim, "bold"), (1, 0, 0, 0)))
        parts.append(Padding(Text(statistic, "dim"), (0, 0, 0, 2)))
        for verdict, says in found:
            line = Text.assemble((verdict, f"bold {COLOURS.get(verdict, 'yellow')}"), f"  {says}")
            parts.append(Padding(line, (0, 0, 0, 2)))
        if not found:
            parts.append(Padding(Text(nothing, "yellow"), (0, 0, 0, 2)))
    return Group(*parts)


def _table(layout: Layout) -> Table:
    table = Table(title=Text(layout.caption) if layout.caption else None, title_justify="left")
    table.add_column(Text(layout.corner), no_wrap=True)
    for name in layout.columns:
        table.add_column(Text(name), justify="right")
    for name, entries in zip(layout.rows, layout.entries, strict=True):
        table.add_row(Text(name), *map(_cell, entries))
    return table


def _cell(entry: Entry | None) -> Text:
    if entry is None:
        return Text()
    ours = Text(entry.ours, "" if entry.good else "red" if entry.ours.startswith("failed") else "yellow")
    return Text.assemble(ours, "\n", (entry.paper, "dim")) if entry.paper else ours
