r"""Checkpoints: everything that a run needs to resume (`State`), in files whose damage is always noticed.

A checkpoint has the weights, momentum network, queue with its pointer, bank (all in the method), the average of the
weights, optimiser, scale of the loss, the sums of the log's next line, the log itself (compressed), patience, and the
random states. The schedule, the sampler's position and all draws are functions of the step and need no state; the
random states are kept for whatever else may draw.

Only tensors and plain containers are stored, and only they are ever loaded. A file takes its place when it is complete
(`kontrast.files`), and ends with a digest, so that a bit that flips later is found:

    what torch.save writes, a zip archive | its comment: "kontrast sha256 " and SHA-256 of every byte before the digest

torch.load reads such a file. One without the comment (older than the digests) is not verified.

A run has two, the newest and the one before it: if the newest is damaged the run resumes from the other, and since
training is a function of the step, it ends the same.
"""

from __future__ import annotations

import hashlib
import io
import os
import random
import shutil
import struct
import sys
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch

from kontrast.files import NotRegularFile, open_regular, whole_file
from kontrast.methods import Method
from kontrast.train.averaging import Average
from kontrast.train.gradients import Precision
from kontrast.train.stopping import Patience

MARK = b"kontrast sha256 "
BYTES = hashlib.sha256().digest_size
END = struct.Struct("<4s16sH")  # of a zip archive: signature, its directory, length of the comment that follows
SIGNATURE = b"PK\x05\x06"
CHUNK = 1 << 22


class Damaged(ValueError):
    """A checkpoint that is not what was written, or another run's."""


