"""Files that are whole or not there, and JSON as the standard has it.

A file is written beside its place, flushed to the disk, and renamed: what a kill or a full disk cuts short is never the
file, and what was there before stays until the new one is complete.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, which takes the place of the one at ``path`` when all is written."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with beside.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the renaming itself
    finally:
        os.close(folder)


def write_atomically(path: Path, content: bytes) -> None:
    """The file at ``path`` is the old one or the new one, never a part of it."""
    with whole_file(path) as file:
        file.write(content)


def write_json(path: Path, record: Mapping[str, Any]) -> None:
    """A JSON file, atomically."""
    write_atomically(path, (dump(record) + "\n").encode())


def dump(record: Any) -> str:
    """JSON as the standard has it: NaN and infinity become null."""
    return json.dumps(finite(record), indent=2, ensure_ascii=False, allow_nan=False)


def finite(x: Any) -> Any:
    """The same record with None for what JSON cannot say.

    >>> finite({"loss": float("nan"), "of": [1.0, float("inf")]})
    {'loss': None, 'of': [1.0, None]}
    """
    if isinstance(x, Mapping):
        return {str(key): finite(value) for key, value in x.items()}
    if isinstance(x, list | tuple):
        return [finite(value) for value in x]
    return None if isinstance(x, float) and not math.isfinite(x) else x
