"""A process that performs cells: ``python -m kontrast.experiments.engines._worker FD THREADS``.

It takes cells from the connection at file descriptor FD and answers each with its outcome, so torch is imported once.
None ends it. A connection that closes means that the driver is gone: then it stops as on SIGTERM, which saves the run
it is at; and if that takes too long, at once.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from multiprocessing.connection import Connection
from queue import SimpleQueue
from types import FrameType
from typing import Any

GRACE = 60.0  # seconds to finish a step and save


def main(fd: int, threads: int) -> int:
    """Performs what comes, until nothing does; the process's status."""
    for signum in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):  # Slurm sends its warning to every process
        signal.signal(signum, _stop)
    connection: Connection[Any, Any] = Connection(fd)
    try:
        sys.path[:], sys.argv[:] = connection.recv()  # the driver's: what it can import, and what was called
        cells: SimpleQueue[Any] = SimpleQueue()
        threading.Thread(target=_receive, args=(connection, cells), daemon=True).start()
        from kontrast.experiments.engines._attempt import attempt

        while (cell := cells.get()) is not None:
            outcome = attempt(cell, threads)
            connection.send(outcome)
            if outcome.what == "stopped":
                break
    except (KeyboardInterrupt, EOFError, OSError):  # asked to stop between two cells, or nobody is there to answer to
        return 128 + signal.SIGTERM
    return 0


def _receive(connection: Connection[Any, Any], cells: SimpleQueue[Any]) -> None:
    """Hands on what comes; if the driver is gone, stops the process."""
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


def _stop(signum: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt  # outside of the training loop, which listens itself, this is noted as interrupted


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
