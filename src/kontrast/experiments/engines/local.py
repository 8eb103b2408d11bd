"""Cells in processes of this machine.

``jobs`` processes each take a cell at a time; the machine's cores are divided among them. They are processes even if
there is one, so that a cell that runs out of memory or crashes takes nothing with it. Each is the leader of a group of
its own: Ctrl-C reaches the driver alone, which asks the others to save and stop, and the processes that a dead worker
leaves behind (data loaders) are ended with its group, so that nothing keeps its run folder locked.

A worker is ``python -m kontrast.experiments.engines.local FD THREADS``. It takes cells from the connection at file
descriptor FD and answers each with its outcome, so torch is imported once; None ends it. If the connection closes, the
driver is gone: then the worker stops as on SIGTERM, which saves its run; if that takes too long, at once.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from queue import SimpleQueue
from types import FrameType
from typing import Any

from kontrast.experiments.cell import Cell
from kontrast.experiments.engines import Course, Event, Outcome
from kontrast.openmp import wait_policy

MEMORY = 2 * 2**30  # bytes that a run of the small encoder and its libraries leave room in, by far
TICK = 0.1  # seconds between two looks at whether all processes live and nobody asked to stop


@dataclass(frozen=True)
class Local:
    """``jobs`` processes with ``threads`` each; left out, OMP_NUM_THREADS, or the cores divided among them.

    A cell whose process dies is tried again ``retries`` times. A signal (`kontrast.train.stopping.SIGNALS`) stops every
    process after a checkpoint; Ctrl-C then raises `KeyboardInterrupt`, any other `SystemExit` (128 + its number).
    """

    jobs: int = 1
    threads: int | None = None
    retries: int = 2

    def __post_init__(self) -> None:
        least = {"jobs": 1, "threads": 1, "retries": 0}
        for name, lowest in least.items():
            value = getattr(self, name)
            if value is not None and value < lowest:
                raise ValueError(f"{name}={value}: must be {lowest} or more.")

    def run(self, cells: Sequence[Cell], notify: Callable[[Event], None]) -> None:
        """Run every cell once; ``notify`` is called in this process as things happen."""
        from kontrast.train.stopping import listening

        course = Course(cells, notify, self.retries)
        threads = self.threads or _requested_threads() or max(1, cores() // self.jobs)
        workers: list[_Worker] = []
        try:
            with listening() as signals:
                while not course.over and signals.signum is None:
                    self._hand_out(course, workers, threads)
                    ready = wait([w.connection for w in workers], TICK)
                    for worker in [w for w in workers if w.connection in ready]:
                        outcome, i = worker.receive(), worker.cell
                        if outcome is not None and i is not None:
                            worker.cell = None
                            course.finish(i, outcome)
                    for worker in [w for w in workers if w.has_ended]:
                        workers.remove(worker)
                        worker.clear_up(patience=5.0)
                        if worker.cell is not None:
                            course.retry(worker.cell, worker.exit_reason)
                if signals.signum is None:
                    for worker in workers:
                        worker.dismiss()
        finally:
            _stop(workers)
        if signals.signum == signal.SIGINT:
            raise KeyboardInterrupt
        if signals.signum is not None:
            raise SystemExit(128 + signals.signum)

    def _hand_out(self, course: Course, workers: list[_Worker], threads: int) -> None:
        while len([w for w in workers if w.cell is not None]) < self.jobs:
            i = course.take()
            if i is None:
                return
            idle = [w for w in workers if w.cell is None]
            if not idle:
                idle = [_Worker(threads)]
                workers += idle
            course.begin(i)
            idle[0].give(i, course.cells[i])


def cores() -> int:
    """How many cores this process may use.

    >>> cores() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def default_jobs(cells: int, threads: int | None = None) -> int:
    """How many cells `kontrast reproduce` runs at a time, by default.

    On a CPU one a core (with ``threads`` or OMP_NUM_THREADS, one for so many cores): two runs of the small encoder with
    one thread each do more than one run with two, whose threads wait for each other (`benchmarks/training.py`). Where
    there is a GPU, one. The number counts all cells of an experiment, done or not: were it those that are left, the
    last ones would get more threads, and other bits.

    Args:
        cells: How many cells the experiment has.
        threads: Threads of each run, if that is fixed.

    Returns:
        At least 1, and at most ``cells`` and as many as have `MEMORY` bytes each of what is free now.

    >>> default_jobs(1)
    1
    >>> default_jobs(100, threads=cores())
    1
    """
    import torch

    from kontrast.train import pick_device
    from kontrast.train.memory import free_memory

    if pick_device("auto").type != "cpu":
        return 1
    free = free_memory(torch.device("cpu"))
    room = cells if free is None else free // MEMORY
    return max(1, min(cells, cores() // (threads or _requested_threads() or 1), room))


def _requested_threads() -> int | None:
    """The number of threads that the environment asks every process to keep to."""
    number = os.environ.get("OMP_NUM_THREADS", "")
    return int(number) if number.isdigit() and int(number) else None


class _Worker:
    """A process, the connection to it, and the cell it is at (its place in the course), if it is at one."""

    def __init__(self, threads: int) -> None:
        ours, theirs = Pipe()
        self.connection: Connection[Any, Any] = ours
        self.cell: int | None = None
        self.is_leaving = False
        # By its address, not by multiprocessing: that imports the caller's main module again, and needs a guard in it.
        command = [sys.executable, "-m", __name__, str(theirs.fileno()), str(threads)]
        self.process = subprocess.Popen(
            command,
            pass_fds=[theirs.fileno()],
            # Read when torch loads:
            env={**os.environ, "OMP_NUM_THREADS": str(threads), **wait_policy(os.environ)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()
        self._send((sys.path, sys.argv))

    def give(self, i: int, cell: Cell) -> None:
        self.cell = i
        self._send(cell)

    def dismiss(self) -> None:
        self._send(None)

    def _send(self, what: Any) -> None:
        with contextlib.suppress(OSError):  # it died: found out when its end is looked for
            self.connection.send(what)

    def receive(self) -> Outcome | None:
        """The outcome of its cell; None if the process died."""
        try:
            outcome: Outcome = self.connection.recv()
        except (EOFError, OSError):
            self.is_leaving = True
            return None
        self.is_leaving = outcome.what == "stopped"
        return outcome

    @property
    def has_ended(self) -> bool:
        # Not by its connection alone: a process that it forked may hold that open.
        return self.is_leaving or (self.process.poll() is not None and not self.connection.poll())

    @property
    def exit_reason(self) -> str:
        code = self.process.returncode
        return f"died with signal {-code}" if code < 0 else f"ended with status {code}"

    def clear_up(self, patience: float = 0.0) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(patience)  # how it ends by itself is what is reported
        until = time.monotonic() + 5.0
        with contextlib.suppress(ProcessLookupError):  # nobody is left in its group
            while time.monotonic() < until:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.poll()
                time.sleep(0.01)
        self.process.wait()
        self.connection.close()


def _stop(workers: list[_Worker]) -> None:
    """End every process: those at a cell save first, in the time they have."""
    for worker in workers:
        if worker.cell is not None:
            worker.process.terminate()
        worker.connection.close()
    until = time.monotonic() + GRACE
    try:
        for worker in workers:
            with contextlib.suppress(subprocess.TimeoutExpired):
                worker.process.wait(max(0.0, until - time.monotonic()))
    finally:  # also on a second Ctrl-C
        for worker in workers:
            worker.clear_up()


# --------------------------------------------------------------------------------------------------- the worker process


GRACE = 60.0  # seconds to finish a step and save


def main(fd: int, threads: int) -> int:
    """Perform the cells that are sent, until None is; returns the exit status of the process."""
    for signum in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):  # Slurm sends its warning to every process
        signal.signal(signum, _interrupt)
    _share_priority()
    connection: Connection[Any, Any] = Connection(fd)
    try:
        sys.path[:], sys.argv[:] = connection.recv()  # the driver's: what it can import, and what was called
        cells: SimpleQueue[Any] = SimpleQueue()
        threading.Thread(target=_receive, args=(connection, cells), daemon=True).start()
        from kontrast.experiments.engines import attempt

        while (cell := cells.get()) is not None:
            outcome = attempt(cell, threads)
            connection.send(outcome)
            if outcome.what == "stopped":
                break
    except (KeyboardInterrupt, EOFError, OSError):  # asked to stop between two cells, or nobody is there to answer to
        return 128 + signal.SIGTERM
    return 0


def _share_priority() -> None:
    """Stand back as far as the driver does.

    A worker is a session of its own, and Linux may share the CPU among sessions first (autogroup): then its nice value
    counts only among its own processes, unless the session has it too.
    """
    with contextlib.suppress(OSError):  # other systems have no such file
        Path("/proc/self/autogroup").write_text(str(os.nice(0)))


def _receive(connection: Connection[Any, Any], cells: SimpleQueue[Any]) -> None:
    """Pass on the cells that are sent; if the driver is gone, stop the process."""
    try:
        while (cell := connection.recv()) is not None:
            cells.put(cell)
        cells.put(None)
    except (EOFError, OSError):
        main_thread = threading.main_thread().ident
        assert main_thread is not None
        signal.pthread_kill(main_thread, signal.SIGTERM)  # to that thread: waiting for a cell, it hears no other's
        cells.put(None)  # should the signal come at a moment when what it raises is lost (while a module loads, say)
        time.sleep(GRACE)
        os.killpg(0, signal.SIGKILL)  # its own group: the processes that load its data too


def _interrupt(signum: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt  # outside of the training loop, which listens itself, this is noted as interrupted


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
