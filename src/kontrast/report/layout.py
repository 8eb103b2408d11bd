"""The tables of an experiment as plain text, for any format: captions, headings and cells of its summary.

The experiment's axis of rows runs down; the other axes and the measures run across. An axis with one value goes into
the caption. Where there would be more than `WIDEST` columns, each measure gets a table of its own, and then each value
of the first axis that runs across, and so on.

The page of an experiment and the files of `kontrast.experiments.tables` are made from these. Every function takes a
`kontrast.runs.Summary`, or the plain values of result.json.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from kontrast.intervals import Interval
from kontrast.runs.schemas import BaselineRecord, ClaimRecord, Place, PlaceCell, PlaceRun, Summary, SummaryMeasure

WIDEST = 8
ERROR = 60  # letters of an error that a cell shows
SummaryLike: TypeAlias = Summary | Mapping[str, Any]

UNTRAINED = (
    "Without training: raw pixels, and the same encoder before its first step (first seed), top-1 (%) by the protocols "
    "of the runs; ± is the 95 % interval over test rows"
)
INTERVALS = (
    "Each cell: mean ± half-width of the 95 % Student-t interval over n seeds; > marks a lower bound (runs stopped "
    "before the end)."
)


@dataclass(frozen=True)
class Entry:
    """A cell in words.

    Attributes:
        ours: Our number, or why there is none.
        paper_value: The paper's number.
        paper_data: The data of the paper's number, if they are not ours.
        difference: Our number minus the paper's, on the same data.
        good: Whether ``ours`` is a number.
    """

    ours: str
    paper_value: str = ""
    paper_data: str = ""
    difference: str = ""
    good: bool = True

    @property
    def paper(self) -> str:
        """The paper's number in words: ``paper on CIFAR-10 83.3, difference +0.1``."""
        if not self.paper_value:
            return ""
        data = f" on {self.paper_data}" if self.paper_data else ""
        return f"paper{data} {self.paper_value}" + (f", difference {self.difference}" if self.difference else "")


@dataclass(frozen=True)
class Layout:
    """One table. ``entries[row][column]`` is None where the grid has no such place."""

    caption: str
    corner: str
    columns: list[str]
    rows: list[str]
    entries: list[list[Entry | None]]


def layouts(summary: SummaryLike) -> list[Layout]:
    """The tables of a summary, the baselines last.

    >>> cell = {"paper": 83.27, "mean": 83.41, "half": 0.52, "n": 2, "difference": 0.14}
    >>> runs = [{"folder": "a", "status": "done"}, {"folder": "b", "status": "done"}]
    >>> place = {"at": {"loss": "tcl"}, "runs": runs, "cells": {"knn": cell}}
    >>> (table,) = layouts({"experiment": "demo", "axes": {"loss": ["tcl"]}, "rows": "loss", "places": [place],
    ...     "measures": [{"name": "knn", "title": "kNN (%)"}]})
    >>> table.columns, table.rows, table.entries[0][0].ours, table.entries[0][0].paper
    (['kNN (%)'], ['tcl'], '83.4 ± 0.5 (n = 2)', 'paper 83.3, difference +0.1')
    """
    s = Summary.model_validate(summary)
    across = [axis for axis, values in s.axes.items() if axis != s.rows and len(values) > 1]
    return _split(s, s.places, across, s.measures, []) + _baselines(s.baselines)


def _baselines(records: Sequence[BaselineRecord]) -> list[Layout]:
    """What needs no training, as a table of its own: a row for each baseline, a column for each protocol."""
    if not records:
        return []
    titles = {key: title for record in records for key, title in record.titles.items()}
    names = [", ".join([text(record.name), *(f"{k} = {text(v)}" for k, v in record.at.items())]) for record in records]
    columns = titles or {"": "accuracy (%)"}
    entries: list[list[Entry | None]] = [[_baseline(record, key) for key in columns] for record in records]
    return [Layout(UNTRAINED, "baseline", list(columns.values()), names, entries)]


def _baseline(record: BaselineRecord, key: str) -> Entry:
    value, error = record.values.get(key), record.values.get(f"error:{key}")
    if value is None:
        return Entry(_status([record]), good=False)
    return Entry(f"{value:.2f}" + ("" if error is None else f" ± {1.96 * error:.2f}"))


def _split(
    summary: Summary,
    places: Sequence[Place],
    across: list[str],
    measures: Sequence[SummaryMeasure],
    caption: list[str],
) -> list[Layout]:
    columns = list(dict.fromkeys(tuple(place.at.get(axis) for axis in across) for place in places))
    if len(columns) * len(measures) > WIDEST:
        if len(measures) > 1:
            return [table for m in measures for table in _split(summary, places, across, [m], caption)]
        if len(across) > 1:
            first, rest = across[0], across[1:]
            tables = []
            for value in dict.fromkeys(place.at.get(first) for place in places):
                some = [place for place in places if place.at.get(first) == value]
                tables += _split(summary, some, rest, measures, [*caption, f"{first} = {text(value)}"])
            return tables
    return [_lay_out(summary, places, across, measures, caption, columns)]


