"""Checkpoints that are whole or not there (`kontrast.files`).

Only tensors and plain containers are stored, and only they are ever loaded.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from kontrast.files import write_atomically


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
