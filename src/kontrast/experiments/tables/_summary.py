"""The summary of an experiment (`kontrast.runs.Summary`), from its rows: all tables are made from it.

It is plain dicts, lists, strings and numbers, so that the summary that is read from result.json gives the same tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

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
    chosen = find_preset(experiment, preset)
    planned = {axis: list(chosen.axes.get(axis, values)) for axis, values in experiment.axes.items()}
    axes = {
        axis: _present(values, [row.at[axis] for row in rows if axis in row.at]) for axis, values in planned.items()
    }
    places: dict[tuple[tuple[str, Value], ...], list[Row]] = {}
    for row in rows:
        places.setdefault(tuple((axis, row.at[axis]) for axis in axes if axis in row.at), []).append(row)
    if experiment.rows not in axes:
        raise ValueError(f"rows={experiment.rows}: must be an axis of {experiment.name}. Use one of {', '.join(axes)}.")
    order = sorted(places, key=lambda place: [axes[axis].index(value) for axis, value in place])
    have = {
        m.name for m in experiment.measures if not m.optional or any(value_of(row, m.name) is not None for row in rows)
    }
    shown = [measure for measure in experiment.measures if measure.name in have and not is_mark(measure.name)]
    found = {
        "experiment": experiment.name,
        "title": experiment.title,
        "source": experiment.source,
        "preset": preset,
        "about": chosen.about,
        "settings": settings,
        "rows": experiment.rows,
        "axes": axes,
        "seeds": sorted({row.at["seed"] for row in rows if "seed" in row.at}, key=str),
        "measures": [{"name": m.name, "title": m.title, "digits": m.digits} for m in shown],
        "status": dict(Counter(row.status for row in rows)),
        "seconds": sum({row.folder: row.seconds or 0.0 for row in rows}.values()),
        "places": [_place(experiment, shown, dict(place), places[place]) for place in order],
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
    plain: dict[str, Any] = finite(found)
    return plain


def baselines(experiment: Experiment, names: Sequence[str], rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The baselines of a sweep by their names and rows, for the summary's ``baselines``.

    ``titles`` name each protocol: as the measure that reads it, or by its own name; in the measures' order, then by
    name, wherever the values come from.
    """
    titles = {protocol: measure.title for measure in experiment.measures for protocol in measure.protocols}
    order = [*titles, *sorted({key for row in rows for key in row.values if not is_mark(key)} - titles.keys())]
    found = [
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
    plain: list[dict[str, Any]] = finite(found)
    return plain


def _present(planned: Sequence[Value], have: Sequence[Value]) -> list[Value]:
    """The values that runs have: those of the plan in its order, then others (the user's own)."""
    return [value for value in planned if value in have] + [v for v in dict.fromkeys(have) if v not in planned]


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
        found = interval(value for _, value in have)
        cell["mean"] = found.mean
        if not cell["censored"]:  # of a lower bound neither an interval nor a difference is known
            cell["half"] = found.half
            cell["difference"] = None if paper is None or elsewhere else found.mean - paper
    return cell
