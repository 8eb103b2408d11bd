"""The loss is at its bound: nothing is left to learn from it.

Problem: learned without labels, and more than 0.95 of the way from chance to the bound is done: the task is too easy.
Warning: with labels, more than 0.98: the training rows are fitted; more epochs bring nothing.
Why: more images than dimensions cannot all be opposite to each other. A loss without labels that is there has too few
negatives or identical views (0.79 is the most in 132 such runs). With labels the bound is the simplex (Graf et al.),
reached by fitting every label; whether that is good, the train/test gap says. With a complete collapse there is no
finding: a loss whose bound is near that value has not been fitted.
Reads: metrics.jsonl (loss, chance, collapsed, bound), recipe (method).
"""

from __future__ import annotations

from kontrast.doctor.rule import Finding, Record, Rule
from kontrast.doctor.rules._learned import standing_of
from kontrast.doctor.rules.complete_collapse import CompleteCollapse


class LossAtBound(Rule):
    """Looks at where the loss stands at the end."""

    patients = ("run",)
    title = "loss at its bound"

    def examine(self, record: Record) -> Finding | None:
        if (collapse := CompleteCollapse()(record)) is not None and collapse.status == "problem":
            return None
        share, evidence = standing_of(record)
        if record.method.needs_labels:
            if share > 0.98:
                advice = "stop earlier next time; stronger views, or more images, give the loss something to do"
                return self.warning(f"{evidence}: the training rows are fitted", advice)
        elif share > 0.95:
            advice = (
                "stronger views (augment=strong), more negatives (train.batch_size, method.queue), a lower temperature"
            )
            return self.problem(f"{evidence}: the task is too easy", advice)
        return self.ok(evidence)