def save(path: Path, state: Mapping[str, Any], *, previous: Path | None = None) -> None:
    """Write a checkpoint; leftovers of a write that was killed are removed.

    Args:
        path: The file.
        state: Tensors and plain containers.
        previous: Where the checkpoint that was there is kept. After a kill between the two renamings there is only
            that one, and `newest` finds it.

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
    """Read a checkpoint onto the CPU.

    Raises:
        Damaged: It is not what was written.
    """
    try:
        file = open_regular(path)
    except NotRegularFile as error:
        raise _damage(path, str(error)) from None
    with file:
        _verify(path, file)
        file.seek(0)
        try:
            state = torch.load(file, map_location="cpu", weights_only=True)
        except OSError:
            raise
        except Exception as error:
            reason = str(error).partition("\n")[0]
            raise _damage(path, f"it cannot be read as a checkpoint: {reason}") from error
    if not isinstance(state, dict):
        raise _damage(path, f"it holds {type(state).__name__}; expected a checkpoint of kontrast")
    return state


def newest(
    last: Path, previous: Path, mismatch: Callable[[dict[str, Any]], str] = lambda state: ""
) -> dict[str, Any] | None:
    """The state to resume from: the last checkpoint, or the one before if the last is damaged or missing.

    Args:
        last: The newest checkpoint. If it cannot be used, a line on standard error says so, and it is renamed to
            damaged.pt: the next checkpoint must not replace the good one.
        previous: The checkpoint before it.
        mismatch: Why a state is not this run's; an empty string if it is.

    Returns:
        The state; None if there is no checkpoint yet.

    Raises:
        Damaged: Neither can be used.
    """
    try:
        return _load_fitting(last, mismatch)
    except FileNotFoundError:
        problem = f"{last} is missing"
    except Damaged as error:
        if not previous.exists():
            raise
        problem = str(error).partition("; ")[0]
    try:
        state = _load_fitting(previous, mismatch)
    except FileNotFoundError:
        return None
    except Damaged as error:
        raise Damaged(f"{problem}, and {error}") from None
    if last.exists():
        last.replace(last.with_name("damaged.pt"))
    print(f"{problem}; resumes from {previous.name}, step {state.get('step')}", file=sys.stderr)
    return state


def _load_fitting(path: Path, mismatch: Callable[[dict[str, Any]], str]) -> dict[str, Any]:
    state = load(path)
    if why := mismatch(state):
        raise Damaged(
            f"{path} cannot be resumed from ({why}); if the data or the recipe have changed, put them back or choose "
            "another --out, else put back a copy of the file"
        )
    return state


def load_best(path: Path, recipe_hash: str, step: int | None = None) -> dict[str, Any]:
    """The weights of a recipe's run that were best in validation, at ``step`` if it is given.

    Raises:
        Damaged: The file is not what was written. There is one copy, and the last weights are no substitute.
    """
    try:
        state = load(path)
    except FileNotFoundError:
        raise _damage(path, "it is missing") from None
    if state.get("hash", recipe_hash) != recipe_hash:
        raise _damage(path, f"it is of another recipe, {state['hash']!r} and not {recipe_hash!r}")
    if step is not None and state.get("step") != step:
        raise _damage(path, f"it is of step {state.get('step')}, and {step} was the best")
    return state


def keep_only(last: Path, previous: Path) -> None:
    """Keep one checkpoint at the end of a run, when nothing is left to resume."""
    for file in (previous, last.with_name("damaged.pt")):
        if file.is_dir():
            shutil.rmtree(file, ignore_errors=True)
        else:
            file.unlink(missing_ok=True)


def _verify(path: Path, file: BinaryIO) -> None:
    """Compare the digest at the end with the content before it; a file without one passes."""
    size = file.seek(0, os.SEEK_END)
    if size >= END.size:
        file.seek(-END.size, os.SEEK_END)
        signature, _, comment = END.unpack(file.read(END.size))
        if signature == SIGNATURE and comment == 0:
            return
    remaining = size - BYTES
    file.seek(max(remaining - len(MARK), 0))
    if remaining < len(MARK) or file.read(len(MARK)) != MARK:
        raise _damage(path, f"its {size} bytes do not end with a digest, so it was cut short or is no checkpoint")
    file.seek(0)
    digest = hashlib.sha256()
    while part := file.read(min(CHUNK, remaining)):
        digest.update(part)
        remaining -= len(part)
    if digest.digest() != file.read(BYTES):
        raise _damage(path, "its content does not match its digest, so it has changed since it was written")


def _damage(path: Path, why: str) -> Damaged:
    return Damaged(
        f"{path} is damaged ({why}); put back a copy of it, or remove the folder {path.parent}, and the run is trained "
        "from the beginning"
    )


# ---------------------------------------------------------------------------------------------- what a checkpoint holds

FORMAT = 1
KEYS = {
    "format", "hash", "data", "step", "offset", "method", "optimiser", "precision", "patience", "sums", "stopped_early",
    "random",
}  # fmt: skip


@dataclass
class State:
    """A run at a step, to be captured in a checkpoint and restored from one."""

    method: Method
    optimiser: torch.optim.Optimizer
    precision: Precision
    patience: Patience
    step: int = 0
    sums: dict[str, float] = field(default_factory=dict)  # since the last line of the log
    stopped_early: bool = False
    fitted_at: int | None = None  # the step at which the training labels were found fitted
    average: Average | None = None  # of the weights, beside those that learn

    def why_stopped(self) -> str:
        """Why the run stopped early, in words."""
        if self.fitted_at is not None:
            return f"stopped: every training label is fitted at step {self.fitted_at}"
        return f"stopped early: no better validation since step {self.patience.best_step}"

    def capture(self, recipe_hash: str, data: str, offset: int, log: bytes | None = None) -> dict[str, Any]:
        """Tensors and plain values, for a checkpoint."""
        return {
            "format": FORMAT,
            "hash": recipe_hash,
            "data": data,
            "step": self.step,
            "offset": offset,
            "log": None if log is None else torch.frombuffer(bytearray(log), dtype=torch.uint8),
            "method": self.method.state_dict(),
            "average": None if self.average is None else self.average.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "precision": self.precision.state_dict(),
            "patience": self.patience.state_dict(),
            "sums": dict(self.sums),
            "stopped_early": self.stopped_early,
            "fitted_at": self.fitted_at,
            "random": random_states(),
        }

    def restore(self, state: dict[str, Any]) -> int:
        """Restore a checkpoint that has no `mismatch`; returns the offset of the log."""
        self.method.load_state_dict(state["method"])
        if self.average is not None:
            self.average.load_state_dict(state["average"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.precision.load_state_dict(state["precision"])
        self.patience = Patience(**{**state["patience"], "most": self.patience.most})
        self.step, self.sums, self.stopped_early = state["step"], dict(state["sums"]), state["stopped_early"]
        self.fitted_at = state.get("fitted_at")
        set_random_states(state["random"])
        return int(state["offset"])


def mismatch(state: dict[str, Any], recipe_hash: str, data: str) -> str:
    """Why a checkpoint's content is not this run's; empty if it is.

    >>> mismatch({"format": FORMAT, "hash": "a"}, "b", "c")
    "it is of another recipe, 'a' and not 'b'"
    """
    for key, expected, what in (("format", FORMAT, "version"), ("hash", recipe_hash, "recipe"), ("data", data, "data")):
        if key in state and state[key] != expected:
            other = "other data" if what == "data" else f"another {what}"
            return f"it is of {other}, {state[key]!r} and not {expected!r}"
    missing = sorted(KEYS - set(state))
    return f"it lacks {', '.join(missing)}" if missing else ""


def random_states() -> dict[str, Any]:
    """The random states of torch, numpy and Python, as plain containers."""
    numpy: Any = np.random.get_state(legacy=True)  # noqa: NPY002 (what others may draw from)
    states: dict[str, Any] = {
        "torch": torch.get_rng_state(),
        "numpy": [numpy[0], torch.from_numpy(np.asarray(numpy[1], dtype=np.int64)), *numpy[2:]],
        "python": random.getstate(),
    }
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state_all()
    return states


def set_random_states(states: dict[str, Any]) -> None:
    """Restore what `random_states` gave.

    >>> states, number = random_states(), random.random()
    >>> set_random_states(states)
    >>> random.random() == number
    True
    """
    torch.set_rng_state(states["torch"])
    name, keys, *rest = states["numpy"]
    np.random.set_state((name, keys.numpy().astype(np.uint32), *rest))  # noqa: NPY002
    version, numbers, gauss = states["python"]
    random.setstate((version, tuple(numbers), gauss))
    if "cuda" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(states["cuda"])


def log_of(state: dict[str, Any]) -> bytes | None:
    """The lines of the log before a checkpoint; None in checkpoints older than these lines."""
    packed = state.get("log")
    return None if packed is None else zlib.decompress(packed.numpy().tobytes())
