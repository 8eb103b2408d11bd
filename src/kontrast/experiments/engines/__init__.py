"""Engines: who runs the cells. One a file; each has ``run(cells, notify)``.

`local` runs them in processes of this machine, `ray` as tasks of a Ray cluster. Whatever the engine, a cell that is
done is left alone, one that another process works on is waited for, one that fails is reported and does not stop the
rest, and a worker that dies is replaced and its cell goes on from its last checkpoint. What a cell prints is in log.txt
of its folder.

>>> engine("local", jobs=2)
Local(jobs=2, threads=None, retries=2)
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
from typing import Any, Protocol

from kontrast.experiments.cell import Cell
from kontrast.registry import FAMILIES
from kontrast.runs import Busy

FAMILY = FAMILIES["engine"]


@dataclass(frozen=True)
class Event:
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

    def run(self, cells: Sequence[Cell], notify: Callable[[Event], None]) -> None:
        """Run every cell once.

        Args:
            cells: The cells.
            notify: Called in this process whenever something happens to a cell.
        """


def engine(name: str, **options: Any) -> Engine:
    """The engine of this name, with its own options.

    Raises:
        ValueError: an unknown name or option; the error names the nearest one.
    """
    result: Engine = FAMILY.make(name, **options)
    return result


@dataclass(frozen=True)
class Outcome:
    """``done``, ``already done``, ``failed``, ``busy`` (another is at it), ``stopped`` (by a signal; it is saved)."""

    what: str
    seconds: float = 0.0
    error: str = ""


def attempt(cell: Cell, threads: int | None = None) -> Outcome:
    """Perform the cell; whatever it raises becomes an outcome, and what it prints goes to its log."""
    import torch

    from kontrast.train import Stopped

    if threads is not None:
        torch.set_num_threads(threads)  # each time: the cell before may have had a number of its own
    start = time.monotonic()
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
    return Outcome(what, time.monotonic() - start, error)


@contextmanager
def printing_to(path: Path) -> Iterator[None]:
    """Append what this process and its libraries print to a file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        log = path.open("ab")
    except OSError:  # the cell itself will say why
        yield
        return
    streams = [os.dup(fd) for fd in (1, 2)]
    try:
        _flush()
        for fd in (1, 2):
            os.dup2(log.fileno(), fd)
        yield
    finally:
        _flush()
        for fd, before in zip((1, 2), streams, strict=True):
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
    """Which cell is next: `take` one by its place in the list, `begin` it, then `finish` it, or `retry` it."""

    def __init__(self, cells: Sequence[Cell], notify: Callable[[Event], None], retries: int) -> None:
        self.cells, self.notify, self.retries = list(cells), notify, retries
        self.deaths = [0] * len(self.cells)
        self.waiting: set[int] = set()  # reported as busy
        self.final_errors: dict[int, str] = {}  # the error to be written, once nobody holds its folder
        self.ready: deque[int] = deque()
        self.busy: deque[tuple[float, int]] = deque()  # when to look again, the earliest first
        self.running: set[int] = set()
        for i, cell in enumerate(self.cells):
            if _is_done(cell):
                notify(Event("already done", cell))
            else:
                self.ready.append(i)

    @property
    def over(self) -> bool:
        """Whether every cell is done or has failed."""
        return not (self.ready or self.busy or self.running)

    def take(self) -> int | None:
        """The place of a cell to attempt now; None if there is none at present."""
        while self.ready or (self.busy and self.busy[0][0] <= time.monotonic()):
            i = self.ready.popleft() if self.ready else self.busy.popleft()[1]
            if _is_done(self.cells[i]):  # by somebody else, meanwhile
                self.notify(Event("already done", self.cells[i]))
            elif i in self.final_errors:
                self._give_up(i)
            else:
                self.running.add(i)
                return i
        return None

    def begin(self, i: int) -> None:
        """Report that its attempt begins."""
        if i not in self.waiting:  # else it may be as busy as before
            self.notify(Event("begins", self.cells[i]))

    def finish(self, i: int, outcome: Outcome) -> None:
        """Record the outcome of an attempt."""
        if outcome.what == "stopped":
            self.retry(i, outcome.error)
            return
        self.running.remove(i)
        if outcome.what == "busy":
            self._wait(i)
        else:
            self.notify(Event(outcome.what, self.cells[i], outcome.seconds, outcome.error))

    def retry(self, i: int, how: str) -> None:
        """Take a cell again whose process ended before it did; after ``retries`` times it has failed."""
        self.running.remove(i)
        self.deaths[i] += 1
        if self.deaths[i] <= self.retries:
            self.notify(Event("again", self.cells[i], error=f"its process {how}"))
            self.ready.appendleft(i)
        else:
            self.final_errors[i] = f"its process {how}" + (f", {self.deaths[i]} times" if self.deaths[i] > 1 else "")
            self._give_up(i)

    def _give_up(self, i: int) -> None:
        if self.cells[i].fail(self.final_errors[i]):
            self.notify(Event("failed", self.cells[i], error=self.final_errors[i]))
        else:  # another process is at it, and may yet get it done
            self._wait(i)

    def _wait(self, i: int) -> None:
        if i not in self.waiting:
            self.notify(Event("waits", self.cells[i]))
            self.waiting.add(i)
        self.busy.append((time.monotonic() + PAUSE, i))


def _is_done(cell: Cell) -> bool:
    try:
        return cell.done
    except (OSError, ValueError):  # no folder, or a damaged run.json: the attempt fails with what to do about it
        return False
