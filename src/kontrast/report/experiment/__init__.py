"""The page of an experiment: the paper's claims with verdicts, its table with ours, its figures from our runs.

collect (files) → table, sphere → `page`
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kontrast.report.drawing import Json
from kontrast.report.experiment import sphere
from kontrast.report.experiment.collect import GridRun, Record, collect
from kontrast.report.experiment.table import tables
from kontrast.report.layout import from_ledger
from kontrast.report.page import Cell, Figure, Mark, Number, Numbers, Page, Part, Section, Table, Text, Widget
from kontrast.runs import Summary

__all__ = ["page"]

HIGH, PANEL_WIDE = 320, 380  # of a chart, and of each of two panels
TITLE_LETTERS = 44  # of a title's line
LEARNING = "learning-"  # the names of the learning curves begin with it
INTERVALS = (
    "Each cell: mean ± half-width of the 95 % Student-t interval over seeds; one seed has no interval. A > marks a "
    "lower bound: runs were stopped before the event that they waited for. The interval says what other seeds would "
    "change, not other data; the difference from the paper is shown only if the data are the paper's."
)
CURVES = (
    "Chance is the loss of unrelated embeddings, the bound what it cannot fall below. The loss is the mean over "
    "stretches of the log. kNN along the way compares a few hundred held-out rows with few training rows, so it is "
    "lower than in the table: read its course, not its height. Nothing was chosen by it."
)
AGAIN = (
    "Finished runs are not repeated; each has a folder with its recipe's hash in the name, beside this page's folder. "
    "The tables are there too as table.csv, table.md and table.tex, the figures as .svg and Vega-Lite."
)
VERDICTS = {  # sign, tone, meaning
    "holds": ("✓", "good", "the 95 % interval, or every run, is on the claim's side"),
    "does not hold": ("✗", "bad", "it is on the other side"),
    "not resolved at this scale": ("?", "watch", "our runs leave it open"),
}
# Names go in as text, and encoded into the address: a folder's name cannot become anything else.
LINKS = """
const list = root.querySelector("ul");
for (const { label, folder } of data) {
  const link = document.createElement("a");
  link.textContent = label;
  link.href = `../${encodeURIComponent(folder)}/report.html`;
  const item = document.createElement("li");
  item.append(link);
  list.append(item);
}
"""
STYLE = "<style>.run-links { columns: 20rem; padding-left: 1.2rem; font-size: .9rem; }</style>"


def page(path: Path) -> Page:
    """The page of an experiment's folder: what `kontrast reproduce` wrote, and the run folders beside it.

    Raises:
        ValueError: It is not an experiment's folder, or a file in it is damaged.
    """
    record = collect(path)
    summary = record.summary
    count = len(summary.seeds)
    words = [
        summary.source,
        f"preset {summary.preset}",
        f"{count} seed{'' if count == 1 else 's'}",
        summary.experiment,
    ]
    figures, curves = _figures(record, learning=False), _figures(record, learning=True)
    sections = [
        Section("At a glance", _glance(record)),
        Section("Claims and verdicts", [claims(summary)] if summary.claims else []),
        Section("On the sphere", [sphere.widget(record.paths)] if record.paths else []),
        Section("The paper's table, with ours", [*tables(summary), Text(INTERVALS, "note")]),
        Section("Figures from our runs", figures),
        Section("Learning curves", [*curves, Text(CURVES, "note")] if curves else []),
        Section("What failed", [failures(record)] if any(run.error for run in record.runs) else []),
        Section("Make it again", _again(record)),
        Section("Runs", [*links(record), runs(record)], open=False),
    ]
    return Page(summary.title, " · ".join(words), [section for section in sections if section.parts])


# -------------------------------------------------------------------------------------------------------- at a glance


def _glance(record: Record) -> list[Part]:
    summary, done = record.summary, record.count("done")
    failed, missing = record.count("failed"), record.count("missing")
    states = {"failed": failed, "missing": missing, "unfinished": len(record.runs) - done - failed - missing}
    rest = ", ".join(f"{count} {state}" for state, count in states.items() if count)
    tone = "bad" if failed else "watch" if rest else ""
    hours = (summary.seconds or 0.0) / 3600
    spent = f"{hours:.1f} hours of work" if hours >= 0.1 else f"{3600 * hours:.0f} seconds of work"
    about = ", ".join(filter(None, [rest, f"seeds {', '.join(map(str, summary.seeds))}", spent]))
    cards = [*verdict_counts(summary), Number("runs done", f"{done} of {len(record.runs)}", about, tone)]
    parts: list[Part] = [Numbers(cards), Text(f"Preset {summary.preset}. {summary.about}")]
    if settings := _settings(summary.settings):
        parts.append(Text(f"Set by hand, unlike the preset: {settings}", "note"))
    return parts


def _settings(settings: Any) -> str:
    if isinstance(settings, dict):
        return " ".join(f"{key}={value}" for key, value in settings.items())
    return " ".join(map(str, settings)) if isinstance(settings, list) else str(settings or "")


# ------------------------------------------------------------------------------------------------------------- claims


def mark(verdict: str) -> Mark:
    r"""A verdict as a cell: a word, a sign and a colour.

    >>> mark("holds")
    Mark(text='✓\xa0holds', tone='good')
    """
    sign, tone, _ = VERDICTS.get(verdict, ("?", "watch", ""))
    return Mark(f"{sign}\N{NO-BREAK SPACE}{verdict}", tone)


def verdict_counts(summary: Summary) -> list[Number]:
    """A card for each verdict that a claim has."""
    verdicts = [str(finding.get("verdict", "")) for claim in summary.claims for finding in claim.findings]
    return [
        Number(mark(verdict).text, f"{verdicts.count(verdict)} of {len(verdicts)}", about, tone)
        for verdict, (_, tone, about) in VERDICTS.items()
        if verdict in verdicts
    ]


def claims(summary: Summary) -> Table:
    """A row for each finding: verdict, claim, the statistic's value, how it is decided."""
    rows: list[list[Cell]] = []
    for claim in summary.claims:
        for finding in claim.findings:
            text = ": ".join(str(word) for key in ("where", "says") if (word := finding.get(key)))
            rows.append([mark(str(finding.get("verdict", ""))), claim.text, text, claim.statistic or ""])
    return Table(["verdict", "the claim", "what our runs say", "decided by"], rows)


