"""The course of a set of cells: which comes next, how often one was tried, and what is told of it.

The same for every engine, which only says what came of an attempt:

    take ─▶ attempt ─┬▶ done, failed                    over
                     ├▶ busy: another process is at it  taken again after a while, until that one is done or gone
                     └▶ its process died or was stopped taken again, ``retries`` times; then it has failed
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence

from kontrast.experiments.cell import Cell
from kontrast.experiments.engines import Told
from kontrast.experiments.engines._attempt import Outcome

PAUSE = 1.0  # seconds before a cell that another process works on is looked at again


class Course:
    """``take`` a cell by its place in the list, then say what ``came`` of it, or that its process ``died``."""

    def __init__(self, cells: Sequence[Cell], told: Callable[[Told], None], retries: int) -> None:
        self.cells, self.told, self.retries = list(cells), told, retries
        self.deaths = [0] * len(self.cells)
        self.waited: set[int] = set()
        self.given_up: dict[int, str] = {}  # the error to be written, once nobody holds its folder
        self.ready: deque[int] = deque()
        self.busy: deque[tuple[float, int]] = deque()  # when to look again, the earliest first
        self.out: set[int] = set()
        for i, cell in enumerate(self.cells):
            if _is_done(cell):
                told(Told("already done", cell))
            else:
                self.ready.append(i)

    @property
    def over(self) -> bool:
        """Every cell is done or has failed."""
        return not (self.ready or self.busy or self.out)

    def take(self) -> int | None:
        """A cell to be attempted now; None if there is none, for now."""
        while self.ready or (self.busy and self.busy[0][0] <= time.monotonic()):
            i = self.ready.popleft() if self.ready else self.busy.popleft()[1]
            if _is_done(self.cells[i]):  # by somebody else, meanwhile
                self.told(Told("already done", self.cells[i]))
            elif i in self.given_up:
                self._give_up(i)
            else:
                self.out.add(i)
                return i
        return None

    def begins(self, i: int) -> None:
        """Its attempt has begun."""
        if i not in self.waited:  # else it may be as busy as before
            self.told(Told("begins", self.cells[i]))

    def came(self, i: int, outcome: Outcome) -> None:
        """What an attempt came to."""
        if outcome.what == "stopped":
            self.died(i, outcome.error)
            return
        self.out.remove(i)
        if outcome.what == "busy":
            self._wait(i)
        else:
            self.told(Told(outcome.what, self.cells[i], outcome.seconds, outcome.error))

    def died(self, i: int, how: str) -> None:
        """Its process ended before it did: it is taken again, or has failed."""
        self.out.remove(i)
        self.deaths[i] += 1
        if self.deaths[i] <= self.retries:
            self.told(Told("again", self.cells[i], error=f"its process {how}"))
            self.ready.appendleft(i)
        else:
            self.given_up[i] = f"its process {how}" + (f", {self.deaths[i]} times" if self.deaths[i] > 1 else "")
            self._give_up(i)

    def _give_up(self, i: int) -> None:
        if self.cells[i].fail(self.given_up[i]):
            self.told(Told("failed", self.cells[i], error=self.given_up[i]))
        else:  # another process is at it, and may yet get it done
            self._wait(i)

    def _wait(self, i: int) -> None:
        if i not in self.waited:
            self.told(Told("waits", self.cells[i]))
            self.waited.add(i)
        self.busy.append((time.monotonic() + PAUSE, i))


def _is_done(cell: Cell) -> bool:
    try:
        return cell.done
    except (OSError, ValueError):  # no folder, or a damaged run.json: the attempt fails with what to do about it
        return False
