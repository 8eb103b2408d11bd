r"""An experiment's table: the summary, which is its result.json, and its forms for a terminal, a page or a paper.

Each cell has the paper's value if it printed one, our mean ± half-width (n), the difference, and the folders of its
runs. A run that failed or is missing is described and never a number; a censored value is a lower bound: "> 3000".

`csv`, `markdown`, `latex`, `terminal` and `claims` take a summary, fresh or read from JSON, and escape what their
format would take for markup. The JSON itself is ``kontrast.files.dump(summary)``; how cells become text is
`kontrast.report.layout`.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from csv import writer
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kontrast.experiments.cell import Value
from kontrast.experiments.experiment import (
    Experiment,
    Measure,
    Published,
    Row,
    is_censored,
    is_mark,
    kind_of,
    value_of,
)
from kontrast.experiments.plan import find_preset
from kontrast.files import finite
from kontrast.intervals import interval
from kontrast.recipes.published import printed_set
from kontrast.report.layout import (
    INTERVALS,
    Entry,
    Layout,
    SummaryLike,
    findings,
    folders,
    heading,
    layouts,
    text,
)
from kontrast.runs import Summary
from kontrast.runs.schemas import ClaimRecord

__all__ = ["baselines", "claims", "csv", "latex", "markdown", "summary", "terminal"]

# -------------------------------------------------------------------------------------------------------- summary


def summary(experiment: Experiment, rows: Sequence[Row], *, preset: str, settings: Any = None) -> dict[str, Any]:
    """The summary of an experiment, as plain values.

    Args:
        experiment: The experiment.
        rows: One row for each run.
        preset: The name of the preset.
        settings: The user's own settings, kept as they are.

    Returns:
        The content of result.json: for each place of the grid its runs and a cell for each measure (the paper's value,
        our mean, the half-width of its interval, n, the difference), and the findings of each claim.

    Raises:
        ValueError: There is no such preset, or ``experiment.rows`` is not an axis.

    >>> from kontrast.experiments.experiment import Preset
    >>> small = Experiment("demo", "A demonstration", "nobody", {"loss": ["tcl"]}, {"cpu": Preset("as is", dict)},
    ...     [Measure("knn", "kNN (%)", lambda folder: None, 1)], "loss", lambda at, measure: 80.0)
    >>> rows = [Row({"loss": "tcl", "seed": s}, f"runs/tcl-{s}", "done", {"knn": 80.0 + s}) for s in range(3)]
    >>> cell = summary(small, rows, preset="cpu")["places"][0]["cells"]["knn"]
    >>> cell["paper"], cell["mean"], cell["half"], cell["n"], cell["difference"]
    (80.0, 81.0, 2.48..., 3, 1.0)
    """
    scale = find_preset(experiment, preset)
    plan = {axis: scale.axes.get(axis, values) for axis, values in experiment.axes.items()}
    axes = {axis: _present(values, [row.at[axis] for row in rows if axis in row.at]) for axis, values in plan.items()}
    places: dict[tuple[tuple[str, Value], ...], list[Row]] = {}
    for row in rows:
        places.setdefault(tuple((axis, row.at[axis]) for axis in axes if axis in row.at), []).append(row)
    if experiment.rows not in axes:
        raise ValueError(f"rows={experiment.rows}: must be an axis of {experiment.name}. Use one of {', '.join(axes)}.")
    order = sorted(places, key=lambda place: [axes[axis].index(value) for axis, value in place])
    have = {
        m.name for m in experiment.measures if not m.optional or any(value_of(row, m.name) is not None for row in rows)
    }
    measures = [measure for measure in experiment.measures if measure.name in have and not is_mark(measure.name)]
    record = {
        "experiment": experiment.name,
        "title": experiment.title,
        "source": experiment.source,
        "preset": preset,
        "about": scale.about,
        "settings": settings,
        "rows": experiment.rows,
        "axes": axes,
        "seeds": sorted({row.at["seed"] for row in rows if "seed" in row.at}, key=str),
        "measures": [{"name": m.name, "title": m.title, "digits": m.digits} for m in measures],
        "status": dict(Counter(row.status for row in rows)),
        "seconds": sum({row.folder: row.seconds or 0.0 for row in rows}.values()),
        "places": [_place(experiment, measures, dict(place), places[place]) for place in order],
        "claims": [
            {
                "text": claim.text,
                "kind": kind_of(claim, experiment.measures),
                "statistic": claim.statistic,
                "findings": [vars(finding) for finding in claim.test(rows)],
            }
            for claim in experiment.claims
        ],
    }
    plain: dict[str, Any] = finite(record)
    return plain


def baselines(experiment: Experiment, names: Sequence[str], rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The baselines of a sweep by their names and rows, for the summary's ``baselines``.

    ``titles`` name each protocol: as the measure that reads it, or by its own name; in the measures' order, then by
    name, wherever the values come from.
    """
    titles = {protocol: measure.title for measure in experiment.measures for protocol in measure.protocols}
    order = [*titles, *sorted({key for row in rows for key in row.values if not is_mark(key)} - titles.keys())]
    records = [
        {
            "name": name,
            "at": {axis: value for axis, value in row.at.items() if axis != "seed"},
            "seed": row.at.get("seed"),
            "status": row.status,
            "error": row.error,
            "values": dict(row.values),
            "titles": {key: titles.get(key, f"{key} (%)") for key in order if key in row.values},
        }
        for name, row in zip(names, rows, strict=True)
    ]
    plain: list[dict[str, Any]] = finite(records)
    return plain


