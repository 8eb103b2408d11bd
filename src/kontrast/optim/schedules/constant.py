"""The base learning rate at every step.

(1)  f(i) = 1
"""

from __future__ import annotations

from dataclasses import dataclass

from kontrast.optim.schedules._base import Schedule


@dataclass(frozen=True, kw_only=True)
class Constant(Schedule):
    """The constant schedule (1).

    >>> Constant(total_steps=10, steps_per_epoch=5)(7)
    1.0
    """

    def factor_at(self, step: int) -> float:
        return 1.0
