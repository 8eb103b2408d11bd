"""Engines: who runs the cells. One a file; each has ``run(cells, told)``.

`local` runs them in processes of this machine, `ray` as tasks of a Ray cluster. Whatever the engine, a cell that is
done is left alone, one that another process works on is waited for, one that fails is told of and does not stop the
rest, and a worker that dies is replaced and its cell goes on from its last checkpoint. What a cell prints is in log.txt
of its folder.

>>> engine("local", jobs=2)
Local(jobs=2, threads=None, retries=2)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from kontrast.experiments.cell import Cell
from kontrast.registry import FAMILIES

FAMILY = FAMILIES["engine"]


@dataclass(frozen=True)
class Told:
    """An event: what happened to a cell.

    Every cell ends with exactly one of ``already done``, ``done`` and ``failed``.

    Attributes:
        what: ``already done``, ``begins``, ``waits`` (another process works on it; reported once), ``again`` (its
            worker died), ``done`` or ``failed``.
        cell: The cell.
        seconds: How long the attempt took.
        error: Why it failed.
    """

    what: str
    cell: Cell
    seconds: float = 0.0
    error: str = ""


class Engine(Protocol):
    """Runs cells; returns when each is done or has failed."""

    def run(self, cells: Sequence[Cell], told: Callable[[Told], None]) -> None:
        """Run every cell once.

        Args:
            cells: The cells.
            told: Called in this process whenever something happens to a cell.
        """


def engine(name: str, **options: Any) -> Engine:
    """The engine of this name, with its own options.

    Raises:
        ValueError: an unknown name or option; the error names the nearest one.
    """
    made: Engine = FAMILY.make(name, **options)
    return made
