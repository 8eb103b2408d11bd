"""The results of an experiment's cells, read from their run folders.

A row has the measures, the small arrays that the experiment `keeps` for its figures, and the learning curve, thinned:
with these, tables, claims and charts need no run folder, and a ledger (`kontrast.experiments.ledger`) can replace it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np

from kontrast.experiments.cell import Cell
from kontrast.experiments.experiment import ERROR, Measure, Row
from kontrast.runs import Run, State

LOSSES, MONITORED = 40, 20
"""How many points a thinned learning curve has at most: of the loss, and of the monitors."""

Keeps = Callable[[Path], Mapping[str, np.ndarray]]
UNREADABLE = (OSError, ValueError, TypeError, KeyError, AttributeError)  # what a damaged folder makes a measure raise


def no_arrays(folder: Path) -> dict[str, np.ndarray]:
    """What an experiment without figures of distributions keeps."""
    return {}


def read(cells: Iterable[Cell], measures: Sequence[Measure], keeps: Keeps = no_arrays) -> list[Row]:
    """Read a row for each cell; those that are not done have no values.

    Args:
        cells: Of a sweep.
        measures: The numbers to read off each.
        keeps: Gives the arrays that figures draw, see `kontrast.experiments.experiment.Experiment.keeps`.
    """
    return [_row(cell, measures, keeps) for cell in cells]


def _row(cell: Cell, measures: Sequence[Measure], keeps: Keeps) -> Row:
    at, folder = dict(cell.at), cell.path.name
    if (trouble := cell.trouble) is not None:
        return Row(at, folder, "failed", error=trouble, path=cell.path)
    state = cell.state
    status = state.status or "missing"
    if status != "done":
        return Row(at, folder, status, error=state.error if status == "failed" else None, path=cell.path)
    try:
        values = {measure.name: measure.read(cell.path) for measure in measures}
        errors = {f"{ERROR}:{m.name}": m.error(cell.path) for m in measures if m.error is not None}
        values |= {name: error for name, error in errors.items() if error is not None}
        arrays, curve = dict(keeps(cell.path)), learning_curve(cell.path)
    except UNREADABLE as error:
        why = f"{cell.path} cannot be read ({type(error).__name__}: {error}); remove the folder, and it is run again"
        return Row(at, folder, "failed", error=why, path=cell.path)
    return Row(at, folder, status, values, None, _seconds(state), cell.path, arrays, curve)


def _seconds(state: State) -> float | None:
    """Working time; of runs that do not have it, the time from the start to the end."""
    if state.seconds is not None:
        return float(state.seconds)
    if state.started is None or state.finished is None:
        return None
    form = "%Y-%m-%dT%H:%M:%S%z"
    try:
        took = datetime.strptime(state.finished, form) - datetime.strptime(state.started, form)
    except ValueError:
        return None
    return took.total_seconds()


# --------------------------------------------------------------------------------------------- reading a run's folder


def result(folder: Path) -> dict[str, Any]:
    """result.json of a run or a task, as plain values."""
    return Run(folder).result


def accuracy(name: str, title: str, *protocols: str, error: bool = False, optional: bool = False) -> Measure:
    """A measure: the top-1 accuracy in percent by the first of these protocols that the run has.

    Args:
        name: The measure's name.
        title: What is measured.
        protocols: Names of protocols.
        error: The error instead of the accuracy.
        optional: A column of its own only if some run has it.
    """

    def field(folder: Path, key: Literal["value", "error"]) -> float | None:
        results = {result.name: result for result in Run(folder).read_result().results}
        return next((getattr(results[protocol], key) for protocol in protocols if protocol in results), None)

    def read(folder: Path) -> float | None:
        share = field(folder, "value")
        return None if share is None else 100 * (1 - share if error else share)

    def error_over_rows(folder: Path) -> float | None:
        share = field(folder, "error")
        return None if share is None else 100 * share

    words = f"{title}, {'error' if error else 'top-1'} (%)"
    return Measure(name, words, read, protocols=protocols, kind="accuracy", error=error_over_rows, optional=optional)


def geometry(name: str, line: str, title: str, *, sign: float = 1.0) -> Measure:
    """A measure: a line of the geometry of the embeddings.

    Args:
        name: The measure's name.
        line: How the name of the line begins.
        title: What is measured.
        sign: −1 turns it around.
    """

    def read(folder: Path) -> float | None:
        record = Run(folder).read_result().geometry
        measure = None if record is None else record.measure("embeddings", line)
        return None if measure is None or measure.value is None else sign * float(measure.value)

    return Measure(name, title, read, digits=3, kind="geometry")


def simplex_record(folder: Path, of: str = "embeddings") -> Mapping[str, Any]:
    """What a run's geometry has on the simplex, at the head's output (embeddings) or the encoder's (features)."""
    record = Run(folder).read_result().geometry
    return {} if record is None else record.simplex.get(of, {})


