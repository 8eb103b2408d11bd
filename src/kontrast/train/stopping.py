"""Why a run stops early: a signal (it saves first), a loss that is not finite, validation that no longer improves."""

from __future__ import annotations

import math
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from types import FrameType
from typing import Any

SIGNALS = [
    signal.Signals[name]
    for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2")
    if name in signal.Signals.__members__  # Windows has two of them
]
"""What asks a run to save and stop: SIGTERM, Ctrl-C, a closed terminal, and what Slurm sends before a time limit."""


class Stopped(Exception):
    """A signal asked to stop, and everything is saved.

    Args:
        signum: The number of the signal.
        step: The last step that was done.
    """

    def __init__(self, signum: int, step: int) -> None:
        super().__init__(
            f"stopped by {signal.Signals(signum).name} after step {step}; the same command continues there"
        )
        self.signum = signum


class NonFiniteLoss(ValueError):
    """The loss is infinite or not a number."""


class Signals:
    """``signum`` is the signal that asked to stop; None if there was none."""

    signum: int | None = None


@contextmanager
def listening() -> Iterator[Signals]:
    """Let the signals of `SIGNALS` set a flag instead of ending the process; a second Ctrl-C ends it at once.

    A signal that the process ignores stays ignored: under nohup, a closed terminal is no reason to stop.
    """
    signals = Signals()

    def receive(signum: int, frame: FrameType | None) -> None:
        if signals.signum is not None and signum == signal.SIGINT:
            raise KeyboardInterrupt
        signals.signum = signum

    always = ("SIGTERM", "SIGINT")
    to_catch = [s for s in SIGNALS if s.name in always or signal.getsignal(s) is not signal.SIG_IGN]
    try:
        before = {s: signal.signal(s, receive) for s in to_catch}
    except ValueError:  # not in the main thread, which alone receives signals
        yield signals
        return
    try:
        yield signals
    finally:
        for s, handler in before.items():
            signal.signal(s, handler)


def check_finite(value: float, *, step: int, lr: float, temperature: float | None, scalars: dict[str, float]) -> None:
    """Raise `NonFiniteLoss` with the likely cause if the loss is not finite.

    >>> check_finite(float("inf"), step=7, lr=30.0, temperature=0.1, scalars={})
    Traceback (most recent call last):
        ...
    kontrast.train.stopping.NonFiniteLoss: the loss is inf at step 7 (learning rate 30, temperature 0.1). Likely the ...
    """
    if math.isfinite(value):
        return
    at = f"learning rate {lr:g}" + ("" if temperature is None else f", temperature {temperature:g}")
    if step == 1:  # no step was taken with this rate
        cause = (
            "the loss or the data are wrong, not the rate: no weight has changed yet. Look at the method's loss, at "
            "the data's mean and std, and at encoder.pretrained"
        )
    elif any(not math.isfinite(x) for x in scalars.values()):
        cause = (
            "the embeddings themselves are no longer numbers: the learning rate is too high, or the weights diverged"
        )
    elif temperature is not None and temperature < 0.02:
        cause = "the temperature is very low and the learning rate too high for it"
    else:
        cause = "the learning rate is too high; warm it up (schedule=warmup-cosine) or lower it"
    raise NonFiniteLoss(
        f"the loss is {value} at step {step} ({at}). Likely {cause}. Earlier checkpoints are kept; a recipe with "
        "another learning rate or temperature is another run"
    )


@dataclass
class Patience:
    """Early stopping: the best validation so far, and how many came after it.

    >>> patience = Patience(2)
    >>> [patience.better(value) for value in (0.5, 0.6, 0.6, 0.55)], patience.over
    ([True, True, False, False], True)
    """

    most: int | None
    best: float = -math.inf
    best_step: int = 0
    waited: int = 0

    def better(self, value: float, step: int = 0) -> bool:
        """Whether this value is the best so far; counts the values that are not. Once it is over, none is."""
        if value > self.best and not self.over:
            self.best, self.best_step, self.waited = value, step, 0
            return True
        self.waited += 1
        return False

    @property
    def over(self) -> bool:
        """Whether it is time to stop."""
        return self.most is not None and self.waited >= self.most

    def state_dict(self) -> dict[str, Any]:
        """For a checkpoint."""
        return asdict(self)