# ------------------------------------------------------------------------------------------------- figures, and again


def _figures(record: Record, *, learning: bool) -> list[Part]:
    """The learning curves, or all other charts."""
    specs = {name: spec for name, spec in record.charts.items() if name.startswith(LEARNING) == learning}
    return [Figure(name, fit_chart(spec), wide="facet" in spec) for name, spec in specs.items()]


def fit_chart(spec: Mapping[str, Any]) -> Json:
    """A chart of the experiment's folder for the page: as wide as its place, and a single panel without a grid.

    Colours and fonts are the page's (`kontrast.report.figures.themed`); data and marks stay as they are.

    >>> chart = fit_chart({"width": 420, "height": 260, "layer": [], "data": {"values": []}})
    >>> chart["width"], chart["height"]
    ('container', 320)
    """
    chart = _single_panel(spec)
    if "facet" in chart:  # panels have their own size; two in a line have more room than three
        is_sized = chart.get("columns") == 2 and isinstance(chart["spec"].get("width"), int | float)
        return {**chart, "spec": {**chart["spec"], "width": PANEL_WIDE}} if is_sized else chart
    if not isinstance(chart.get("width"), int | float):
        return chart  # heat maps have their own size
    title = chart.get("title", "")
    title = title if isinstance(title, Mapping) else {"text": title}
    lines = textwrap.wrap(str(title.get("text", "")), TITLE_LETTERS)  # one line does not fit a phone
    return {**chart, "width": "container", "height": HIGH, "title": {**title, "text": lines}}


def _single_panel(spec: Mapping[str, Any]) -> Json:
    """A grid of one panel becomes that panel; its name becomes the subtitle."""
    facet, values = spec.get("facet"), spec.get("data", {}).get("values", [])
    panels = {record.get("panel") for record in values} if isinstance(facet, Mapping) else set()
    if len(panels) != 1 or "spec" not in spec:
        return dict(spec)
    chart = {key: value for key, value in spec.items() if key not in ("facet", "columns", "spec", "resolve", "title")}
    title = spec.get("title", "")
    text = title.get("text", "") if isinstance(title, Mapping) else title
    return {**chart, "title": {"text": text, "subtitle": str(panels.pop())}, **spec["spec"]}


def _again(record: Record) -> list[Part]:
    summary, origin = record.summary, record.summary.made
    command = origin.get("command") or f"kontrast reproduce {summary.experiment} --preset {summary.preset}"
    version = f"{origin['version']}, commit {origin.get('commit') or 'unknown'}" if origin.get("version") else ""
    ledger = from_ledger(summary.ledger or {})
    return [
        Text(f"{command}\n{command} --only-read   # tables and this page of what is done, nothing run", "code"),
        *([Text(ledger, "note")] if ledger else []),
        Text(f"This page was made from the runs of kontrast {version}. {AGAIN}" if version else AGAIN, "note"),
    ]


# --------------------------------------------------------------------------------------------------------------- runs


def runs(record: Record) -> Table:
    """A table of all runs."""
    rows: list[list[Cell]] = [
        [run.place, _word(run.seed), run.folder, _status(run), "–" if run.seconds is None else f"{run.seconds:.0f} s"]
        for run in record.runs
    ]
    return Table(["place", "seed", "run folder", "status", "time"], rows)


def failures(record: Record) -> Table:
    """The runs that have an error."""
    rows: list[list[Cell]] = [
        [run.place, _word(run.seed), run.folder, Mark(run.error, "bad")] for run in record.runs if run.error
    ]
    return Table(["place", "seed", "run folder", "error"], rows)


def links(record: Record) -> Sequence[Widget]:
    """Links to the runs that have a page."""
    data = [{"label": f"{run.place}, seed {run.seed}", "folder": run.folder} for run in record.runs if run.has_report]
    html = f'{STYLE}<ul class="run-links"></ul>'
    return [Widget("run-links", html, LINKS, data, "Pages of the runs")] if data else []


def _status(run: GridRun) -> Cell:
    return run.status if run.status == "done" else Mark(run.status, "bad" if run.status == "failed" else "watch")


def _word(seed: object) -> str:
    return "–" if seed is None else str(seed)