def _present(values: Sequence[Value], have: Sequence[Value]) -> list[Value]:
    """The values that runs have: those of the plan in its order, then others (the user's own)."""
    return [value for value in values if value in have] + [v for v in dict.fromkeys(have) if v not in values]


def _place(
    experiment: Experiment, measures: Sequence[Measure], at: Mapping[str, Value], rows: Sequence[Row]
) -> dict[str, Any]:
    own = [str(data) for data in experiment.axes.get("data", ())]
    elsewhere = "" if at.get("data") in own else printed_set(at.get("data"), own) or ""
    return {
        "at": at,
        "runs": [
            {
                "seed": row.at.get("seed"),
                "folder": row.folder,
                "status": row.status,
                "error": row.error,
                "seconds": row.seconds,
                "values": dict(row.values),
            }
            for row in rows
        ],
        "cells": {m.name: _cell(rows, m.name, experiment.published(at, m.name), elsewhere) for m in measures},
    }


def _cell(rows: Sequence[Row], measure: str, published: Published, elsewhere: str) -> dict[str, Any]:
    """Where our data are a part of the paper's set (``elsewhere``) its value is shown, but no difference taken."""
    paper, half = published if isinstance(published, tuple) else (published, None)
    have = [(row, value) for row in rows if (value := value_of(row, measure)) is not None]
    cell: dict[str, Any] = {
        "paper": paper,
        "paper_half": half,
        "paper_data": elsewhere if paper is not None else "",
        "mean": None,
        "half": None,
        "n": len(have),
        "difference": None,
        "censored": sum(is_censored(row, measure) for row, _ in have),
    }
    if have:
        mean = interval(value for _, value in have)
        cell["mean"] = mean.mean
        if not cell["censored"]:  # of a lower bound neither an interval nor a difference is known
            cell["half"] = mean.half
            cell["difference"] = None if paper is None or elsewhere else mean.mean - paper
    return cell


# ------------------------------------------------------------------------------------------------------------------ CSV

NUMBERS = ("paper", "paper_half", "paper_data", "mean", "half", "n", "difference", "censored")
COLUMNS = ("measure", *NUMBERS, "status", "error", "runs")


def csv(summary: SummaryLike) -> str:
    """One line for each cell: axes, measure, paper's value, mean, half-width, n, difference, status, error, runs."""
    s = Summary.model_validate(summary)
    file = io.StringIO()
    lines = writer(file, lineterminator="\n")
    lines.writerow([_csv_safe(axis) for axis in s.axes] + list(COLUMNS))
    for place in s.places:
        status = " ".join(dict.fromkeys(run.status for run in place.runs))
        error = next((run.error for run in place.runs if run.error), None)
        at = [_csv_safe(place.at.get(axis)) for axis in s.axes]
        names = "; ".join(run.folder for run in place.runs)
        for name, cell in place.cells.items():
            numbers = [getattr(cell, key) for key in NUMBERS]
            lines.writerow([*at, _csv_safe(name), *numbers, status, _csv_safe(error), _csv_safe(names)])
    return file.getvalue()


