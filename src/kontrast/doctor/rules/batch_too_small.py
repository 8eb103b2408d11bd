"""A batch too small for the classes: an anchor rarely meets another image of its class.

Problem: less than one other image of its class beside an anchor, in expectation.
Warning: less than two.
Why: below one, most positives are the anchor's own views. A supervised contrastive loss is then a self-supervised one
that also needs labels. (Equation 3 of `_setup`; with K equal classes it is about b/K.)
Reads: recipe (method, batch size, sampler), labels of the training rows.
"""

from __future__ import annotations

from kontrast.data import SAMPLERS
from kontrast.doctor.rule import Finding, Record, Rule, below
from kontrast.doctor.rules._setup import compares_classes, others

ENOUGH = 4  # of each class, beside an anchor three others


class BatchTooSmall(Rule):
    """Counts the expected positives of an anchor."""

    patients = ("run", "recipe")
    title = "batch too small for the classes"

    def examine(self, record: Record) -> Finding | None:
        if not compares_classes(record):
            return None
        sizes, train = record.class_sizes, record.recipe.train
        count, classes = others(sizes, train.batch_size, train.sampler), len(sizes)
        evidence = (
            f"{count:.3g} other images of its class beside an anchor: batches of {train.batch_size}, {classes} classes"
        )
        enough = classes * min(ENOUGH, max(sum(sizes) // classes, 1))  # a multiple: class-balanced batches must be one
        advice = f"raise train.batch_size to {enough} or more (train.micro_batch keeps the memory small)"
        if not SAMPLERS[train.sampler].balances_classes:
            advice += "; with train.sampler=class-balanced every class is in every batch"
        return self.graded(below(count, problem=1.0, warning=2.0), evidence, advice)
