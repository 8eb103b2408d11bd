"""What came of an experiment's cells, read from their folders.

A row has the measures, the small arrays that the experiment `keeps` for its figures, and the learning curve, thinned:
with these, tables, claims and charts need no folder, and a ledger (`kontrast.experiments.ledger`) can stand for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from kontrast.experiments.cell import Cell
from kontrast.experiments.experiment import ERROR, Measure, Row
from kontrast.files import RUN_AGAIN, read_json

LOSSES, MONITORED = 40, 20
"""How many points a thinned learning curve has at most: of the loss, and of the monitors."""

Keeps = Callable[[Path], Mapping[str, np.ndarray]]


def nothing_kept(folder: Path) -> dict[str, np.ndarray]:
    """No arrays: what an experiment without figures of distributions keeps."""
    return {}


def read(cells: Iterable[Cell], measures: Sequence[Measure], keeps: Keeps = nothing_kept) -> list[Row]:
    """A row a cell; those that are not done have no values.

    Args:
        cells: Of a sweep.
        measures: What is read off each.
        keeps: Gives the arrays that figures draw, see `kontrast.experiments.experiment.Experiment.keeps`.
    """
    return [_row(cell, measures, keeps) for cell in cells]


def _row(cell: Cell, measures: Sequence[Measure], keeps: Keeps) -> Row:
    if (trouble := cell.trouble) is not None:
        return Row(dict(cell.at), cell.path.name, "failed", error=trouble, path=cell.path)
    state = cell.state
    status = state.get("status", "missing")
    if status != "done":
        error = state.get("error") if status == "failed" else None
        return Row(dict(cell.at), cell.path.name, status, error=error, path=cell.path)
    try:
        values = {measure.name: measure.read(cell.path) for measure in measures}
        errors = {f"{ERROR}:{m.name}": m.error(cell.path) for m in measures if m.error is not None}
        values |= {name: error for name, error in errors.items() if error is not None}
        arrays, curve = dict(keeps(cell.path)), learning_curve(cell.path)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        why = f"{cell.path} cannot be read ({type(error).__name__}: {error}); remove the folder, and it is run again"
        return Row(dict(cell.at), cell.path.name, "failed", error=why, path=cell.path)
    seconds = _seconds(state)
    return Row(dict(cell.at), cell.path.name, status, values, None, seconds, cell.path, arrays, curve)


def _seconds(state: dict[str, Any]) -> float | None:
    """At work; of runs that do not say, from the beginning to the end."""
    if "seconds" in state:
        return float(state["seconds"])
    if "started" not in state or "finished" not in state:
        return None
    form = "%Y-%m-%dT%H:%M:%S%z"
    try:
        took = datetime.strptime(state["finished"], form) - datetime.strptime(state["started"], form)
    except ValueError:
        return None
    return took.total_seconds()


# --------------------------------------------------------------------------------------------- reading a run's folder


def result(folder: Path) -> dict[str, Any]:
    """result.json."""
    return read_json(folder / "result.json", RUN_AGAIN)


def accuracy(name: str, title: str, *protocols: str, error: bool = False, optional: bool = False) -> Measure:
    """The top-1 accuracy in percent, or the error, by the first of these protocols that the run has."""

    def field(folder: Path, key: str) -> float | None:
        records = {record["name"]: record for record in result(folder)["results"]}
        found: float | None = next((records[protocol].get(key) for protocol in protocols if protocol in records), None)
        return found

    def read(folder: Path) -> float | None:
        found = field(folder, "value")
        return None if found is None else 100 * (1 - found if error else found)

    def over_rows(folder: Path) -> float | None:
        found = field(folder, "error")
        return None if found is None else 100 * found

    told = f"{title}, {'error' if error else 'top-1'} (%)"
    return Measure(name, told, read, protocols=protocols, kind="accuracy", error=over_rows, optional=optional)


def geometry(name: str, line: str, title: str, *, of: str = "embeddings", sign: float = 1.0) -> Measure:
    """A line of the geometry of the embeddings or the features, by how its name begins."""

    def read(folder: Path) -> float | None:
        for record in result(folder)["geometry"][of]:
            if record["name"].startswith(line) and record["value"] is not None:
                return sign * float(record["value"])
        return None

    return Measure(name, title, read, digits=3, kind="geometry")


def simplex(name: str, field: str, title: str, *, of: str = "embeddings") -> Measure:
    """A scalar of how near the training rows are to a simplex."""

    def read(folder: Path) -> float | None:
        found = result(folder)["geometry"].get("simplex", {}).get(of, {}).get(field)
        return None if found is None else float(found)

    return Measure(name, title, read, digits=3, kind="geometry")


def value(name: str, title: str, digits: int = 3) -> Measure:
    """A number of result.json by its key."""

    def read(folder: Path) -> float | None:
        found = result(folder).get(name)
        return None if found is None else float(found)

    return Measure(name, title, read, digits=digits, kind="theory")


def analyses(rows: Iterable[Row]) -> Iterator[tuple[Row, Mapping[str, np.ndarray]]]:
    """The first seed's finished rows that have arrays, with them: what a figure of distributions draws."""
    for row in rows:
        if row.status == "done" and row.arrays and row.at["seed"] == 0:
            yield row, row.arrays


# ------------------------------------------------------------------------------------------------- the learning curve


def learning_curve(folder: Path) -> list[dict[str, float]]:
    """The learning curve of a run, thinned; empty for a task, which learns nothing.

    The loss with its chance and bound comes as the mean over at most `LOSSES` equal stretches of the log, each at its
    last step: a single line of the log is a few batches. kNN (a share) comes as the monitor logged it, at most
    `MONITORED` times.

    Returns:
        Points ``{"step", "loss", "chance", "bound"}`` and ``{"step", "knn"}``, by step.
    """
    from kontrast.train.metrics import read_metrics

    file = folder / "metrics.jsonl"
    if not file.exists():
        return []
    lines = read_metrics(file)
    logged = [line for line in lines if _is_finite(line.get("loss"))]
    count = min(LOSSES, len(logged))
    ends = [round(len(logged) * (i + 1) / count) for i in range(count)]
    found = [_stretch(logged[start:end]) for start, end in zip([0, *ends], ends, strict=False)]
    watched = [line for line in lines if _is_finite(line.get("monitor/knn20"))]
    last, most = len(watched) - 1, min(MONITORED, len(watched))
    kept = [watched[round(i * last / max(most - 1, 1))] for i in range(most)]
    found += [{"step": line["step"], "knn": float(line["monitor/knn20"])} for line in kept]
    return sorted(found, key=lambda point: point["step"])


def _stretch(lines: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    found = {"step": lines[-1]["step"]}
    for name in ("loss", "chance", "bound"):
        values = [line[name] for line in lines if _is_finite(line.get(name))]
        if len(values) == len(lines):
            found[name] = float(np.mean(values))
    return found


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and bool(np.isfinite(value))


# What several papers' experiments read alike.
PROBE = accuracy("probe", "linear probe, rate chosen on held-out rows", "probe", optional=True)
KNN = accuracy("knn", "kNN, k = 20", "knn20")
UNIFORMITY = geometry("uniformity", "uniformity", "−uniformity (t = 2) of test embeddings", sign=-1.0)