def _csv_safe(value: Any) -> Any:
    """Text that a spreadsheet would compute gets an apostrophe, as spreadsheets write it themselves."""
    if not isinstance(value, str):
        return value
    plain = text(value)
    return f"'{plain}" if plain[:1] in ("=", "+", "-", "@") else plain


# ------------------------------------------------------------------------------------------------------------- Markdown

MARKUP = re.compile(r"([\\`*_\[\]|~$#])")


def markdown(summary: SummaryLike) -> str:
    """A page in GitHub's Markdown: the tables, the claims, and the run folders of each place."""
    s = Summary.model_validate(summary)
    parts = [f"# {_md(s.title)}", *map(_md, heading(s)), *map(_md_table, layouts(s))]
    if s.claims:
        parts.append("## Claims")
    for claim, statistic, each in findings(s.claims):
        lines = [f"- {_md(says)}: **{_md(verdict)}**" for verdict, says in each]
        parts.append("\n".join([f"**{_md(claim)}** Statistic: {_md(statistic)}.", "", *lines]))
    parts.append("## Runs")
    runs = "\n".join(f"- {_md(place)}: {', '.join(map(_md, names))}" for place, names in folders(s))
    parts.append(runs or "There are none.")
    return "\n\n".join(parts) + "\n"


def _md(value: object) -> str:
    r"""One line without markup.

    >>> print(_md("a|b <script> *c* x_1"))
    a\|b &lt;script&gt; \*c\* x\_1
    """
    plain = text(value).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return MARKUP.sub(r"\\\1", plain)


def _md_table(layout: Layout) -> str:
    lines = [f"**{_md(layout.caption)}**", ""] if layout.caption else []
    lines.append("| " + " | ".join(map(_md, [layout.corner, *layout.columns])) + " |")
    lines.append("|---" * (1 + len(layout.columns)) + "|")
    for name, entries in zip(layout.rows, layout.entries, strict=True):
        lines.append("| " + " | ".join([_md(name), *map(_md_cell, entries)]) + " |")
    return "\n".join(lines)


def _md_cell(entry: Entry | None) -> str:
    if entry is None:
        return ""
    ours = _md(entry.ours) if entry.good else f"*{_md(entry.ours)}*"
    return f"{ours}<br>{_md(entry.paper)}" if entry.paper else ours


# ---------------------------------------------------------------------------------------------------------------- LaTeX

COMMANDS = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "–": "--",
    "…": r"\ldots{}",
    "’": "'",
    "[": "{[}",  # after a line break these two would be its options
    "*": "{*}",
}
COMMANDS |= {letter: f"\\{letter}" for letter in "&%$#_{}"}
GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi . pi rho . sigma tau upsilon phi chi psi"
)
MATHS = {
    "±": r"\pm",
    "−": "-",
    "×": r"\times",
    "·": r"\cdot",
    "→": r"\to",
    "≥": r"\geq",
    "≤": r"\leq",
    "≈": r"\approx",
    "≪": r"\ll",
    "²": "^2",
    "₁": "_1",
    "₂": "_2",
    "∞": r"\infty",
    "√": r"\surd",
    "ω": r"\omega",
    "Δ": r"\Delta",
    "Σ": r"\Sigma",
}
MATHS |= {chr(ord("α") + k): f"\\{name}" for k, name in enumerate(GREEK.split()) if name != "."}
COMMANDS |= {letter: f"${command}$" for letter, command in MATHS.items()}
SPECIAL = re.compile("|".join(map(re.escape, COMMANDS)))


def latex(summary: SummaryLike) -> str:
    r"""Tables to ``\input``, the claims as a list after them; needs ``\usepackage{booktabs}``."""
    s = Summary.model_validate(summary)
    parts = [
        f"% {text(s.experiment)}, preset {text(s.preset)}; needs \\usepackage{{booktabs}}",
        *(_tex_table(layout, s, k) for k, layout in enumerate(layouts(s))),
    ]
    if s.claims:
        lines = [r"\begin{description}"]
        for claim, statistic, each in findings(s.claims):
            lines.append(f"\\item[{{{_tex(claim)}}}] Statistic: {_tex(statistic)}.")
            lines += [f"  {_tex(says)}: \\emph{{{_tex(verdict)}}}." for verdict, says in each]
        parts.append("\n".join([*lines, r"\end{description}"]))
    parts.append("\n".join(f"% {place}: {', '.join(names)}" for place, names in folders(s)))
    return "\n\n".join(parts) + "\n"


