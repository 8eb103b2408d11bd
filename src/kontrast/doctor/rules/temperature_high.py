"""The temperature is too high: near and far negatives are pushed alike, or a target is not sharp.

Problem: the penalty's entropy is above 0.95 of log(negatives) at τ > 0.3; by τ alone, e^{2/τ} < 10 (τ > 0.87); ReSSL,
and SCE without its contrastive part, with target_temperature ≥ temperature.
Warning: above 0.925; e^{2/τ} < 100 (τ > 0.43).
Why: without weight on the near negatives nothing separates them; accuracy falls again above τ = 0.3 (Wang & Liu:
CIFAR-100 56.44 % at 0.3, 48.33 at 1; here on fashion-mini 0.808 at 0.1 and 0.739 at 1, entropy share 0.51 and 0.97).
Their hard losses choose the near negatives themselves and work at τ = 1, so they are not judged. A target that is no
sharper than the online network has the uniform distribution as fixed point (SCE, on ReSSL; here spread 0.04 at equal
temperatures). High entropy at τ ≤ 0.3, where the papers' best lie, has another cause: the embeddings have not spread.
Reads: metrics.jsonl (monitor/entropy_share, monitor/uniformity, monitor/tolerance), recipe (temperatures, loss); of
features their entropy at the temperature that was passed.
"""

from __future__ import annotations

import math

from kontrast.doctor.rule import Finding, Record, Rule, above, below, short_number
from kontrast.doctor.rules._learned import effective_negatives
from kontrast.doctor.rules._setup import reach, shares_penalty, temperature_of

BEST = 0.3  # the largest of the best temperatures in Wang & Liu's tables
ADVICE = "lower method.temperature: 0.1 is a good start; `kontrast tune` finds it"


class TemperatureHigh(Rule):
    """Asks how alike the negatives are treated."""

    patients = ("run", "features", "recipe")
    title = "temperature too high"

    def examine(self, record: Record) -> Finding | None:
        tau = temperature_of(record)
        if tau is None:
            return None
        if record.patient != "features":
            if record.method.keeps_nearest_negatives(record.options):
                return self.ok("the hard loss chooses the nearest negatives itself, whatever the temperature")
            target = record.options.get("target_temperature")
            if target is not None and target >= tau and not record.options.get("contrastive_weight", 0.0):
                evidence = f"target_temperature {target:g} is not below temperature {tau:g}: the target is no sharper"
                return self.problem(evidence, f"lower method.target_temperature to about {tau / 2:g}")
        if record.patient == "recipe" or not shares_penalty(record):
            times = short_number(reach(tau))
            evidence = f"temperature {tau:g}: the nearest negative weighs at most {times} times the farthest"
            return self.graded(below(reach(tau), problem=10.0, warning=100.0), evidence, ADVICE)
        count, total, more = effective_negatives(record, tau)
        share = math.log(count) / math.log(total)
        evidence = (
            f"temperature {tau:g}: entropy {share:.3f} of the most, as if {short_number(count)} of {total:,} negatives "
        )
        evidence += f"shared it{more}"
        if tau <= BEST:
            return self.ok(evidence)
        return self.graded(above(share, problem=0.95, warning=0.925), evidence, ADVICE)
