"""Everything a run is at a step: what a checkpoint holds, and how it is put back.

Weights, momentum network, queue with its pointer, bank (all in the method), optimiser, scale of the loss, the sums of
the log's next line, the log itself (packed), patience, and the random states. The schedule, the sampler's position and
all draws are functions of the step and need no state; the random states are kept for whatever else may draw.
"""

from __future__ import annotations

import random
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from kontrast.methods import Method
from kontrast.train.precision import Precision
from kontrast.train.stopping import Patience

FORMAT = 1
KEYS = {
    "format", "hash", "data", "step", "offset", "method", "optimiser", "precision", "patience", "sums", "stopped_early",
    "random",
}  # fmt: skip


@dataclass
class State:
    """A run at a step."""

    method: Method
    optimiser: torch.optim.Optimizer
    precision: Precision
    patience: Patience
    step: int = 0
    sums: dict[str, float] = field(default_factory=dict)  # since the last line of the log
    stopped_early: bool = False
    fitted_at: int | None = None  # the step at which the training labels were found fitted

    def why_stopped(self) -> str:
        """In words, if it stopped early."""
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
            "optimiser": self.optimiser.state_dict(),
            "precision": self.precision.state_dict(),
            "patience": self.patience.state_dict(),
            "sums": dict(self.sums),
            "stopped_early": self.stopped_early,
            "fitted_at": self.fitted_at,
            "random": random_states(),
        }

    def restore(self, saved: dict[str, Any]) -> int:
        """Puts a checkpoint back that is not `unfit`; the offset of the log comes with it."""
        self.method.load_state_dict(saved["method"])
        self.optimiser.load_state_dict(saved["optimiser"])
        self.precision.load_state_dict(saved["precision"])
        self.patience = Patience(**{**saved["patience"], "most": self.patience.most})
        self.step, self.sums, self.stopped_early = saved["step"], dict(saved["sums"]), saved["stopped_early"]
        self.fitted_at = saved.get("fitted_at")
        set_random_states(saved["random"])
        return int(saved["offset"])


def unfit(saved: dict[str, Any], recipe_hash: str, data: str) -> str:
    """Why a checkpoint's content is not this run's, empty if it is.

    >>> unfit({"format": FORMAT, "hash": "a"}, "b", "c")
    "it is of another recipe, 'a' and not 'b'"
    """
    for key, mine, what in (("format", FORMAT, "version"), ("hash", recipe_hash, "recipe"), ("data", data, "data")):
        if key in saved and saved[key] != mine:
            other = "other data" if what == "data" else f"another {what}"
            return f"it is of {other}, {saved[key]!r} and not {mine!r}"
    lacking = sorted(KEYS - set(saved))
    return f"it lacks {', '.join(lacking)}" if lacking else ""


def random_states() -> dict[str, Any]:
    """Torch's, numpy's and Python's."""
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
    """Puts back what `random_states` gave.

    >>> states, drawn = random_states(), random.random()
    >>> set_random_states(states)
    >>> random.random() == drawn
    True
    """
    torch.set_rng_state(states["torch"])
    name, keys, *rest = states["numpy"]
    np.random.set_state((name, keys.numpy().astype(np.uint32), *rest))  # noqa: NPY002
    version, numbers, gauss = states["python"]
    random.setstate((version, tuple(numbers), gauss))
    if "cuda" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(states["cuda"])


def log_of(saved: dict[str, Any]) -> bytes | None:
    """The lines of the log that stood before a checkpoint; None in one of before they were kept."""
    packed = saved.get("log")
    return None if packed is None else zlib.decompress(packed.numpy().tobytes())
