"""CSV: one line a cell of the table."""

from __future__ import annotations

import io
from csv import writer
from typing import Any

from kontrast.experiments.tables._layout import text
from kontrast.experiments.tables._summary import Summary

NUMBERS = ("paper", "paper_half", "paper_data", "mean", "half", "n", "difference", "censored")
COLUMNS = ("measure", *NUMBERS, "status", "error", "runs")


def csv(summary: Summary) -> str:
    """The axes, then measure, paper's value, mean, half-width, n, difference, censored, status, error, run folders."""
    file = io.StringIO()
    lines = writer(file, lineterminator="\n")
    lines.writerow([_safe(axis) for axis in summary["axes"]] + list(COLUMNS))
    for place in summary["places"]:
        runs = place["runs"]
        status = " ".join(dict.fromkeys(run["status"] for run in runs))
        error = next((run["error"] for run in runs if run["error"]), None)
        at = [_safe(place["at"].get(axis)) for axis in summary["axes"]]
        for name, cell in place["cells"].items():
            numbers = [cell[key] for key in NUMBERS]
            folders = "; ".join(str(run["folder"]) for run in runs)
            lines.writerow([*at, _safe(name), *numbers, status, _safe(error), _safe(folders)])
    return file.getvalue()


def _safe(value: Any) -> Any:
    """Text that a spreadsheet would compute gets an apostrophe, as spreadsheets themselves write it."""
    if not isinstance(value, str):
        return value
    plain = text(value)
    return f"'{plain}" if plain[:1] in ("=", "+", "-", "@") else plain
