"""What a chart draws, as records with the keys x, y, colour, panel, and low and high for a span.

    line, points    mean over seeds and the 95 % interval; points against a measure: one for each place
    heat            mean over seeds, in ``colour``, at x and y
    box             quantiles 5, 25, 50, 75, 95 % of the values
    violin          how the values are spread over bins: ``share`` of the fullest bin at y, and the median (``middle``);
                    from values, or from the shares that the chart's own records give (`violin_records`)
    curve, range    as the chart's own data have it
    plane           points of the plane as the chart's own data have them

Quantiles and shares are computed here, so that a chart of a million values is as small as one of ten. The charts of the
learning curves, which every experiment has, are

    learning-loss    a panel for each place, first seed: the loss, its chance and its bound
    learning-knn     a line for each run, coloured by the table's rows: the monitor's kNN, which has few training rows
                     to vote and is lower than the table's: read its course, not its height
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from kontrast.experiments.cell import Value
from kontrast.experiments.experiment import Chart, Experiment, Row, by_seed, is_censored, value_of
from kontrast.intervals import interval

Record = dict[str, Any]
QUANTILES = {"low": 0.05, "q1": 0.25, "y": 0.5, "q3": 0.75, "high": 0.95}
# What a chart's own records may have beside its axes.
OWN_KEYS = ("low", "high", "q1", "q3", "n", "seed", "theory", "mark", "share", "middle")
OUTLIERS = 0.005  # the part of the values at each end of a violin that is not drawn
BINS = 40  # of a violin whose records are values


def records(chart: Chart, rows: Sequence[Row]) -> list[Record]:
    """All of a chart's records, in the rows' order."""
    if chart.kind not in KINDS:
        raise ValueError(f"chart {chart.name!r}: kind={chart.kind}: must be one of {', '.join(KINDS)}")
    axes = {chart.x, chart.y, chart.colour, chart.panel, "seed"}
    over = [axis for axis in (rows[0].at if rows else ()) if axis not in axes and len(_values(rows, axis)) > 1]
    if chart.data is not None or not over or (chart.kind == "points" and not _is_axis(rows, chart.x)):
        return KINDS[chart.kind](chart, rows)
    # A mean over data sets would mean nothing: what is not drawn is told apart by panels.
    panels = [*over, *([chart.panel] if chart.panel is not None else [])]
    labelled = [_with_panel(row, panels) for row in rows]
    return KINDS[chart.kind](replace(chart, panel=PANEL), labelled)


PANEL = "panel"


def _with_panel(row: Row, axes: Sequence[str]) -> Row:
    return replace(row, at={**row.at, PANEL: ", ".join(f"{axis} = {row.at.get(axis)}" for axis in axes)})


def _values(rows: Sequence[Row], axis: str) -> set[Value]:
    return {row.at.get(axis) for row in rows}


def _means(chart: Chart, rows: Sequence[Row]) -> list[Record]:
    if chart.data is not None:
        return _own_records(chart, rows)
    places = _places(rows, chart, chart.x, chart.colour, chart.panel)
    return [{**at, **mean} for at, here in places if (mean := _mean(here, chart.y))]


def _points(chart: Chart, rows: Sequence[Row]) -> list[Record]:
    if chart.data is not None or _is_axis(rows, chart.x):
        return _means(chart, rows)
    axes = [axis for axis in (rows[0].at if rows else ()) if axis != "seed"]
    return [
        {**at, **up, "x": across["y"], "left": across["low"], "right": across["high"]}
        for at, here in _places(rows, chart, chart.colour, chart.panel, apart=axes)
        if (across := _mean(here, chart.x)) and (up := _mean(here, chart.y))
    ]


def _heat(chart: Chart, rows: Sequence[Row]) -> list[Record]:
    if chart.colour is None:
        raise ValueError(f"colour={chart.colour}: must be the measure that a heat map shows ({chart.name}).")
    if chart.data is not None:
        return _own_records(chart, rows)
    return [
        {**at, "colour": mean["y"], "n": mean["n"], "censored": mean["censored"]}
        for at, here in _places(rows, chart, chart.x, chart.y, chart.panel)
        if (mean := _mean(here, chart.colour))
    ]


def _boxes(chart: Chart, rows: Sequence[Row]) -> list[Record]:
    raw = _raw(chart, rows, chart.y)
    if raw and "q1" in raw[0]:
        return raw
    return [
        {**at, "n": len(values), **{name: float(np.quantile(values, q)) for name, q in QUANTILES.items()}}
        for at, values in _grouped(raw, "y", ("x", "colour", "panel"))
    ]


def _violins(chart: Chart, rows: Sequence[Row]) -> list[Record]:
    raw = _raw(chart, rows, chart.y)
    if raw and "share" in raw[0]:
        return raw
    ends = [float(record["y"]) for record in raw]
    edges = np.linspace(min(ends), max(ends), BINS + 1) if ends and max(ends) > min(ends) else np.array([0.0, 1.0])
    shapes: list[Record] = []
    for at, values in _grouped(raw, "y", ("x", "colour", "panel")):
        shapes += [
            {**at, "n": len(values), **part} for part in violin_records(np.histogram(values, edges)[0], edges, "y")
        ]
    return shapes


def violin_records(counts: np.ndarray, edges: np.ndarray, name: str) -> list[Record]:
    """A histogram as the records of a violin: ``name`` is the middle of a bin, ``share`` its part of the fullest one.

    Bins beyond the values are left out, as are at most `OUTLIERS` of the values on each side, for which the axis would
    have to be twice as long; the shape ends at share 0. The first record has the median (``middle``).

    >>> for record in violin_records(np.array([0, 1, 4, 0]), np.array([0.0, 1.0, 2.0, 3.0, 4.0]), "cosine"):
    ...     print(record)
    {'cosine': 1.0, 'share': 0.0, 'middle': 2.375}
    {'cosine': 1.5, 'share': 0.25}
    {'cosine': 2.5, 'share': 1.0}
    {'cosine': 3.0, 'share': 0.0}
    """
    total = int(counts.sum())
    if not total:
        return []
    up_to = np.cumsum(counts)
    first = int(np.searchsorted(up_to, OUTLIERS * total, side="right"))
    last = int(np.searchsorted(up_to, (1 - OUTLIERS) * total))
    at = int(np.searchsorted(up_to, total / 2))
    inside = (total / 2 - (up_to[at] - counts[at])) / counts[at]
    shape: list[Record] = [{name: float(edges[first]), "share": 0.0}]
    shape[0]["middle"] = float(edges[at] + inside * (edges[at + 1] - edges[at]))
    shape += [
        {name: float((edges[i] + edges[i + 1]) / 2), "share": float(counts[i] / counts.max())}
        for i in range(first, last + 1)
    ]
    return [*shape, {name: float(edges[last + 1]), "share": 0.0}]


KINDS: dict[str, Callable[[Chart, Sequence[Row]], list[Record]]] = {
    "line": _means,
    "box": _boxes,
    "heat": _heat,
    "points": _points,
    "violin": _violins,
    "curve": _means,
    "range": _means,
    "plane": _means,
}


def _is_axis(rows: Sequence[Row], name: str) -> bool:
    return any(name in row.at for row in rows)


def _mean(rows: Sequence[Row], measure: str) -> Record | None:
    """Mean over seeds, its interval, n, and how many of the values are lower bounds."""
    seeds = by_seed(rows, measure)
    if not seeds:
        return None
    mean = interval(seeds.values())
    censored = sum(is_censored(row, measure) for row in rows if value_of(row, measure) is not None)
    low, high = (None, None) if censored else (mean.low, mean.high)
    return {"y": mean.mean, "low": low, "high": high, "n": mean.n, "censored": censored}


def _places(
    rows: Sequence[Row], chart: Chart, *names: str | None, apart: Sequence[str] = ()
) -> list[tuple[Record, list[Row]]]:
    """The rows by the axes named (and ``apart``), with the record's keys for them."""
    keys = {chart.panel: "panel", chart.colour: "colour", chart.y: "y", chart.x: "x"}
    axes = [name for name in names if name is not None]
    places: dict[tuple[Value, ...], tuple[Record, list[Row]]] = {}
    for row in rows:
        if unknown := [axis for axis in axes if axis not in row.at]:
            raise ValueError(
                f"chart {chart.name!r} wants the axis {unknown[0]!r}; the rows have {', '.join(row.at)}: name one of "
                "them, or give data="
            )
        place = tuple(row.at[axis] for axis in (*axes, *apart))
        places.setdefault(place, ({keys[axis]: row.at[axis] for axis in axes}, []))[1].append(row)
    return list(places.values())


