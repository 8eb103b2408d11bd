r"""A linear rise to the base learning rate, then half a cosine down, step by step.

    (1)  f(i) = σ + (1−σ) i/(W−1)                             i < W = warmup_epochs · steps_per_epoch, σ = start
    (2)  f(i) = φ + (1−φ) (1 + cos(π (i−W)/(T−W)))/2          i ≥ W, T = total_steps, φ = final

sce: five epochs on small and medium sets, ten on ImageNet, from 0 and to 0. (1) reaches the base rate at the last step
of the warm-up and (2) begins there, so two steps run at it; with start = 0 the first step moves no weight. Both are as
in its published code (lightning-bolts' schedule).

Deviates: the published code computes (1) by adding up, we in closed form; they agree to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kontrast.checks import number
from kontrast.optim.schedules._base import Schedule, cosine


@dataclass(frozen=True, kw_only=True)
class WarmupCosine(Schedule):
    """The schedule of warm-up and cosine, (1) and (2).

    Args:
        warmup_epochs: Length of the warm-up in epochs, fractions allowed.
        start: σ, a factor on the base learning rate.
        final: φ, a factor on the base learning rate.

    >>> factor = WarmupCosine(total_steps=105, steps_per_epoch=5, warmup_epochs=1)
    >>> [round(factor(i), 4) for i in (0, 1, 2, 3, 4, 5, 55, 104)]
    [0.0, 0.25, 0.5, 0.75, 1.0, 1.0, 0.5, 0.0002]
    """

    warmup_epochs: float = 5.0
    start: float = 0.0
    final: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("warmup_epochs", "start", "final"):
            number(name, getattr(self, name), least=0.0)
        if self.warmup_steps >= self.total_steps:
            most = (self.total_steps - 1) / self.steps_per_epoch
            raise ValueError(
                f"warmup_epochs={self.warmup_epochs:g}: the warm-up of {self.warmup_steps} steps must be shorter than "
                f"the run of {self.total_steps}. Train longer, or use schedule.warmup_epochs={most:.3g} or less"
            )

    @property
    def warmup_steps(self) -> int:
        """W of (1), the steps of the warm-up."""
        return round(self.warmup_epochs * self.steps_per_epoch)

    def factor_at(self, step: int) -> float:
        w = self.warmup_steps
        if step < w:
            return self.start + (1 - self.start) * (step / (w - 1) if w > 1 else 0.0)
        return cosine((step - w) / (self.total_steps - w), self.final)

    @classmethod
    def words(cls, options: Mapping[str, Any], *, lr: float, number: Callable[[float], str]) -> str:
        start = f" from {number(options['start'] * lr)}" if options["start"] else ""
        end = number(options["final"] * lr)
        return f"reached linearly{start} over {number(options['warmup_epochs'])} epochs, then along a cosine to {end}"
