"""Checkpoints that are whole or not there: written beside, flushed to the disk, and renamed.

A file that a kill or a full disk cuts short is never the checkpoint, and what was there before stays until the new one
is complete. Only tensors and plain containers are stored, and only they are ever loaded.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch


def write_atomically(path: Path, content: bytes) -> None:
    """The file at ``path`` is the old one or the new one, never a part of it."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with beside.open("wb") as file:
            file.write(content)
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


def write_json(path: Path, record: Mapping[str, Any]) -> None:
    """A JSON file, atomically; NaN and infinity, which JSON has not, become null."""
    write_atomically(path, (json.dumps(finite(record), indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode())


def finite(x: Any) -> Any:
    """The same record with None for what JSON cannot say.

    >>> finite({"loss": float("nan"), "of": [1.0, float("inf")]})
    {'loss': None, 'of': [1.0, None]}
    """
    if isinstance(x, Mapping):
        return {str(key): finite(value) for key, value in x.items()}
    if isinstance(x, list | tuple):
        return [finite(value) for value in x]
    return None if isinstance(x, float) and x - x != 0 else x


def save(path: Path, state: Mapping[str, Any]) -> None:
    """Writes a checkpoint; leftovers of a write that was killed are cleared away.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(Path(folder) / "last.pt", {"step": 7, "weight": torch.ones(2)})
    ...     load(Path(folder) / "last.pt")
    {'step': 7, 'weight': tensor([1., 1.])}
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.glob(f".{path.name}.*.part"):
        left.unlink(missing_ok=True)
    buffer = io.BytesIO()
    torch.save(dict(state), buffer)
    write_atomically(path, buffer.getvalue())


def load(path: Path) -> dict[str, Any]:
    """Reads a checkpoint onto the CPU; a damaged one is an error that names it."""
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except OSError:
        raise
    except Exception as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(
            f"{path} cannot be read as a checkpoint ({reason}); remove it, and the run starts from the beginning"
        ) from error
    if not isinstance(state, dict):
        raise ValueError(f"{path} holds {type(state).__name__}; expected a checkpoint of kontrast")
    return state