def _lay_out(
    summary: Summary,
    places: Sequence[Place],
    across: list[str],
    measures: Sequence[SummaryMeasure],
    caption: list[str],
    columns: Sequence[tuple[Any, ...]],
) -> Layout:
    axis = summary.rows or ""
    single = [
        f"{other} = {text(values[0])}" for other, values in summary.axes.items() if other != axis and len(values) == 1
    ]
    titles = [measures[0].title] if len(measures) == 1 else []
    by_place = {(place.at.get(axis), tuple(place.at.get(a) for a in across)): place for place in places}
    values = sorted(dict.fromkeys(place.at.get(axis) for place in places), key=summary.axes[axis].index)
    entries = [
        [
            entry(place, measure) if (place := by_place.get((value, column))) else None
            for column in columns
            for measure in measures
        ]
        for value in values
    ]
    headings = []
    for column in columns:
        where = [f"{a} = {text(v)}" for a, v in zip(across, column, strict=True)]
        headings += [
            ", ".join([*where, *([measure.title] if len(measures) > 1 or not where else [])]) for measure in measures
        ]
    return Layout("; ".join([*titles, *caption, *single]), axis, headings, [text(value) for value in values], entries)


def entry(place: Place, measure: SummaryMeasure) -> Entry:
    """The cell of a measure at a place, in words."""
    cell: PlaceCell = place.cells[measure.name]
    runs, digits = place.runs, measure.digits
    paper = "" if cell.paper is None else f"{cell.paper:.{digits}f}"
    paper += "" if cell.paper_half is None else f" ± {cell.paper_half:.{digits}f}"
    if not cell.n or cell.mean is None:
        return Entry(_status(runs), paper, cell.paper_data, good=False)
    rest = _others(runs, cell.n)
    if cell.censored:
        some = "" if cell.censored == cell.n else f"{cell.censored} censored"
        inside = "; ".join(filter(None, [f"n = {cell.n}", some, rest]))
        return Entry(f"> {cell.mean:.{digits}f} ({inside})", paper, cell.paper_data)
    difference = "" if cell.difference is None else f"{cell.difference:+.{digits}f}"
    ours = format(Interval(cell.mean, cell.half, cell.n), f".{digits}f")
    return Entry(f"{ours[:-1]}; {rest})" if rest else ours, paper, cell.paper_data, difference)


def _status(runs: Sequence[PlaceRun | BaselineRecord]) -> str:
    """Why there is no number: the error of a run that failed, else the status of the runs."""
    if failed := [run for run in runs if run.status == "failed"]:
        why = text(failed[0].error or "no error was written")
        more = f" ({len(failed)} runs)" if len(failed) > 1 else ""
        return f"failed: {why if len(why) <= ERROR else why[: ERROR - 1] + '…'}{more}"
    return ", ".join(dict.fromkeys("no value" if run.status == "done" else str(run.status) for run in runs))


def _others(runs: Sequence[PlaceRun], n: int) -> str:
    """The runs of a cell that have no number, in words."""
    states = [run.status for run in runs if run.status != "done"]
    words = [f"{states.count(state)} {state}" for state in dict.fromkeys(states)]
    empty = len(runs) - len(states) - n
    return ", ".join([*words, *([f"{empty} without a value"] if empty else [])])


def text(value: Any) -> str:
    """A value in one line of printable letters: what a terminal or a file could take for a command is left out.

    >>> text("two\\nlines \\x1b[31m"), text(None), text(0.1), text(True)
    ('two lines [31m', '–', '0.1', 'yes')
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return " ".join("".join(letter if letter.isprintable() else " " for letter in str(value)).split())


def findings(
    claims: Sequence[ClaimRecord | Mapping[str, Any]],
) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """The claims of a summary as (text, statistic, [(verdict, finding in words)])."""
    return [
        (
            text(claim.text),
            text(claim.statistic),
            [(f["verdict"], ": ".join(filter(None, [text(f["where"]), text(f["says"])]))) for f in claim.findings],
        )
        for claim in map(ClaimRecord.model_validate, claims)
    ]


def heading(summary: SummaryLike) -> list[str]:
    """The lines above the tables: source, preset and what it changes, settings, runs, hours."""
    s = Summary.model_validate(summary)
    status = ", ".join(f"{count} {state}" for state, count in s.status.items()) or "none"
    settings = s.settings or []
    if isinstance(settings, Mapping):
        settings = [f"{key}={value}" for key, value in settings.items()]
    elif isinstance(settings, str):
        settings = [settings]
    lines = [
        f"Source: {s.source}",
        f"Preset {s.preset}: {s.about}",
        f"Settings: {' '.join(map(str, settings))}" if settings else "",
        f"Runs: {status}; seeds {', '.join(map(str, s.seeds))}; {(s.seconds or 0.0) / 3600:.2f} hours",
        from_ledger(s.ledger or {}),
        f"Command: {s.made['command']}" if s.made.get("command") else "",
        f"kontrast {s.made['version']}, commit {s.made.get('commit') or 'unknown'}" if s.made.get("version") else "",
        INTERVALS,
    ]
    return [text(line) for line in lines if line]


def from_ledger(counts: Mapping[str, int]) -> str:
    """How many runs of a summary come from a ledger, in words; empty if none do."""
    if not counts.get("cells"):
        return ""
    other = counts.get("other_recipe", 0)
    stale = f"; {other} of them ran with settings that this version's preset no longer has" if other else ""
    return f"From the ledger: {counts['cells']} runs{stale}"


def folders(summary: SummaryLike) -> list[tuple[str, list[str]]]:
    """Each place in words, and its run folders; the status of those that are not done stands in brackets."""
    return [
        (
            ", ".join(f"{axis} = {text(value)}" for axis, value in place.at.items()),
            [text(run.folder) + ("" if run.status == "done" else f" ({text(run.status)})") for run in place.runs],
        )
        for place in Summary.model_validate(summary).places
    ]
