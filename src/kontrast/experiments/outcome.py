"""What came of an experiment's cells, read from their folders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from kontrast.experiments.cell import Cell
from kontrast.experiments.experiment import Measure, Row
from kontrast.files import RUN_AGAIN, read_json, read_npz


def read(cells: Iterable[Cell], measures: Sequence[Measure]) -> list[Row]:
    """A row a cell; those that are not done have no values."""
    return [_row(cell, measures) for cell in cells]


def _row(cell: Cell, measures: Sequence[Measure]) -> Row:
    if (trouble := cell.trouble) is not None:
        return Row(dict(cell.at), cell.path.name, "failed", error=trouble, path=cell.path)
    state = cell.state
    status = state.get("status", "missing")
    if status != "done":
        error = state.get("error") if status == "failed" else None
        return Row(dict(cell.at), cell.path.name, status, error=error, path=cell.path)
    try:
        values = {measure.name: measure.read(cell.path) for measure in measures}
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        why = f"{cell.path} cannot be read ({type(error).__name__}: {error}); remove the folder, and it is run again"
        return Row(dict(cell.at), cell.path.name, "failed", error=why, path=cell.path)
    return Row(dict(cell.at), cell.path.name, status, values, seconds=_seconds(state), path=cell.path)


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


def accuracy(name: str, title: str, *protocols: str, error: bool = False) -> Measure:
    """The top-1 accuracy in percent, or the error, by the first of these protocols that the run has."""

    def read(folder: Path) -> float | None:
        values = {record["name"]: record["value"] for record in result(folder)["results"]}
        found = next((values[protocol] for protocol in protocols if protocol in values), None)
        return None if found is None else 100 * (1 - found if error else found)

    return Measure(name, f"{title}, {'error' if error else 'top-1'} (%)", read, protocols=protocols)


def geometry(name: str, line: str, title: str, *, of: str = "embeddings", sign: float = 1.0) -> Measure:
    """A line of the geometry of the embeddings or the features, by how its name begins."""

    def read(folder: Path) -> float | None:
        for record in result(folder)["geometry"][of]:
            if record["name"].startswith(line) and record["value"] is not None:
                return sign * float(record["value"])
        return None

    return Measure(name, title, read, digits=3)


def simplex(name: str, field: str, title: str, *, of: str = "embeddings") -> Measure:
    """A scalar of how near the training rows are to a simplex."""

    def read(folder: Path) -> float | None:
        found = result(folder)["geometry"].get("simplex", {}).get(of, {}).get(field)
        return None if found is None else float(found)

    return Measure(name, title, read, digits=3)


def value(name: str, title: str, digits: int = 3) -> Measure:
    """A number of result.json by its key."""

    def read(folder: Path) -> float | None:
        found = result(folder).get(name)
        return None if found is None else float(found)

    return Measure(name, title, read, digits=digits)


def analyses(rows: Iterable[Row]) -> Iterator[tuple[Row, dict[str, np.ndarray]]]:
    """The first seed's finished rows, each with the arrays of its analysis: what a figure of distributions draws."""
    for row in rows:
        if row.status == "done" and row.path is not None and row.at["seed"] == 0:
            yield row, read_npz(row.path / "analysis.npz", RUN_AGAIN)


# What several papers' experiments read alike.
KNN = accuracy("knn", "kNN, k = 20", "knn20")
UNIFORMITY = geometry("uniformity", "uniformity", "−uniformity (t = 2) of test embeddings", sign=-1.0)
