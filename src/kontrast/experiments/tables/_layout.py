"""How a summary is laid out: one or more tables, their captions, headings and cells, as plain text for any format.

The experiment's axis of rows runs down; the others, and the measures, run across. An axis with one value goes into the
caption. Where there would be more than eight columns, each measure gets a table of its own, and then each value of the
first axis that runs across, and so on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kontrast.experiments.intervals import Interval
from kontrast.experiments.tables._summary import Summary

WIDEST = 8
ERROR = 60  # letters of an error that a cell shows
Record = Mapping[str, Any]


@dataclass(frozen=True)
class Entry:
    """A cell in words: ours, and under it what the paper has; ``good`` is False for what is no number."""

    ours: str
    paper: str = ""
    good: bool = True


@dataclass(frozen=True)
class Layout:
    """One table. ``entries[row][column]`` is None where the grid has no such place."""

    caption: str
    corner: str
    columns: list[str]
    rows: list[str]
    entries: list[list[Entry | None]]


def layouts(summary: Summary) -> list[Layout]:
    """The tables of a summary."""
    across = [axis for axis in summary["axes"] if axis != summary["rows"] and len(summary["axes"][axis]) > 1]
    return _split(summary, summary["places"], across, summary["measures"], []) + _untrained(summary)


def _untrained(summary: Summary) -> list[Layout]:
    """What needs no training, as a table of its own: a row a baseline, a column a protocol."""
    found = summary.get("baselines") or []
    titles = {key: title for record in found for key, title in record["titles"].items()}
    if not found:
        return []
    names = [
        ", ".join([text(record["name"]), *(f"{k} = {text(v)}" for k, v in record["at"].items())]) for record in found
    ]
    columns = titles or {"": "accuracy (%)"}
    entries: list[list[Entry | None]] = [[_baseline(record, key) for key in columns] for record in found]
    return [Layout(UNTRAINED, "baseline", list(columns.values()), names, entries)]


def _baseline(record: Record, key: str) -> Entry:
    value, error = record["values"].get(key), record["values"].get(f"error:{key}")
    if value is None:
        return Entry(_status([record]), good=False)
    return Entry(f"{value:.2f}" + ("" if error is None else f" ± {1.96 * error:.2f}"))


def _split(
    summary: Summary, places: Sequence[Record], across: list[str], measures: list[Record], caption: list[str]
) -> list[Layout]:
    columns = list(dict.fromkeys(tuple(place["at"].get(axis) for axis in across) for place in places))
    if len(columns) * len(measures) > WIDEST:
        if len(measures) > 1:
            return [table for m in measures for table in _split(summary, places, across, [m], caption)]
        if len(across) > 1:
            first, rest = across[0], across[1:]
            found = []
            for value in dict.fromkeys(place["at"].get(first) for place in places):
                some = [place for place in places if place["at"].get(first) == value]
                found += _split(summary, some, rest, measures, [*caption, f"{first} = {text(value)}"])
            return found
    return [_laid_out(summary, places, across, measures, caption, columns)]


def _laid_out(
    summary: Summary,
    places: Sequence[Record],
    across: list[str],
    measures: list[Record],
    caption: list[str],
    columns: Sequence[tuple[Any, ...]],
) -> Layout:
    axis = summary["rows"]
    single = [
        f"{other} = {text(values[0])}"
        for other, values in summary["axes"].items()
        if other != axis and len(values) == 1
    ]
    titles = [measures[0]["title"]] if len(measures) == 1 else []
    there = {(place["at"].get(axis), tuple(place["at"].get(a) for a in across)): place for place in places}
    values = list(dict.fromkeys(place["at"].get(axis) for place in places))
    order = summary["axes"][axis]
    values.sort(key=order.index)
    entries = [
        [
            entry(place, measure) if (place := there.get((value, column))) else None
            for column in columns
            for measure in measures
        ]
        for value in values
    ]
    headings = [
        ", ".join(
            filter(
                None,
                [
                    *(f"{a} = {text(v)}" for a, v in zip(across, column, strict=True)),
                    measure["title"] if len(measures) > 1 else "",
                ],
            )
        )
        or measure["title"]
        for column in columns
        for measure in measures
    ]
    return Layout("; ".join([*titles, *caption, *single]), axis, headings, [text(value) for value in values], entries)


def entry(place: Record, measure: Record) -> Entry:
    """A cell in words.

    >>> cell = {"paper": 83.27, "paper_data": "", "mean": 83.41, "half": 0.52, "n": 2, "difference": 0.14}
    >>> runs = [{"status": "done"}, {"status": "done"}, {"status": "failed", "error": "RuntimeError: NaN"}]
    >>> entry({"cells": {"knn": {**cell, "censored": 0}}, "runs": runs}, {"name": "knn", "digits": 1})
    Entry(ours='83.4 ± 0.5 (n = 2; 1 failed)', paper='paper 83.3, difference +0.1', good=True)
    """
    cell, runs, digits = place["cells"][measure["name"]], place["runs"], measure["digits"]
    on = f" on {cell['paper_data']}" if cell["paper_data"] else ""
    paper = "" if cell["paper"] is None else f"paper{on} {cell['paper']:.{digits}f}"
    paper += "" if cell.get("paper_half") is None else f" ± {cell['paper_half']:.{digits}f}"
    if not cell["n"]:
        return Entry(_status(runs), paper, good=False)
    rest = _others(runs, cell["n"])
    if cell["censored"]:
        some = "" if cell["censored"] == cell["n"] else f"{cell['censored']} censored"
        inside = "; ".join(filter(None, [f"n = {cell['n']}", some, rest]))
        return Entry(f"> {cell['mean']:.{digits}f} ({inside})", paper)
    if cell["difference"] is not None:
        paper += f", difference {cell['difference']:+.{digits}f}"
    found = format(Interval(cell["mean"], cell["half"], cell["n"]), f".{digits}f")
    return Entry(found if not rest else f"{found[:-1]}; {rest})", paper)


def _status(runs: Sequence[Record]) -> str:
    """Why there is no number: the error of one that failed, else what the runs do."""
    if failed := [run for run in runs if run["status"] == "failed"]:
        why = text(failed[0].get("error") or "no error was written")
        more = f" ({len(failed)} runs)" if len(failed) > 1 else ""
        return f"failed: {why if len(why) <= ERROR else why[: ERROR - 1] + '…'}{more}"
    return ", ".join(dict.fromkeys("no value" if run["status"] == "done" else run["status"] for run in runs))


def _others(runs: Sequence[Record], n: int) -> str:
    """The runs of a cell that have no number, in words."""
    states = [run["status"] for run in runs if run["status"] != "done"]
    words = [f"{states.count(state)} {state}" for state in dict.fromkeys(states)]
    empty = len(runs) - len(states) - n
    return ", ".join([*words, *([f"{empty} without a value"] if empty else [])])


def text(value: Any) -> str:
    """A value in one line of printable letters: what a terminal or a file could take for a command is gone.

    >>> text("two\\nlines \\x1b[31m"), text(None), text(0.1), text(True)
    ('two lines [31m', '–', '0.1', 'yes')
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return " ".join("".join(letter if letter.isprintable() else " " for letter in str(value)).split())


