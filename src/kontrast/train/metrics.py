"""metrics.jsonl: one line a record, appended and flushed; on resuming cut back to where the checkpoint stood.

So no line is lost that belongs to the checkpoint, and none comes twice. The checkpoint has a copy of the lines before
it, and a file that does not begin with them (damaged, or gone) is put back from that.
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


class Metrics:
    """The file of a run, open for appending from byte ``offset`` on; ``lines`` are those that should stand before it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     metrics = Metrics(Path(folder) / "metrics.jsonl", 0)
    ...     metrics.append({"step": 1, "loss": 2.5})
    ...     metrics.close()
    ...     read_metrics(Path(folder) / "metrics.jsonl")
    [{'step': 1, 'loss': 2.5}]
    """

    def __init__(self, path: Path, offset: int, lines: bytes | None = None) -> None:
        seen = read_regular(path)[:offset] if path.exists() else b""
        if lines is not None and seen != lines:
            print(f"{path} is not as it was; its lines are put back from the checkpoint", file=sys.stderr)
            write_atomically(path, lines)
        elif len(seen) < offset:
            raise ValueError(
                f"{path} has {len(seen)} bytes, and the checkpoint was made when it had {offset}: lines are missing. "
                "Put the file back, or remove the run folder to begin anew"
            )
        self.path, self.offset = path, offset
        self._file = path.open("ab", buffering=0)  # a line that fails must not be tried again when the file is closed
        if path.stat().st_size != offset:
            self._file.truncate(offset)
        self._packer = zlib.compressobj(1)
        self._packed = bytearray(self._packer.compress(seen if lines is None else lines))

    def append(self, record: Mapping[str, Any]) -> None:
        """One line, handed to the system at once; of one for which there is no room, nothing stays."""
        line = (json.dumps(finite(record), allow_nan=False) + "\n").encode()
        left = memoryview(line)
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            with contextlib.suppress(OSError):
                self._file.truncate(self.offset)
            raise NotWritten(self.path, error) from error
        self.offset += len(line)
        self._packed += self._packer.compress(line)

    def sync(self) -> int:
        """Brings the lines to the disk; where the file ends, for the checkpoint."""
        os.fsync(self._file.fileno())
        return self.offset

    def packed(self) -> bytes:
        """All lines, compressed, for the checkpoint: packed as they came, so that a long log costs no more time."""
        return bytes(self._packed) + self._packer.copy().flush()

    def close(self) -> None:
        """No more lines."""
        self._file.close()


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Every record of a file; a last line that a kill cut short is left out. One that is damaged is named."""
    records = []
    for number, line in enumerate(read_regular(path).split(b"\n")[:-1], 1):
        try:
            record = json.loads(line) if line else None
            if not isinstance(record, dict | None):
                raise ValueError(f"it holds {type(record).__name__}, expected an object")
        except (ValueError, RecursionError) as error:
            raise ValueError(
                f"line {number} of {path} is damaged ({error}); if the run is not done, the same recipe again puts it "
                "back from the checkpoint, else put back a copy or remove the line"
            ) from error
        if record is not None:
            records.append(record)
    return records
