"""The runs' geometry beside each other, and where each run is from."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kontrast.report.comparison._paint import groups
from kontrast.report.comparison.collect import Run
from kontrast.report.page import Mark, Part, Table, Text

LINES = (
    "uniformity",
    "tolerance",
    "effective rank",
    "dead directions",
    "S1",
    "S2",
    "S3",
    "cosine of two class means",
    "cosine to the class mean",
    "NC1",
)
EMPTY = "–"
SIDE_BY_SIDE = 5  # recipes in a table


def geometry(runs: Sequence[Run]) -> list[Part]:
    """A row a measure, a column a recipe (the mean over its seeds), and the theory's value."""
    names = groups(runs)
    measures: list[list[str]] = []
    for begin in LINES:
        found = {run.label: line for run in runs if (line := run.line(begin)) is not None}
        if not found:
            continue
        first = next(iter(found.values()))
        theories = {_number(line.get("theory")) for line in found.values()}
        row = [first["name"]]
        for group in names:
            values = [float(found[run.label]["value"]) for run in runs if run.group == group and run.label in found]
            row.append(_number(math.fsum(values) / len(values)) if values else EMPTY)
        means = str(first.get("meaning") or "").partition("; here")[0]  # what follows is of one run alone
        measures.append([*row, theories.pop() if len(theories) == 1 else EMPTY, means])
    if not measures:
        return []
    note = (
        "Of the embeddings of test rows; means over seeds. The theory's value is what the words beside it would give."
    )
    return [*side_by_side("measure", names, measures, after=("theory", "if")), Text(note, "note")]


def side_by_side(
    corner: str, names: Sequence[str], rows: Sequence[Sequence[str | Mark]], *, after: Sequence[str] = ()
) -> list[Table]:
    """A column a recipe, at most `SIDE_BY_SIDE` of them in a table: more would be cut off by a sheet of paper.

    A row has its name, a cell for each recipe, and then those of ``after``, which every table repeats.

    >>> tables = side_by_side("key", list("abcdef"), [["lr", *"123456"]])
    >>> [table.columns for table in tables]
    [['key', 'a', 'b', 'c'], ['key', 'd', 'e', 'f']]
    """
    count = len(names)
    size = -(-count // -(-count // SIDE_BY_SIDE))  # as even as they can be
    made: list[Table] = []
    for i in range(0, count, size):
        end = min(i + size, count)
        cells = [[row[0], *row[1 + i : 1 + end], *row[1 + count :]] for row in rows]
        said = f"recipes {i + 1} to {end} of {count}" if size < count else ""
        made.append(Table([corner, *names[i:end], *after], cells, said))
    return made


def _number(value: float | None) -> str:
    """Counts as such, and no more digits than one would read.

    >>> _number(114.6), _number(12.0), _number(-0.1234)
    ('114.6', '12', '−0.123')
    """
    if value is None:
        return EMPTY
    digits = 0 if value == int(value) else 1 if abs(value) >= 100 else 3
    return f"{value:.{digits}f}".replace("-", "−")


def runs_table(runs: Sequence[Run]) -> Table:
    """Folder, status, steps, time, version, and the command that makes it again."""
    rows: list[list[str | Mark]] = []
    for run in runs:
        state = run.state
        steps = f"{state['step']:,}" if state.get("step") is not None else EMPTY
        seconds = f"{state['seconds']:.0f} s" if state.get("seconds") is not None else EMPTY
        versions = state.get("versions") or {}
        made = f"{versions.get('kontrast', EMPTY)}, commit {versions.get('commit') or 'unknown'}"
        status = run.status if run.status == "done" else Mark(run.status, "bad" if run.status == "failed" else "watch")
        rows.append([run.label, status, steps, seconds, made, f"kontrast train {run.path.name}"])
    return Table(["run", "status", "steps", "time", "kontrast", "again, from beside its folder"], rows)
