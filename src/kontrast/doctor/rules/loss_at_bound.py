"""The loss is at its bound: nothing is left to learn from it.

Ill: learned without labels, more than 0.95 of the way from chance to the bound done: the task is too easy.
Watch: with labels, more than 0.98: the training rows are fitted; more epochs bring nothing.
Why: all images opposite to all others is out of reach for more images than dimensions, so a loss without labels that is
there has too few negatives or identical views (0.79 is the most of 132 such runs). With labels it is the simplex
(Graf et al.), reached by fitting every label; whether that is good, the train/test gap says. Of a complete collapse
nothing is said here: a loss whose bound is near that has not been fitted.
Reads: metrics.jsonl (loss, chance, collapsed, bound), recipe (method).
"""

from __future__ import annotations

from typing import ClassVar

from kontrast.doctor.finding import Finding
from kontrast.doctor.record import Patient, Record
from kontrast.doctor.rules._base import Rule
from kontrast.doctor.rules._standing import standing_of
from kontrast.doctor.rules.complete_collapse import CompleteCollapse


class LossAtBound(Rule):
    """Looks at where the loss stands."""

    patients: ClassVar[tuple[Patient, ...]] = ("run",)
    disease: ClassVar[str] = "loss at its bound"

    def examine(self, record: Record) -> Finding | None:
        """At the end."""
        if (collapse := CompleteCollapse()(record)) is not None and collapse.status == "ill":
            return None
        share, words = standing_of(record)
        if record.method.needs_labels:
            if share > 0.98:
                cure = "stop earlier next time; stronger views, or more images, give the loss something to do"
                return self.watch(f"{words}: the training rows are fitted", cure)
        elif share > 0.95:
            cure = (
                "stronger views (augment=strong), more negatives (train.batch_size, method.queue), a lower temperature"
            )
            return self.ill(f"{words}: the task is too easy", cure)
        return self.healthy(words)
