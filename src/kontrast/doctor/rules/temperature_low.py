"""The temperature is too low: nearly all of the penalty falls on the one or two nearest negatives.

Ill: the penalty's entropy H is that of fewer than 3 negatives (e^H < 3); by τ alone, e^{0.1/τ} > 100 (τ < 0.022).
Watch: fewer than 6; e^{0.1/τ} > 10 (τ < 0.043).
Why: the nearest negatives are often images of the same class, and pushing them alone tears classes apart: uniformity
grows and tolerance falls (Wang & Liu: 79.75 % at τ = 0.07 on CIFAR-10, 83.27 at 0.3). The papers' temperatures are
0.05 to 0.5; runs at 0.05 have e^H = 10 to 17 of 255 and are well. H is of the loss's own negatives only in methods
without labels, and says something only if they have not collapsed; for the others τ itself is judged.
Reads: metrics.jsonl (monitor/entropy, monitor/uniformity, monitor/tolerance), recipe (temperature); of features their
entropy at the temperature given.
"""

from __future__ import annotations

import math
from typing import ClassVar

from kontrast.doctor.finding import Finding
from kontrast.doctor.record import Patient, Record
from kontrast.doctor.rules._base import Rule, above, below
from kontrast.doctor.rules._entropy import effective_negatives, gathered
from kontrast.doctor.rules._temperatures import shares_penalty, sharpness, told_temperature
from kontrast.doctor.rules._words import few

CURE = "raise method.temperature: 0.1 is a good start, 0.2 where false negatives hurt; `kontrast tune` finds it"


class TemperatureLow(Rule):
    """Counts the negatives that share the penalty."""

    patients: ClassVar[tuple[Patient, ...]] = ("run", "features", "recipe")
    disease: ClassVar[str] = "temperature too low"

    def examine(self, record: Record) -> Finding | None:
        """By the entropy where it was measured, else by τ."""
        tau = told_temperature(record)
        if tau is None:
            return None
        if record.patient == "recipe" or not shares_penalty(record) or gathered(record):
            seen = f"temperature {tau:g}: a negative nearer by 0.1 weighs {few(sharpness(tau))} times as much"
            return self.by(above(sharpness(tau), ill=100.0, watch=10.0), seen, CURE)
        count, of, more = effective_negatives(record, tau)
        seen = f"temperature {tau:g}: the penalty falls on {few(count)} of {of:,} negatives{more}"
        return self.by(below(count, ill=min(3.0, math.sqrt(of)), watch=min(6.0, math.sqrt(of))), seen, CURE)