def simplex(name: str, field: str, title: str) -> Measure:
    """A measure: a scalar of how near the training rows are to a simplex."""

    def read(folder: Path) -> float | None:
        value = simplex_record(folder).get(field)
        return None if value is None else float(value)

    return Measure(name, title, read, digits=3, kind="geometry")


def value(name: str, title: str, digits: int = 3) -> Measure:
    """A measure: a number of a task's result by its key."""

    def read(folder: Path) -> float | None:
        number = result(folder).get(name)
        return None if number is None else float(number)

    return Measure(name, title, read, digits=digits, kind="theory")


def analyses(rows: Iterable[Row]) -> Iterator[tuple[Row, Mapping[str, np.ndarray]]]:
    """The first seed's finished rows that have arrays, with their arrays: what a figure of distributions draws."""
    for row in rows:
        if row.status == "done" and row.arrays and row.at["seed"] == 0:
            yield row, row.arrays


# ------------------------------------------------------------------------------------------------- the learning curve


def learning_curve(folder: Path) -> list[dict[str, float]]:
    """The learning curve of a run, thinned; empty for a task, which learns nothing.

    The loss with its chance and bound is the mean over at most `LOSSES` equal stretches of the log, each at its last
    step: a single line of the log is a few batches. kNN (a share) is as the monitor logged it, at most `MONITORED`
    times.

    Returns:
        Points ``{"step", "loss", "chance", "bound"}`` and ``{"step", "knn"}``, by step.
    """
    lines: list[dict[str, Any]] = [dict(line) for line in Run(folder).metrics()]
    logged = [line for line in lines if line.get("loss") is not None]
    count = min(LOSSES, len(logged))
    ends = [round(len(logged) * (i + 1) / count) for i in range(count)]
    points = [_stretch(logged[start:end]) for start, end in zip([0, *ends], ends, strict=False)]
    watched = [line for line in lines if line.get("monitor/knn20") is not None]
    last, most = len(watched) - 1, min(MONITORED, len(watched))
    looks = [watched[round(i * last / max(most - 1, 1))] for i in range(most)]
    points += [{"step": line["step"], "knn": float(line["monitor/knn20"])} for line in looks]
    return sorted(points, key=lambda point: point["step"])


def _stretch(lines: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    point = {"step": lines[-1]["step"]}
    for name in ("loss", "chance", "bound"):
        values = [line[name] for line in lines if line.get(name) is not None]
        if len(values) == len(lines):
            point[name] = float(np.mean(values))
    return point


# Measures of several papers' experiments.
PROBE = accuracy("probe", "linear probe, rate chosen on held-out rows", "probe", optional=True)
KNN = accuracy("knn", "kNN, k = 20", "knn20")
UNIFORMITY = geometry("uniformity", "uniformity", "−uniformity (t = 2) of test embeddings", sign=-1.0)
