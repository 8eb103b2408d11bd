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
SIDE_BY_SIDE = 5  # recipes; more stand below each other


def geometry(runs: Sequence[Run]) -> list[Part]:
    """A row a measure, a column a recipe (the mean over its seeds), and the theory's value; the reverse of many."""
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
        measures.append([*row, theories.pop() if len(theories) == 1 else EMPTY, str(first.get("meaning") or "")])
    if not measures:
        return []
    note = (
        "Of the embeddings of test rows; means over seeds. The theory's value is what the words beside it would give."
    )
    columns = ["measure", *names, "theory", "if"]
    if len(names) <= SIDE_BY_SIDE:
        return [Table(columns, measures), Text(note, "note")]
    turned = [[columns[i], *(row[i] for row in measures)] for i in range(1, len(columns) - 1)]
    return [Table(["recipe", *(row[0] for row in measures)], turned), Text(note, "note")]


def _number(value: float | None) -> str:
    return EMPTY if value is None else f"{value:.3f}".replace("-", "−")


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