def findings(summary: Summary) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Claims as (text, statistic, [(verdict, what was found)])."""
    return [
        (
            text(claim["text"]),
            text(claim["statistic"]),
            [(f["verdict"], ": ".join(filter(None, [text(f["where"]), text(f["says"])]))) for f in claim["findings"]],
        )
        for claim in summary["claims"]
    ]


def heading(summary: Summary) -> list[str]:
    """What stands above the tables: source, preset and what it changes, settings, runs, hours."""
    status = ", ".join(f"{count} {state}" for state, count in summary["status"].items()) or "none"
    settings = summary["settings"] or []
    if isinstance(settings, Mapping):
        settings = [f"{key}={value}" for key, value in settings.items()]
    elif isinstance(settings, str):
        settings = [settings]
    made = summary.get("made") or {}  # by whom and how, where a sweep has said so
    lines = [
        f"Source: {summary['source']}",
        f"Preset {summary['preset']}: {summary['about']}",
        f"Settings: {' '.join(map(str, settings))}" if settings else "",
        f"Runs: {status}; seeds {', '.join(map(str, summary['seeds']))}; {summary['seconds'] / 3600:.2f} hours",
        from_ledger(summary.get("ledger") or {}),
        f"Command: {made['command']}" if made.get("command") else "",
        f"kontrast {made['version']}, commit {made.get('commit') or 'unknown'}" if made.get("version") else "",
        INTERVALS,
    ]
    return [text(line) for line in lines if line]


def from_ledger(counts: Record) -> str:
    """How many runs a summary has from a ledger, in words; empty if none."""
    if not counts.get("cells"):
        return ""
    other = counts.get("other_recipe", 0)
    stale = f"; {other} of them ran with settings that this version's preset no longer has" if other else ""
    return f"From the ledger: {counts['cells']} runs{stale}"


UNTRAINED = (
    "Without training: raw pixels, and the same encoder before its first step (first seed), top-1 (%) by the protocols "
    "of the runs; ± is the 95 % interval over test rows"
)
INTERVALS = (
    "Each cell: mean ± half-width of the 95 % Student-t interval over n seeds; > marks a lower bound (runs stopped "
    "before the end)."
)


def folders(summary: Summary) -> list[tuple[str, list[str]]]:
    """Each place in words, and its run folders with what is not done marked."""
    return [
        (
            ", ".join(f"{axis} = {text(value)}" for axis, value in place["at"].items()),
            [
                text(run["folder"]) + ("" if run["status"] == "done" else f" ({text(run['status'])})")
                for run in place["runs"]
            ],
        )
        for place in summary["places"]
    ]