def _own_records(chart: Chart, rows: Sequence[Row]) -> list[Record]:
    """The chart's own records, under our keys."""
    assert chart.data is not None
    keys = {"x": chart.x, "y": chart.y, "colour": chart.colour, "panel": chart.panel}
    names = {key: name for key, name in keys.items() if name is not None}
    records: list[Record] = []
    for record in chart.data(rows):
        if lacks := [name for name in names.values() if name not in record]:
            raise ValueError(
                f"chart {chart.name!r} wants {lacks[0]!r} of its records; they have {', '.join(map(str, record))}"
            )
        converted: Record = {key: record[key] for key in OWN_KEYS if key in record}
        converted |= {key: record[name] for key, name in names.items() if name in record}
        records.append(converted)
    return records


def _raw(chart: Chart, rows: Sequence[Row], measure: str) -> list[Record]:
    """A record for each value: the chart's own, or one for each run that has the measure."""
    if chart.data is not None:
        return _own_records(chart, rows)
    axis = [name for name in (chart.x, chart.colour, chart.panel) if name is not None and name != measure]
    return [
        {**at, ("x" if measure == chart.x else "y"): value}
        for at, here in _places(rows, chart, *axis)
        for row in here
        if (value := value_of(row, measure)) is not None
    ]


def _grouped(records: Sequence[Mapping[str, Any]], value: str, by: Sequence[str]) -> list[tuple[Record, list[float]]]:
    groups: dict[tuple[Any, ...], tuple[Record, list[float]]] = {}
    for record in records:
        at = {key: record[key] for key in by if key in record}
        groups.setdefault(tuple(at.values()), (at, []))[1].append(float(record[value]))
    return list(groups.values())


# ------------------------------------------------------------------------------------------------------ learning curves


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
    charts = []
    if "loss" in names:
        title = "Loss along training, with its chance and its bound (first seed)"
        data = partial(loss_records, varied)
        charts.append(Chart("learning-loss", title, "curve", "step", "loss", "what", "panel", data=data))
    if "knn" in names:
        title = "kNN accuracy along training (%, few training rows: read the course, not the height)"
        colour, panels = _split(experiment, varied)
        panel = "panel" if panels else None
        data = partial(knn_records, panels)
        charts.append(Chart("learning-knn", title, "curve", "step", "knn", colour, panel, data=data))
    return charts


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
