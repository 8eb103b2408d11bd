"""The base of the schedules: pure functions of the step."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kontrast.checks import whole_number


@dataclass(frozen=True, kw_only=True)
class Schedule(ABC):
    """``schedule(step)`` is the factor on the base learning rate at that step, counted from 0.

    From ``total_steps`` on it stays at its last value.

    Args:
        total_steps: Steps of the run.
        steps_per_epoch: Steps of an epoch.

    Raises:
        ValueError: A number is outside its range.
    """

    total_steps: int
    steps_per_epoch: int

    def __post_init__(self) -> None:
        whole_number("total_steps", self.total_steps, least=1)
        whole_number("steps_per_epoch", self.steps_per_epoch, least=1)

    def __call__(self, step: int) -> float:
        """The factor at one step."""
        return self.factor_at(min(whole_number("step", step, least=0), self.total_steps))

    @abstractmethod
    def factor_at(self, step: int) -> float:
        """The factor at a step from 0 to ``total_steps``."""

    @classmethod
    def words(cls, options: Mapping[str, Any], *, lr: float, number: Callable[[float], str]) -> str | None:
        """The course of the learning rate as a methods section has it; None by default: the name says enough.

        Args:
            options: All options of the schedule, as a resolved recipe has them.
            lr: The base learning rate.
            number: Formats a number.
        """
        return None

    @property
    def epochs(self) -> int:
        """Epochs of the run, a shorter last one included."""
        return math.ceil(self.total_steps / self.steps_per_epoch)


def cosine(share: float, final: float) -> float:
    """From 1 down to ``final`` along half a cosine; ``share`` of the way is 0 to 1.

    >>> [round(cosine(x, 0.0), 4) for x in (0.0, 0.25, 0.5, 1.0)]
    [1.0, 0.8536, 0.5, 0.0]
    """
    return final + (1 - final) * (1 + math.cos(math.pi * share)) / 2
