"""The temperature is too high: near and far negatives are pushed alike, or a target is as blunt as the online network.

Ill: the penalty's entropy is above 0.95 of log(negatives) at τ > 0.3; by τ alone, e^{2/τ} < 10 (τ > 0.87); ReSSL, and
SCE without its contrastive part, with target_temperature ≥ temperature.
Watch: above 0.925; e^{2/τ} < 100 (τ > 0.43).
Why: without weight on the near ones nothing separates them; accuracy falls again beyond τ = 0.3 (Wang & Liu: CIFAR-100
56.44 % at 0.3, 48.33 at 1; here on fashion-mini 0.808 at 0.1 and 0.739 at 1, entropy share 0.51 and 0.97). Their hard
losses choose the near ones themselves and are well at τ = 1, so they are not judged. A target that is no sharper than
the online network has the uniform distribution as fixed point (SCE, on ReSSL; here spread 0.04 at equal temperatures).
High entropy at τ ≤ 0.3, where the papers' best lie, is not the temperature's doing: the embeddings have not spread.
Reads: metrics.jsonl (monitor/entropy_share, monitor/uniformity, monitor/tolerance), recipe (temperatures, loss); of
features their entropy at the temperature given.
"""

from __future__ import annotations

import math
from typing import ClassVar

from kontrast.doctor.finding import Finding
from kontrast.doctor.record import Patient, Record
from kontrast.doctor.rules._base import Rule, above, below
from kontrast.doctor.rules._entropy import effective_negatives
from kontrast.doctor.rules._temperatures import reach, shares_penalty, told_temperature
from kontrast.doctor.rules._words import few

BEST = 0.3  # the largest of the best temperatures in Wang & Liu's tables
CURE = "lower method.temperature: 0.1 is a good start; `kontrast tune` finds it"


class TemperatureHigh(Rule):
    """Asks how alike the negatives are treated."""

    patients: ClassVar[tuple[Patient, ...]] = ("run", "features", "recipe")
    disease: ClassVar[str] = "temperature too high"

    def examine(self, record: Record) -> Finding | None:
        """By the entropy where it was measured, else by τ; targets by their ratio."""
        tau = told_temperature(record)
        if tau is None:
            return None
        if record.patient != "features":
            if record.options.get("loss", "ordinary") == "hard":
                return self.healthy("the hard loss chooses the nearest negatives itself, whatever the temperature")
            target = record.options.get("target_temperature")
            if target is not None and target >= tau and not record.options.get("contrastive_weight", 0.0):
                seen = f"target_temperature {target:g} is not below temperature {tau:g}: the target is no sharper"
                return self.ill(seen, f"lower method.target_temperature to {tau / 2:g} or so")
        if record.patient == "recipe" or not shares_penalty(record):
            seen = f"temperature {tau:g}: the nearest negative weighs at most {few(reach(tau))} times the farthest"
            return self.by(below(reach(tau), ill=10.0, watch=100.0), seen, CURE)
        count, of, more = effective_negatives(record, tau)
        share = math.log(count) / math.log(of)
        seen = f"temperature {tau:g}: entropy {share:.3f} of the most, as if {few(count)} of {of:,} negatives shared it"
        seen += more
        if tau <= BEST:
            return self.healthy(seen)
        return self.by(above(share, ill=0.95, watch=0.925), seen, CURE)
