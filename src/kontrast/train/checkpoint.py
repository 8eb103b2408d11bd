r"""Checkpoints that are whole, or known not to be.

Only tensors and plain containers are stored, and only they are ever loaded. A file takes its place when it is complete
(`kontrast.files`), and ends with a digest, so that a bit that flips later is found:

    what torch.save writes, a zip archive | its comment: "kontrast sha256 " and SHA-256 of every byte before the digest

It stays a file that torch.load reads. One without the comment (of before there were digests) is taken as it is.

A run has two, the newest and the one before it: where the newest is damaged the other is gone on from, and since what
is trained is a function of the step, the run ends the same.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import struct
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import torch

from kontrast.files import NoFile, open_regular, whole_file

MARK = b"kontrast sha256 "
BYTES = hashlib.sha256().digest_size
END = struct.Struct("<4s16sH")  # of a zip archive: signature, its directory, length of the comment that follows
SIGNATURE = b"PK\x05\x06"
CHUNK = 1 << 22


class Damaged(ValueError):
    """A file that is not what was written."""


def save(path: Path, state: Mapping[str, Any], *, previous: Path | None = None) -> None:
    """Writes a checkpoint; leftovers of a write that was killed are cleared away.

    The one that was there stays as ``previous``, if that is given. Killed between the two renamings there is only that
    one, and `newest` finds it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(Path(folder) / "last.pt", {"step": 7, "weight": torch.ones(2)})
    ...     load(Path(folder) / "last.pt")
    {'step': 7, 'weight': tensor([1., 1.])}
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    torch.save(dict(state), buffer)
    buffer.seek(-2, os.SEEK_END)  # the archive ends with the length of its comment
    buffer.write(struct.pack("<H", len(MARK) + BYTES) + MARK)
    buffer.write(hashlib.sha256(buffer.getbuffer()).digest())
    with whole_file(path, previous=previous) as file:
        file.write(buffer.getbuffer())


def load(path: Path) -> dict[str, Any]:
    """Reads a checkpoint onto the CPU; one that is not what was written is `Damaged`, an error that names it."""
    try:
        file = open_regular(path)
    except NoFile as error:
        raise _damaged(path, str(error)) from None
    with file:
        _verify(path, file)
        file.seek(0)
        try:
            state = torch.load(file, map_location="cpu", weights_only=True)
        except OSError:
            raise
        except Exception as error:
            reason = str(error).partition("\n")[0]
            raise _damaged(path, f"it cannot be read as a checkpoint: {reason}") from error
    if not isinstance(state, dict):
        raise _damaged(path, f"it holds {type(state).__name__}; expected a checkpoint of kontrast")
    return state


def newest(
    last: Path, previous: Path, unfit: Callable[[dict[str, Any]], str] = lambda state: ""
) -> dict[str, Any] | None:
    """The state to go on from, None if there is none yet: the last, or if that is damaged or gone, the one before.

    ``unfit`` says of a state why it is none of this run's, if so.

    That the last could not be used is said on stderr, and it is set aside as damaged.pt: the next one that is written
    must not push the good one out for it.
    """
    try:
        return _fitting(last, unfit)
    except FileNotFoundError:
        seen = f"{last} is missing"
    except Damaged as error:
        if not previous.exists():
            raise
        seen = str(error).partition("; ")[0]
    try:
        state = _fitting(previous, unfit)
    except FileNotFoundError:
        return None
    except Damaged as error:
        raise Damaged(f"{seen}, and {error}") from None
    if last.exists():
        last.replace(last.with_name("damaged.pt"))
    print(f"{seen}; goes on from {previous.name}, step {state.get('step')}", file=sys.stderr)
    return state


def _fitting(path: Path, unfit: Callable[[dict[str, Any]], str]) -> dict[str, Any]:
    state = load(path)
    if why := unfit(state):
        raise Damaged(
            f"{path} cannot be gone on from ({why}); if the data or the recipe have changed, put them back or choose "
            "another --out, else put back a copy of the file"
        )
    return state


def load_best(path: Path, recipe_hash: str, step: int | None = None) -> dict[str, Any]:
    """The weights that were best in validation, at ``step`` if it is given, of a recipe's run.

    There is one copy, and without it the last are no substitute.
    """
    try:
        state = load(path)
    except FileNotFoundError:
        raise _damaged(path, "it is gone") from None
    if state.get("hash", recipe_hash) != recipe_hash:
        raise _damaged(path, f"it is of another recipe, {state['hash']!r} and not {recipe_hash!r}")
    if step is not None and state.get("step") != step:
        raise _damaged(path, f"it is of step {state.get('step')}, and {step} was the best")
    return state


def keep_only(last: Path, previous: Path) -> None:
    """At the end of a run: nothing will be gone on from, so one checkpoint is enough."""
    for file in (previous, last.with_name("damaged.pt")):
        if file.is_dir():
            shutil.rmtree(file, ignore_errors=True)
        else:
            file.unlink(missing_ok=True)


def _verify(path: Path, file: BinaryIO) -> None:
    """That the digest at the end is that of what stands before it; a file without one passes."""
    size = file.seek(0, os.SEEK_END)
    if size >= END.size:
        file.seek(-END.size, os.SEEK_END)
        signature, _, comment = END.unpack(file.read(END.size))
        if signature == SIGNATURE and comment == 0:
            return
    left = size - BYTES
    file.seek(max(left - len(MARK), 0))
    if left < len(MARK) or file.read(len(MARK)) != MARK:
        raise _damaged(path, f"its {size} bytes do not end with a digest, so it was cut short or is no checkpoint")
    file.seek(0)
    seen = hashlib.sha256()
    while part := file.read(min(CHUNK, left)):
        seen.update(part)
        left -= len(part)
    if seen.digest() != file.read(BYTES):
        raise _damaged(path, "its content does not match its digest, so it has changed since it was written")


def _damaged(path: Path, why: str) -> Damaged:
    return Damaged(
        f"{path} is damaged ({why}); put back a copy of it, or remove the folder {path.parent}, and the run is trained "
        "from the beginning"
    )
