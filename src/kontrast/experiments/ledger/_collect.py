"""From the run folders of a sweep to entries of a ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kontrast.experiments.baselines import Baseline
from kontrast.experiments.cell import Cell
from kontrast.experiments.experiment import Row
from kontrast.experiments.ledger._design import Design
from kontrast.experiments.ledger._entry import FORMAT, Entry, Origin, Packed, columns
from kontrast.files import finite

if TYPE_CHECKING:
    from kontrast.experiments.sweep import Sweep


def entries_of(sweep: Sweep) -> list[Entry]:
    """The finished cells of a sweep, and its baselines; only what lies in run folders, nothing from a ledger.

    Raises:
        ValueError: An array that the experiment keeps cannot be packed; the message names cell and array.
    """
    cells = zip(sweep.cells, sweep.folder_rows(), strict=True)
    found = [_entry(sweep.design, cell, row) for cell, row in cells if row.status == "done"]
    baselines = zip(sweep.baselines, sweep.baseline_rows(), strict=True)
    return found + [_entry(sweep.design, made.cell, row, made) for made, row in baselines if row.status == "done"]


def recipe_hash(cell: Cell) -> str:
    """Eight digits over everything that decides a cell, be it a recipe or a task.

    >>> from kontrast.experiments.cell import Task
    >>> len(recipe_hash(Cell({"seed": 0}, Task("a:b"))))
    8
    """
    return cell.does.folder.rpartition("-")[2]


def _entry(design: Design, cell: Cell, row: Row, baseline: Baseline | None = None) -> Entry:
    at = {axis: value for axis, value in row.at.items() if axis != "seed"}
    return Entry(
        format=FORMAT,
        experiment=design.experiment,
        preset=design.preset,
        settings=design.settings,
        baseline=None if baseline is None else baseline.name,
        at=at,
        seed=int(row.at["seed"] or 0),
        values=finite(dict(row.values)),
        curve=columns(row.curve),
        arrays={name: _packed(cell, name, x) for name, x in row.arrays.items()},
        origin=_origin(cell, row, recipe_hash(cell) if baseline is None else baseline.hash),
    )


def _packed(cell: Cell, name: str, x: Any) -> Packed:
    try:
        return Packed.of(x)
    except ValueError as error:
        said = str(error).partition("Value error, ")[2].partition(" [type=")[0] or str(error)
        raise ValueError(f"{cell.path}: the array {name!r} cannot be kept: {said}") from None


def _origin(cell: Cell, row: Row, decided_by: str) -> Origin:
    state = cell.state
    versions, machine = state.get("versions") or {}, state.get("machine") or {}
    return Origin(
        run=cell.path.name,
        recipe=decided_by,
        version=str(versions.get("kontrast", "unknown")),
        commit=versions.get("commit"),
        torch=versions.get("torch"),
        device=machine.get("device"),
        finished=state.get("finished"),
        seconds=row.seconds,
        data=state.get("data_file"),
    )
