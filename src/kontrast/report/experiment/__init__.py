"""The page of an experiment: the paper's claims with verdicts, its table with ours, its figures from our runs.

collect (files) → claims, table, sphere → `page`
"""

from __future__ import annotations

from pathlib import Path

from kontrast.report.experiment import charts, claims, table
from kontrast.report.experiment._globe import widget
from kontrast.report.experiment._runs import failures, links, runs
from kontrast.report.experiment.collect import Record, collect
from kontrast.report.layout import from_ledger
from kontrast.report.page import Figure, Number, Numbers, Page, Part, Section, Text

__all__ = ["page"]


def page(path: Path) -> Page:
    """The page of an experiment's folder: what `kontrast reproduce` wrote, and the run folders beside it."""
    record = collect(path)
    summary = record.summary
    seeds = len(summary["seeds"])
    parts = [
        summary["source"],
        f"preset {summary['preset']}",
        f"{seeds} seed{'' if seeds == 1 else 's'}",
        summary["experiment"],
    ]
    sections = [
        Section("At a glance", _glance(record)),
        Section("Claims and verdicts", [claims.table(summary)]) if summary["claims"] else None,
        Section("On the sphere", [widget(record.ways)]) if record.ways else None,
        Section("The paper's table, with ours", [*table.tables(summary), Text(INTERVALS, "note")]),
        Section("Figures from our runs", figures) if (figures := _figures(record, learning=False)) else None,
        Section("Learning curves", [*curves, Text(CURVES, "note")])
        if (curves := _figures(record, learning=True))
        else None,
        Section("What failed", [failures(record)]) if any(run.error for run in record.runs) else None,
        Section("Make it again", _again(record)),
        Section("Runs", [*links(record), runs(record)], open=False),
    ]
    return Page(summary["title"], " · ".join(parts), [section for section in sections if section is not None])


LEARNING = "learning-"  # how the names of these charts begin
INTERVALS = (
    "Each cell: mean ± half-width of the 95 % Student-t interval over seeds; one seed has no interval. A > marks a "
    "lower bound: runs stopped before what was waited for came. The interval says what other seeds would change, not "
    "other data; a difference from the paper is taken only where the data are the paper's."
)


def _glance(record: Record) -> list[Part]:
    summary, done = record.summary, record.count("done")
    failed, missing = record.count("failed"), record.count("missing")
    others = len(record.runs) - done - failed - missing
    states = {"failed": failed, "missing": missing, "unfinished": others}
    rest = ", ".join(f"{count} {state}" for state, count in states.items() if count)
    tone = "bad" if failed else "watch" if rest else ""
    hours = float(summary.get("seconds") or 0.0) / 3600
    spent = f"{hours:.1f} hours of work" if hours >= 0.1 else f"{3600 * hours:.0f} seconds of work"
    about = ", ".join(filter(None, [rest, f"seeds {', '.join(map(str, summary['seeds']))}", spent]))
    cards = [*claims.counts(summary), Number("runs done", f"{done} of {len(record.runs)}", about, tone)]
    parts: list[Part] = [Numbers(cards), Text(f"Preset {summary['preset']}. {summary['about']}")]
    settings = summary.get("settings")
    if settings:
        given = [f"{k}={v}" for k, v in settings.items()] if isinstance(settings, dict) else settings
        shown = given if isinstance(given, str) else " ".join(map(str, given))
        parts.append(Text(f"Set by hand, unlike the preset: {shown}", "note"))
    return parts


CURVES = (
    "Chance is the loss of unrelated embeddings, the bound what it cannot fall below. The loss is the mean over "
    "stretches of the log. kNN along the way is of a few hundred held-out rows against few training rows, so it is "
    "lower than the table's: read its course, not its height. Nothing was chosen by it."
)


def _figures(record: Record, *, learning: bool) -> list[Part]:
    """The learning curves, or all other charts."""
    chosen = {name: spec for name, spec in record.charts.items() if name.startswith(LEARNING) == learning}
    specs = {name: charts.fitted(spec) for name, spec in chosen.items()}
    return [Figure(name, spec, wide=charts.is_wide(spec)) for name, spec in specs.items()]


def _again(record: Record) -> list[Part]:
    made = record.summary.get("made") or {}
    command = (
        made.get("command") or f"kontrast reproduce {record.summary['experiment']} --preset {record.summary['preset']}"
    )
    version = f"kontrast {made['version']}, commit {made.get('commit') or 'unknown'}." if made.get("version") else ""
    return [
        Text(f"{command}\n{command} --only-read   # tables and this page of what is done, nothing run", "code"),
        *([Text(said, "note")] if (said := from_ledger(record.summary.get("ledger") or {})) else []),
        Text(
            " ".join(filter(None, [f"This page was made from the runs of {version}" if version else "", AGAIN])), "note"
        ),
    ]


AGAIN = (
    "Runs that are done are not done again; each has a folder that its recipe's hash names, beside this page's folder. "
    "The tables are there too as table.csv, table.md and table.tex, the figures as .svg and Vega-Lite."
)
