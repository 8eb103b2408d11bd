r"""Half a cosine, from the base learning rate down to a final one.

    (1)  f(i) = φ + (1−φ) (1 + cos(π i/T))/2                 i the step, T = total_steps, φ = final
    (2)  per="epoch": the same with the epoch e and the number of epochs E in place of i and T
    (3)  late: epoch e runs with the factor of epoch e−1, and epoch 0 with 1

(Loshchilov & Hutter, without restarts.) tcl's text says cosine and no more; its published code is per="epoch",
late=True, final=0.1**3: it sets the rate after an epoch from that epoch's own number, so epochs 0 and 1 both run at the
base rate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from kontrast.checks import number, one_of
from kontrast.optim.schedules._base import Schedule, cosine


@dataclass(frozen=True, kw_only=True)
class Cosine(Schedule):
    """The cosine schedule (1)–(3).

    Args:
        final: φ, a factor on the base learning rate.
        per: "step" (1) or "epoch" (2).
        late: Whether (3) applies; only per epoch.

    >>> smooth = Cosine(total_steps=100, steps_per_epoch=10)
    >>> [round(smooth(i), 4) for i in (0, 25, 50, 75, 99)]
    [1.0, 0.8536, 0.5, 0.1464, 0.0002]
    >>> published = Cosine(total_steps=100, steps_per_epoch=10, per="epoch", late=True, final=0.1**3)
    >>> [round(published(i), 4) for i in (0, 19, 20, 99)]
    [1.0, 1.0, 0.9756, 0.0964]
    """

    final: float = 0.0
    per: Literal["step", "epoch"] = "step"
    late: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        number("final", self.final, least=0.0)
        one_of("per", self.per, ("step", "epoch"))
        if self.late and self.per != "epoch":
            raise ValueError("per='step': must be 'epoch' with late=True, which takes the rate of the epoch before")

    def factor_at(self, step: int) -> float:
        if self.per == "step":
            return cosine(step / self.total_steps, self.final)
        epoch = step // self.steps_per_epoch
        return cosine(max(epoch - self.late, 0) / self.epochs, self.final)

    @classmethod
    def words(cls, options: Mapping[str, Any], *, lr: float, number: Callable[[float], str]) -> str:
        late = " one epoch late" if options["late"] else ""
        end = number(options["final"] * lr)
        return f"along a cosine to {end}" + (f" set once an epoch{late}" if options["per"] == "epoch" else "")
