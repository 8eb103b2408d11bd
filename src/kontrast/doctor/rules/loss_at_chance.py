"""The loss is at chance: no better than unrelated embeddings give.

Ill: less than 0.05 of the way from chance to the bound is done at the end.
Watch: less than 0.1.
Why: chance is the loss of embeddings with all similarities 0 (`geometry.bounds.standing`), or with all of them equal if
that is less (TCL). The bound of a loss without labels is far out of reach (all other images opposite), so little of the
way is done even in good runs: the least of 254 is 0.2.
Reads: metrics.jsonl (loss, chance, collapsed, bound), recipe (method, views).
"""

from __future__ import annotations

from typing import ClassVar

from kontrast.doctor.finding import Finding
from kontrast.doctor.record import Patient, Record
from kontrast.doctor.rules._base import Rule, below
from kontrast.doctor.rules._cures import pulling_less
from kontrast.doctor.rules._standing import standing_of


class LossAtChance(Rule):
    """Looks at where the loss stands."""

    patients: ClassVar[tuple[Patient, ...]] = ("run",)
    disease: ClassVar[str] = "loss at chance"
    of_learning: ClassVar[bool] = True

    def examine(self, record: Record) -> Finding | None:
        """At the end."""
        share, words = standing_of(record)
        return self.by(below(share, ill=0.05, watch=0.1), words, self._cure(record))

    def _cure(self, record: Record) -> str:
        """What this method learns from."""
        looks = ["look at the other findings first (collapse, learning rate, temperature)", *pulling_less(record)]
        if record.method.needs_labels:
            looks.append("look whether the labels belong to these images")
        if len(record.recipe.augment.views) > 1:
            looks.append("look whether the views of an image still show the same thing")
        return "; then ".join(looks)
