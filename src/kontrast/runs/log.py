"""metrics.jsonl while a run writes it: one record per line, appended and flushed, cut back when the run resumes.

On resume the file is cut to the length that it had at the checkpoint, so no line is lost and none comes twice. The
checkpoint holds a compressed copy of the lines before it; a file that does not start with them (damaged, or gone) is
restored from that copy. `kontrast.runs.Run.metrics` reads the file.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kontrast.files import NotWritten, finite, read_regular, write_atomically

WALL_CLOCK = ("time", "images_per_second", "waiting")
"""Fields that depend on the clock; all others are the same when a run is repeated."""


class MetricsLog:
    """The open metrics.jsonl of a run.

    Args:
        path: The file.
        offset: Its length at the checkpoint, in bytes; what follows is cut off.
        lines: The content before ``offset`` by the checkpoint; None for checkpoints that do not have it.

    Raises:
        ValueError: The file is shorter than ``offset``, and the checkpoint has no copy of its lines.

    >>> import tempfile
    >>> from kontrast.runs.reading import read_metrics_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = MetricsLog(Path(folder) / "metrics.jsonl", 0)
    ...     log.append({"step": 1, "loss": 2.5})
    ...     log.close()
    ...     read_metrics_file(Path(folder) / "metrics.jsonl")
    [{'step': 1, 'loss': 2.5}]
    """

    def __init__(self, path: Path, offset: int, lines: bytes | None = None) -> None:
        content = read_regular(path)[:offset] if path.exists() else b""
        if lines is not None and content != lines:
            print(f"{path} has changed; its lines are restored from the checkpoint", file=sys.stderr)
            write_atomically(path, lines)
        elif len(content) < offset:
            raise ValueError(
                f"{path} has {len(content)} bytes, and the checkpoint was made when it had {offset}: lines are "
                "missing. Put the file back, or remove the run folder to start again"
            )
        self.path, self.offset = path, offset
        self._file = path.open("ab", buffering=0)  # a line that fails must not be tried again when the file is closed
        if path.stat().st_size != offset:
            self._file.truncate(offset)
        self._packer = zlib.compressobj(1)
        self._packed = bytearray(self._packer.compress(content if lines is None else lines))

    def append(self, record: Mapping[str, Any]) -> None:
        """Write one line at once.

        Args:
            record: The values by name.

        Raises:
            kontrast.files.NotWritten: The disk is full; nothing of the line is left.
        """
        line = (json.dumps(finite(record), allow_nan=False) + "\n").encode()
        unwritten = memoryview(line)
        try:
            while unwritten:
                unwritten = unwritten[self._file.write(unwritten) :]
        except OSError as error:
            with contextlib.suppress(OSError):
                self._file.truncate(self.offset)
            raise NotWritten(self.path, error) from error
        self.offset += len(line)
        self._packed += self._packer.compress(line)

    def sync(self) -> int:
        """Flush the lines to the disk; returns the length of the file, for the checkpoint."""
        os.fsync(self._file.fileno())
        return self.offset

    def packed(self) -> bytes:
        """All lines, compressed as they came, for the checkpoint: a long log costs no more time than a short one."""
        return bytes(self._packed) + self._packer.copy().flush()

    def close(self) -> None:
        self._file.close()
