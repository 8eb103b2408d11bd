"""The learning curves of a sweep as charts: the loss between chance and its bound, and kNN along the way.

learning-loss    a panel a place, first seed: the loss, its chance and its bound
learning-knn     a line a run, coloured by the table's rows: the monitor's kNN, which has few training rows to vote
                 and is lower than the table's: read its course, not its height
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from kontrast.experiments.experiment import Chart, Experiment, Row

MOST_PANELS = 48
WHAT = {"loss": "loss", "chance": "chance (unrelated embeddings)", "bound": "bound (cannot be lower)"}


def learning(experiment: Experiment, rows: Sequence[Row]) -> list[Chart]:
    """The charts of what the rows' curves have; none of an experiment that trains nothing.

    >>> axes = {"data": ("digits",), "temperature": (0.1,)}
    >>> small = Experiment("demo", "t", "s", axes, {}, [], "temperature")
    >>> curve = [{"step": 10, "loss": 5.0, "chance": 5.5, "bound": 3.0}, {"step": 10, "knn": 0.4}]
    >>> row = Row({"data": "digits", "temperature": 0.1, "seed": 0}, "run", "done", curve=curve)
    >>> [chart.name for chart in learning(small, [row])]
    ['learning-loss', 'learning-knn']
    """
    names = {name for row in rows for point in row.curve for name in point}
    varied = [axis for axis in experiment.axes if len({row.at.get(axis) for row in rows}) > 1]
    found = []
    if "loss" in names:
        title = "Loss along training, with its chance and its bound (first seed)"
        data = partial(loss_records, varied)
        found.append(Chart("learning-loss", title, "curve", "step", "loss", "what", "panel", data=data))
    if "knn" in names:
        title = "kNN accuracy along training (%, few training rows: read the course, not the height)"
        colour, panels = _split(experiment, varied)
        panel = "panel" if panels else None
        data = partial(knn_records, panels)
        found.append(Chart("learning-knn", title, "curve", "step", "knn", colour, panel, data=data))
    return found


def loss_records(varied: Sequence[str], rows: Sequence[Row]) -> list[dict[str, Any]]:
    """A record for each point of the first seed's loss, chance and bound; of the first `MOST_PANELS` places."""
    have = [row for row in rows if row.at["seed"] == 0 and any("loss" in point for point in row.curve)]
    return [
        {"panel": _words(row.at, varied) or "all runs", "step": point["step"], "what": title, "loss": point[name]}
        for row in have[:MOST_PANELS]
        for name, title in WHAT.items()
        for point in row.curve
        if name in point
    ]


def knn_records(panels: Sequence[str], rows: Sequence[Row]) -> list[dict[str, Any]]:
    """A record for each look of the monitor, in percent."""
    return [
        {**row.at, "panel": _words(row.at, panels), "step": point["step"], "knn": 100 * point["knn"]}
        for row in rows
        for point in row.curve
        if "knn" in point
    ]


def _split(experiment: Experiment, varied: Sequence[str]) -> tuple[str | None, list[str]]:
    """The axis that colours the lines (the table's rows, if they vary), and those that make panels."""
    colour = experiment.rows if experiment.rows in varied else next(iter(varied), None)
    return colour, [axis for axis in varied if axis != colour]


def _words(at: Mapping[str, Any], axes: Sequence[str]) -> str:
    return ", ".join(f"{axis} = {at.get(axis)}" for axis in axes)
