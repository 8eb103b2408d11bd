r"""The learning rate falls by a factor at each of a few epochs.

    (1)  f(i) = γ^{number of milestones m with m · steps_per_epoch ≤ i}        γ = factor

Wang & Liu: ×0.1 at 160 and 190 of 200 epochs; their probe ×0.2 at 40, 60 and 80 of 100, sce's ×0.1 at 60 and 80.
Epochs are counted from 0: milestone 160 is where the 161st begins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kontrast.checks import number
from kontrast.optim.schedules._base import Schedule


@dataclass(frozen=True, kw_only=True)
class MultiStep(Schedule):
    """The schedule with steps (1).

    Args:
        milestones: Epochs, fractions allowed, in any order.
        factor: γ.

    >>> factor = MultiStep(total_steps=100, steps_per_epoch=10, milestones=[4, 6, 8], factor=0.2)
    >>> [round(factor(i), 4) for i in (0, 39, 40, 60, 99)]
    [1.0, 1.0, 0.2, 0.04, 0.008]
    """

    milestones: Sequence[float] = ()
    factor: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.milestones, str) or not isinstance(self.milestones, Sequence) or not self.milestones:
            raise ValueError(f"milestones={self.milestones!r}: must be a list of epochs, such as [160, 190]")
        epochs = tuple(sorted(number("milestones", m, above=0.0) for m in self.milestones))
        object.__setattr__(self, "milestones", epochs)
        number("factor", self.factor, above=0.0)

    def factor_at(self, step: int) -> float:
        count = sum(m * self.steps_per_epoch <= step for m in self.milestones)
        return float(self.factor**count)

    @classmethod
    def words(cls, options: Mapping[str, Any], *, lr: float, number: Callable[[float], str]) -> str:
        *first, last = map(number, options["milestones"])
        epochs = f"{', '.join(first)} and {last}" if first else last
        return f"× {number(options['factor'])} at epochs {epochs}"
