"""The paper's table with ours: mean ± half-width of the 95 % interval, the paper's value beside it, the difference.

The layout is that of table.md (`kontrast.report.layout`), with separate columns for the paper's value and the
difference, and the number of seeds in the caption if all cells have the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kontrast.report.layout import Entry, Layout, SummaryLike, layouts
from kontrast.report.page import Cell, Mark, Table

SEEDS = re.compile(r" \(n = (\d+)\)$")
EMPTY = "–"


def tables(summary: SummaryLike) -> list[Table]:
    """The tables of a summary.

    >>> cell = {"paper": 83.27, "paper_half": None, "paper_data": "", "mean": 83.41, "half": 0.52, "n": 2}
    >>> place = {"at": {"loss": "tcl"}, "runs": [{"folder": "a", "status": "done"}] * 2,
    ...     "cells": {"knn": {**cell, "difference": 0.14, "censored": 0}}}
    >>> (table,) = tables({"experiment": "demo", "axes": {"loss": ["tcl"]}, "rows": "loss", "places": [place],
    ...     "measures": [{"name": "knn", "title": "kNN (%)", "digits": 1}]})
    >>> table.columns, table.rows, table.caption
    (['loss', 'kNN (%)', 'paper', 'difference'], [['tcl', '83.4 ± 0.5', '83.3', '+0.1']], 'kNN (%); n = 2 seeds a cell')
    """
    return [_table(layout) for layout in layouts(summary)]


def _table(layout: Layout) -> Table:
    shared = {match.group(1) if (match := SEEDS.search(entry.ours)) else None for entry in _good(layout)}
    n = shared.pop() if len(shared) == 1 else None
    columns, rows = [layout.corner], [list[Cell]([name]) for name in layout.rows]
    for i, heading in enumerate(layout.columns):
        down = [line[i] for line in layout.entries]
        for title, cells in _columns(heading, down, brief=n is not None):
            columns.append(title)
            for row, cell in zip(rows, cells, strict=True):
                row.append(cell)
    seeds = "" if n is None else f"n = {n} seed{'' if n == '1' else 's'} a cell"
    return Table(columns, rows, "; ".join(filter(None, [layout.caption, seeds])))


def _good(layout: Layout) -> Iterator[Entry]:
    return (entry for line in layout.entries for entry in line if entry is not None and entry.good)


def _columns(heading: str, down: Sequence[Entry | None], *, brief: bool) -> list[tuple[str, list[Cell]]]:
    """Ours, and if the paper has a value, the value and the difference."""
    columns = [(heading, [_ours(entry, brief) for entry in down])]
    papers = [entry if entry is not None and entry.paper_value else None for entry in down]
    sets = {entry.paper_data for entry in papers if entry is not None}
    if not sets:
        return columns
    (only,) = sets if len(sets) == 1 else ("",)
    values: list[Cell] = [EMPTY if entry is None else _value(entry, with_data=len(sets) > 1) for entry in papers]
    columns.append((f"paper, on {only}" if only else "paper", values))
    if any(entry is not None and entry.difference for entry in papers):
        columns.append(("difference", [EMPTY if entry is None else entry.difference or EMPTY for entry in papers]))
    return columns


def _ours(entry: Entry | None, brief: bool) -> Cell:
    if entry is None:
        return EMPTY
    if not entry.good:
        return Mark(entry.ours, "bad") if entry.ours.startswith("failed") else entry.ours
    return SEEDS.sub("", entry.ours) if brief else entry.ours


def _value(entry: Entry, *, with_data: bool) -> str:
    return f"{entry.paper_value} ({entry.paper_data})" if with_data and entry.paper_data else entry.paper_value
