"""One attempt at a cell in this process, and what came of it as plain values that any wire carries."""

from __future__ import annotations

import gc
import os
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kontrast.experiments.cell import Cell

LOG = "log.txt"


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
    from kontrast.train.folder import Busy

    if threads is not None:
        torch.set_num_threads(threads)  # each time: the cell before may have had a number of its own
    began = time.monotonic()
    with printing_to(cell.path / LOG):
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
        _remove_if_empty(cell.path / LOG)
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
