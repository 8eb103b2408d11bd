"""The temperature is too low: nearly all of the penalty falls on the one or two nearest negatives.

Problem: the penalty's entropy H is that of fewer than 3 negatives (e^H < 3); by τ alone, e^{0.1/τ} > 100 (τ < 0.022).
Warning: fewer than 6; e^{0.1/τ} > 10 (τ < 0.043).
Why: the nearest negatives are often images of the same class, and pushing them alone tears classes apart: uniformity
improves and tolerance falls (Wang & Liu: 79.75 % at τ = 0.07 on CIFAR-10, 83.27 at 0.3). The papers' temperatures are
0.05 to 0.5; good runs at 0.05 have e^H = 10 to 17 of 255. H is of the loss's own negatives only in methods without
labels, and is meaningful only without a collapse; otherwise τ itself is judged.
Reads: metrics.jsonl (monitor/entropy, monitor/uniformity, monitor/tolerance), recipe (temperature); of features their
entropy at the temperature that was passed.
"""

from __future__ import annotations

import math

from kontrast.doctor.rule import Finding, Record, Rule, above, below, short_number
from kontrast.doctor.rules._learned import effective_negatives, is_gathered
from kontrast.doctor.rules._setup import shares_penalty, sharpness, temperature_of

ADVICE = "raise method.temperature: 0.1 is a good start, 0.2 where false negatives hurt; `kontrast tune` finds it"


class TemperatureLow(Rule):
    """Counts the negatives that share the penalty."""

    patients = ("run", "features", "recipe")
    title = "temperature too low"

    def examine(self, record: Record) -> Finding | None:
        tau = temperature_of(record)
        if tau is None:
            return None
        if record.patient == "recipe" or not shares_penalty(record) or is_gathered(record):
            evidence = (
                f"temperature {tau:g}: a negative nearer by 0.1 weighs {short_number(sharpness(tau))} times as much"
            )
            return self.graded(above(sharpness(tau), problem=100.0, warning=10.0), evidence, ADVICE)
        count, total, more = effective_negatives(record, tau)
        evidence = f"temperature {tau:g}: the penalty falls on {short_number(count)} of {total:,} negatives{more}"
        return self.graded(
            below(count, problem=min(3.0, math.sqrt(total)), warning=min(6.0, math.sqrt(total))), evidence, ADVICE
        )