def _tex(value: object) -> str:
    r"""One line in which nothing is a command; Greek letters and signs become mathematics.

    >>> print(_tex("50 % of x_1 ± τ"))
    50 \% of x\_1 $\pm$ $\tau$
    """
    return SPECIAL.sub(lambda match: COMMANDS[match[0]], text(value))


def _tex_table(layout: Layout, summary: Summary, number: int) -> str:
    name = re.sub(r"[^A-Za-z0-9-]", "-", summary.experiment)
    caption = ". ".join(filter(None, [_tex(summary.title), _tex(layout.caption), _tex(INTERVALS)]))
    lines = [
        r"\begin{table}",
        r"\centering",
        f"\\caption{{{caption}}}",
        f"\\label{{tab:{name}{f'-{number + 1}' if number else ''}}}",
        f"\\begin{{tabular}}{{l{'r' * len(layout.columns)}}}",
        r"\toprule",
        " & ".join(map(_tex, [layout.corner, *layout.columns])) + r" \\",
        r"\midrule",
    ]
    for row, entries in zip(layout.rows, layout.entries, strict=True):
        lines.append(" & ".join([_tex(row), *map(_tex_cell, entries)]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"])


def _tex_cell(entry: Entry | None) -> str:
    if entry is None:
        return ""
    ours = _tex(entry.ours) if entry.good else f"\\emph{{{_tex(entry.ours)}}}"
    return f"\\shortstack[r]{{{ours}\\\\{{\\footnotesize {_tex(entry.paper)}}}}}" if entry.paper else ours


# ------------------------------------------------------------------------------------------------------------- terminal

COLOURS = {"holds": "green", "does not hold": "red"}


def terminal(summary: SummaryLike, *, show_folders: bool = False) -> RenderableType:
    """Heading, tables, claims with their verdicts, and the number of runs, for rich; no word is taken for markup.

    Args:
        summary: The summary.
        show_folders: List all run folders instead of their number.
    """
    s = Summary.model_validate(summary)
    parts: list[RenderableType] = [Text(text(s.title), "bold")]
    parts += [Text(line, "dim") for line in heading(s)]
    parts += [Padding(_rich_table(layout), (1, 0, 0, 0)) for layout in layouts(s)]
    parts.append(claims(s.claims))
    every = folders(s)
    if show_folders:
        parts.append(Text())
        parts += [Text(f"{place}: {', '.join(names)}", "dim") for place, names in every]
    else:
        parts.append(Padding(Text(f"{sum(len(names) for _, names in every)} runs", "dim"), (1, 0, 0, 0)))
    return Group(*parts)


def claims(records: Sequence[ClaimRecord | Mapping[str, Any]], *, nothing: str = "nothing was found") -> RenderableType:
    """Each claim with its statistic and its verdicts, for rich.

    Args:
        records: The claims of a summary, or those of `kontrast.experiments.judging.judge_paper`.
        nothing: The line under a claim without a finding.
    """
    parts: list[RenderableType] = []
    for claim, statistic, each in findings(records):
        parts.append(Padding(Text(claim, "bold"), (1, 0, 0, 0)))
        parts.append(Padding(Text(statistic, "dim"), (0, 0, 0, 2)))
        for verdict, says in each:
            line = Text.assemble((verdict, f"bold {COLOURS.get(verdict, 'yellow')}"), f"  {says}")
            parts.append(Padding(line, (0, 0, 0, 2)))
        if not each:
            parts.append(Padding(Text(nothing, "yellow"), (0, 0, 0, 2)))
    return Group(*parts)


def _rich_table(layout: Layout) -> Table:
    table = Table(title=Text(layout.caption) if layout.caption else None, title_justify="left")
    table.add_column(Text(layout.corner), no_wrap=True)
    for name in layout.columns:
        table.add_column(Text(name), justify="right")
    for name, entries in zip(layout.rows, layout.entries, strict=True):
        table.add_row(Text(name), *map(_rich_cell, entries))
    return table


def _rich_cell(entry: Entry | None) -> Text:
    if entry is None:
        return Text()
    ours = Text(entry.ours, "" if entry.good else "red" if entry.ours.startswith("failed") else "yellow")
    return Text.assemble(ours, "\n", (entry.paper, "dim")) if entry.paper else ours
