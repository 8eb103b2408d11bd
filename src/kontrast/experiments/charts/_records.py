"""What a chart draws, as records with the keys x, y, colour, panel, and low and high where there is a span.

    line, points    mean over seeds and the 95 % interval; points against a measure: one for each place
    heat            mean over seeds, in ``colour``, at x and y
    box             quantiles 5, 25, 50, 75, 95 % of the values
    density         a Gaussian kernel's estimate of the values (Silverman's width)
    curve, range    as the chart's own data have it

Quantiles and densities are computed here, so that a chart of a million values is as small as one of ten.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kontrast.experiments.cell import Value
from kontrast.experiments.experiment import Chart, Row
from kontrast.experiments.intervals import by_seed, interval, is_censored, value_of

Record = dict[str, Any]
QUANTILES = {"low": 0.05, "q1": 0.25, "y": 0.5, "q3": 0.75, "high": 0.95}
STEPS = 120  # points of a density


def records(chart: Chart, rows: Sequence[Row]) -> list[Record]:
    """All of a chart's records, in the rows' order."""
    if chart.kind not in KINDS:
        raise ValueError(f"chart {chart.name!r} has the kind {chart.kind!r}; expected one of {', '.join(KINDS)}")
    drawn = {chart.x, chart.y, chart.colour, chart.panel, "seed"}
    over = [axis for axis in (rows[0].at if rows else ()) if axis not in drawn and len(_values(rows, axis)) > 1]
    if chart.data is not None or not over or (chart.kind == "points" and not _is_axis(rows, chart.x)):
        return KINDS[chart.kind](chart, rows)
    # A mean over data sets would mean nothing: what is not drawn is told apart by panels.
    panels = [*over, *([chart.panel] if chart.panel is not None else [])]
    named = [_with_panel(row, panels) for row in rows]
    return KINDS[chart.kind](replace(chart, panel=PANEL), named)


PANEL = "panel"


def _with_panel(row: Row, axes: Sequence[str]) -> Row:
    return replace(row, at={**row.at, PANEL: ", ".join(f"{axis} = {row.at.get(axis)}" for axis in axes)})


def _values(rows: Sequence[Row], axis: str) -> set[Value]:
    return {row.at.get(axis) for row in rows}


def _means(chart: Chart, rows: Sequence[Row]) -> list[Record]:
    if chart.data is not None:
        return _given(chart, rows)
    found = []
    for at, here in _places(rows, chart, chart.x, chart.colour, chart.panel):
        if record := _mean(here, chart.y):
            found.append({**at, **record})
    return found


def _points(chart: Chart, rows: Sequence[Row]) -> list[Record]:
    if chart.data is not None or _is_axis(rows, chart.x):
        return _means(chart, rows)
    axes = [axis for axis in (rows[0].at if rows else ()) if axis != "seed"]
    found = []
    for at, here in _places(rows, chart, chart.colour, chart.panel, apart=axes):
        across, up = _mean(here, chart.x), _mean(here, chart.y)
        if across and up:
            span = {"x": across["y"], "left": across["low"], "right": across["high"]}
            found.append({**at, **up, **span})
    return found


def _heat(chart: Chart, rows: Sequence[Row]) -> list[Record]:
    if chart.colour is None:
        raise ValueError(f"chart {chart.name!r} is a heat map without colour; expected the measure that it shows there")
    if chart.data is not None:
        return _given(chart, rows)
    found = []
    for at, here in _places(rows, chart, chart.x, chart.y, chart.panel):
        if record := _mean(here, chart.colour):
            found.append({**at, "colour": record["y"], "n": record["n"], "censored": record["censored"]})
    return found


def _boxes(chart: Chart, rows: Sequence[Row]) -> list[Record]:
    given = _raw(chart, rows, chart.y)
    if given and "q1" in given[0]:
        return given
    return [
        {**at, "n": len(values), **{name: float(np.quantile(values, q)) for name, q in QUANTILES.items()}}
        for at, values in _grouped(given, "y", ("x", "colour", "panel"))
    ]


def _densities(chart: Chart, rows: Sequence[Row]) -> list[Record]:
    given = _raw(chart, rows, chart.x)
    if given and "y" in given[0]:
        return given
    found: list[Record] = []
    for at, values in _grouped(given, "x", ("colour", "panel")):
        at_x, density = _kernel(np.array(values))
        found += [{**at, "n": len(values), "x": float(x), "y": float(y)} for x, y in zip(at_x, density, strict=True)]
    return found


KINDS: dict[str, Callable[[Chart, Sequence[Row]], list[Record]]] = {
    "line": _means,
    "box": _boxes,
    "heat": _heat,
    "points": _points,
    "density": _densities,
    "curve": _means,
    "range": _means,
}


def _kernel(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Silverman's rule: width 0.9 min(s, IQR/1.34) n^(−1/5); three widths beyond the ends."""
    quarter, three = np.quantile(values, [0.25, 0.75])
    deviation = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    size = min(deviation, (three - quarter) / 1.34) or deviation or 1e-3
    h = 0.9 * size * len(values) ** -0.2
    x = np.linspace(values.min() - 3 * h, values.max() + 3 * h, STEPS)
    # Summed over values a bin at a time: [STEPS, 4096] numbers at most.
    parts = np.array_split(values, -(-len(values) // 4096))
    total = sum(np.exp(-0.5 * ((x[:, None] - part) / h) ** 2).sum(1) for part in parts)
    return x, np.asarray(total / (len(values) * h * np.sqrt(2 * np.pi)))


def _is_axis(rows: Sequence[Row], name: str) -> bool:
    return any(name in row.at for row in rows)


def _mean(rows: Sequence[Row], measure: str) -> Record | None:
    """Mean over seeds, its interval, n, and how many of the values are lower bounds."""
    seeds = by_seed(rows, measure)
    if not seeds:
        return None
    found = interval(seeds.values())
    censored = sum(is_censored(row, measure) for row in rows if value_of(row, measure) is not None)
    low, high = (None, None) if censored else (found.low, found.high)
    return {"y": found.mean, "low": low, "high": high, "n": found.n, "censored": censored}


def _places(
    rows: Sequence[Row], chart: Chart, *names: str | None, apart: Sequence[str] = ()
) -> list[tuple[Record, list[Row]]]:
    """The rows by the axes named (and ``apart``), with the record's keys for them."""
    keys = {chart.panel: "panel", chart.colour: "colour", chart.y: "y", chart.x: "x"}
    axes = [name for name in names if name is not None]
    found: dict[tuple[Value, ...], tuple[Record, list[Row]]] = {}
    for row in rows:
        if unknown := [axis for axis in axes if axis not in row.at]:
            raise ValueError(
                f"chart {chart.name!r} wants the axis {unknown[0]!r}; the rows have {', '.join(row.at)}: name one of "
                "them, or give data="
            )
        place = tuple(row.at[axis] for axis in (*axes, *apart))
        found.setdefault(place, ({keys[axis]: row.at[axis] for axis in axes}, []))[1].append(row)
    return list(found.values())


def _given(chart: Chart, rows: Sequence[Row]) -> list[Record]:
    """The chart's own records, under our keys."""
    assert chart.data is not None
    names = {"x": chart.x, "y": chart.y, "colour": chart.colour, "panel": chart.panel}
    own = {key: name for key, name in names.items() if name is not None}
    found: list[Record] = []
    for record in chart.data(rows):
        optional = {"y"} if chart.kind == "density" else set()
        if lacks := [name for key, name in own.items() if name not in record and key not in optional]:
            raise ValueError(
                f"chart {chart.name!r} wants {lacks[0]!r} of its records; they have {', '.join(map(str, record))}"
            )
        made: Record = {key: record[key] for key in ("low", "high", "q1", "q3", "n", "seed") if key in record}
        made |= {key: record[name] for key, name in own.items() if name in record}
        found.append(made)
    return found


def _raw(chart: Chart, rows: Sequence[Row], measure: str) -> list[Record]:
    """A record for each value: the chart's own, or one for each run that has the measure."""
    if chart.data is not None:
        return _given(chart, rows)
    axis = [name for name in (chart.x, chart.colour, chart.panel) if name is not None and name != measure]
    return [
        {**at, ("x" if measure == chart.x else "y"): value}
        for at, here in _places(rows, chart, *axis)
        for row in here
        if (value := value_of(row, measure)) is not None
    ]


def _grouped(given: Sequence[Mapping[str, Any]], value: str, by: Sequence[str]) -> list[tuple[Record, list[float]]]:
    found: dict[tuple[Any, ...], tuple[Record, list[float]]] = {}
    for record in given:
        at = {key: record[key] for key in by if key in record}
        found.setdefault(tuple(at.values()), (at, []))[1].append(float(record[value]))
    return list(found.values())
