r"""The learning rate is a power of the share of the run that is left.

    (1)  f(i) = ((T − i)/T)^q                                 T = total_steps, q = exponent

graf's, with q = 5, for encoders and for its retrained classifier.

Deviates: none in the numbers; the published code calls it "exponential", which it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kontrast.checks import number
from kontrast.optim.schedules._base import Schedule


@dataclass(frozen=True, kw_only=True)
class Power(Schedule):
    """The power schedule (1).

    Args:
        exponent: q.

    >>> factor = Power(total_steps=100, steps_per_epoch=10)
    >>> [round(factor(i), 4) for i in (0, 25, 50, 99)]
    [1.0, 0.2373, 0.0312, 0.0]
    """

    exponent: float = 5.0

    def __post_init__(self) -> None:
        super().__post_init__()
        number("exponent", self.exponent, above=0.0)

    def factor_at(self, step: int) -> float:
        return float(((self.total_steps - step) / self.total_steps) ** self.exponent)

    @classmethod
    def words(cls, options: Mapping[str, Any], *, lr: float, number: Callable[[float], str]) -> str:
        return f"× ((T − i)/T)^{number(options['exponent'])}"
