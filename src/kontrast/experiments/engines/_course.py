"""Attempts at cells, and the course of a set of cells: the same for every engine, which only runs the attempts.

take ─▶ attempt ─┬▶ done, failed                    the end
                 ├▶ busy: another process works on  taken again after a while, until that process is done or gone
                 └▶ its process died or was stopped taken again, ``retries`` times; then it has failed
"""

from __future__ import annotations

import gc
import os
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kontrast.experiments.cell import Cell
from kontrast.experiments.engines import Told
from kontrast.runs import Busy


@dataclass(frozen=True)
class Outcome:
    """``done``, ``already done``, ``failed``, ``busy`` (another is at it), ``stopped`` (by a signal; it is saved)."""

    what: str
    seconds: float = 0.0
    error: str = ""


def attempt(cell: Cell, threads: int | None = None) -> Outcome:
    """Performs the cell; whatever it raises becomes an outcome, and what it prints goes to its log."""
    import torch

    from kontrast.train import Stopped

    if threads is not None:
        torch.set_num_threads(threads)  # each time: the cell before may have had a number of its own
    began = time.monotonic()
    with printing_to(cell.run.log_file):
        try:
            what, error = "done" if cell.perform() else "already done", ""
        except Busy:
            what, error = "busy", ""
        except (Stopped, KeyboardInterrupt) as stopped:
            what, error = "stopped", str(stopped) or "stopped by a signal"
        except Exception as failure:
            traceback.print_exc()
            what, error = "failed", f"{type(failure).__name__}: {failure}"
    if what != "busy":  # else the log is another process's, which may yet write
        _remove_if_empty(cell.run.log_file)
    gc.collect()  # an encoder and its graph are circles: the next cell's memory should not stand on top of theirs
    return Outcome(what, time.monotonic() - began, error)


@contextmanager
def printing_to(path: Path) -> Iterator[None]:
    """What this process and its libraries print goes to the file's end."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        log = path.open("ab")
    except OSError:  # the cell itself will say why
        yield
        return
    kept = [os.dup(fd) for fd in (1, 2)]
    try:
        _flush()
        for fd in (1, 2):
            os.dup2(log.fileno(), fd)
        yield
    finally:
        _flush()
        for fd, before in zip((1, 2), kept, strict=True):
            os.dup2(before, fd)
            os.close(before)
        log.close()


def _remove_if_empty(path: Path) -> None:
    if path.exists() and not path.stat().st_size:
        path.unlink(missing_ok=True)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


# --------------------------------------------------------------------------------------------------------------- course


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
