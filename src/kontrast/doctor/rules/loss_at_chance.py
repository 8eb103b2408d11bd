"""The loss is at chance: no better than with unrelated embeddings.

Problem: less than 0.05 of the way from chance to the bound is done at the end.
Warning: less than 0.1.
Why: chance is the loss of embeddings with all similarities 0 (`geometry.bounds.standing`), or with all of them equal if
that is less (TCL). The bound of a loss without labels is far out of reach (all other images opposite), so little of the
way is done even in good runs: the least in 254 runs is 0.2.
Reads: metrics.jsonl (loss, chance, collapsed, bound), recipe (method, views).
"""

from __future__ import annotations

from kontrast.doctor.rule import Finding, Record, Rule, below
from kontrast.doctor.rules._learned import standing_of
from kontrast.doctor.rules._setup import advise_weaker_pull


class LossAtChance(Rule):
    """Looks at where the loss stands at the end."""

    patients = ("run",)
    title = "loss at chance"
    of_learning = True

    def examine(self, record: Record) -> Finding | None:
        share, evidence = standing_of(record)
        return self.graded(below(share, problem=0.05, warning=0.1), evidence, self._advice(record))

    def _advice(self, record: Record) -> str:
        steps = ["follow the other findings first (collapse, learning rate, temperature)", *advise_weaker_pull(record)]
        if record.method.needs_labels:
            steps.append("check that the labels belong to these images")
        if len(record.recipe.augment.views) > 1:
            steps.append("check that the views of an image still show the same thing")
        return "; then ".join(steps)
