"""metrics.jsonl: one line a record, appended and flushed; on resuming cut back to where the checkpoint stood.

So no line is lost that belongs to the checkpoint, and none comes twice.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kontrast.files import finite

WALL_CLOCK = ("time", "images_per_second", "waiting")
"""Fields that depend on the clock; all others are the same when a run is repeated."""


class Metrics:
    """The file of a run, open for appending from byte ``offset`` on.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     metrics = Metrics(Path(folder) / "metrics.jsonl", 0)
    ...     metrics.append({"step": 1, "loss": 2.5})
    ...     metrics.close()
    ...     read_metrics(Path(folder) / "metrics.jsonl")
    [{'step': 1, 'loss': 2.5}]
    """

    def __init__(self, path: Path, offset: int) -> None:
        size = path.stat().st_size if path.exists() else 0
        if size < offset:
            raise ValueError(
                f"{path} has {size} bytes, and the checkpoint was made when it had {offset}: lines are missing. "
                "Put the file back, or remove the run folder to begin anew"
            )
        self._file = path.open("ab")
        self._file.truncate(offset)
        self._file.seek(offset)

    def append(self, record: Mapping[str, Any]) -> None:
        """One line, handed to the system at once."""
        self._file.write((json.dumps(finite(record), allow_nan=False) + "\n").encode())
        self._file.flush()

    def sync(self) -> int:
        """Brings the lines to the disk; where the file ends, for the checkpoint."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return self._file.tell()

    def close(self) -> None:
        """No more lines."""
        self._file.close()


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Every record of a file; a last line that a kill cut short is left out."""
    lines = path.read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines[:-1] if line]
