"""Kills its own process by SIGKILL at a chosen moment of writing a file. Python loads this file by its name.

The variable KONTRAST_STRIKE holds JSON: {"files": a pattern, "point": …, "count": k, "delay": seconds, "log": a path}.
At the k-th file that fits the pattern and comes to the point, a line goes to the log and the process dies; of several
processes (two drivers and their workers) only the first does: KONTRAST_STRIKES is the length of the log before it:

    opening     before the file is made
    writing     up to ``delay`` seconds after it was opened to be written
    flushing    all is written, and nothing brought to the disk
    renaming    before it is renamed
    renamed     it is, and the folder not yet brought to the disk

What the program calls is heard of by Python's audit events (`open`, `os.rename`), and `os.fsync` is wrapped, for it has
none; nothing of the program is touched.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
import time
from typing import Any


class Strike:
    """Waits for its moment."""

    def __init__(self, files: str, point: str, count: int, delay: float, log: str) -> None:
        self.files, self.point, self.left, self.delay = re.compile(files), point, count, delay
        self.log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.before = os.environ["KONTRAST_STRIKES"]
        self.process, self.flush, self.renamed = os.getpid(), os.fsync, ""
        os.fsync = self.fsync
        sys.addaudithook(self.heard)

    def comes(self, point: str, path: str) -> None:
        """A file has come to a point: is it the one?"""
        if point != self.point or not self.files.search(path) or os.getpid() != self.process:
            return
        self.left -= 1
        if self.left == 0:
            if point == "writing":
                threading.Thread(target=self.later, args=(path,), daemon=True).start()
            else:
                self.die(path)

    def later(self, path: str) -> None:
        """After the delay."""
        time.sleep(self.delay)
        self.die(path)

    def die(self, path: str) -> None:
        """The end of this process, unless another has had its own."""
        if str(os.fstat(self.log).st_size) == self.before:
            hit = {"point": self.point, "file": os.path.basename(path), "pid": os.getpid()}
            os.write(self.log, (json.dumps(hit) + "\n").encode())
            os.kill(os.getpid(), signal.SIGKILL)

    def heard(self, event: str, seen: tuple[Any, ...]) -> None:
        """Every event of the interpreter comes here; few concern us."""
        if event == "open" and isinstance(seen[0], str | os.PathLike) and seen[2] & (os.O_WRONLY | os.O_RDWR):
            path = os.fspath(seen[0])
            if isinstance(path, str):
                self.comes("opening", path)
                self.comes("writing", path)
        elif event == "os.rename":
            self.comes("renaming", os.fspath(seen[1]))
            self.renamed = os.path.realpath(seen[1])

    def fsync(self, fd: Any) -> None:
        """In place of `os.fsync`: of a file, or of the folder in which one was just renamed."""
        path = os.path.realpath(f"/proc/self/fd/{fd if isinstance(fd, int) else fd.fileno()}")
        if os.path.isdir(path):
            if os.path.dirname(self.renamed) == path:
                self.comes("renamed", self.renamed)
        else:
            self.comes("flushing", path)
        self.flush(fd)


if asked := os.environ.get("KONTRAST_STRIKE"):
    Strike(**json.loads(asked))
