"""Class imbalance: a small class is missing from most batches, although equal classes would not be.

Problem: the smallest class is absent from more than half of the batches, and from less than a quarter if all classes
were equal.
Warning: the largest class has more than ten times the rows of the smallest.
Why: a class that is not in the batch is neither pulled together nor pushed apart; the loss's optimum, a simplex with
one corner per class, is that of equal classes (Graf et al.). kNN votes favour large classes too, so features with
labels are examined as well. (Equation 1 of `_setup`.)
Reads: labels of the training rows, or of the file; recipe (method, batch size, sampler).
"""

from __future__ import annotations

from kontrast.data import SAMPLERS
from kontrast.doctor.rule import Finding, Record, Rule, percent
from kontrast.doctor.rules._setup import absent

RATIO = 10


class ClassImbalance(Rule):
    """Compares the sizes of the classes."""

    patients = ("run", "features", "recipe")
    title = "class imbalance"

    def examine(self, record: Record) -> Finding | None:
        if record.patient == "features" and "labels" not in record.arrays:
            return None
        if record.patient != "features" and not record.method.needs_labels:
            return None
        sizes = record.class_sizes
        least, most = min(sizes), max(sizes)
        evidence = (
            f"{len(sizes)} classes of {least:,} to {most:,} rows"
            if least < most
            else f"all classes have {least:,} rows"
        )
        if record.patient == "features":
            advice = "judge by accuracy per class, or balance the rows that vote (as many of each class)"
            return self.warning(evidence, advice) if most > RATIO * least else self.ok(evidence)
        train = record.recipe.train
        share = absent(sizes, least, train.batch_size, train.sampler)
        even = absent(sizes, round(sum(sizes) / len(sizes)), train.batch_size, train.sampler)
        evidence += (
            f"; the smallest is absent from {percent(share)} of the batches of {train.batch_size} ({train.sampler})"
        )
        advice = "train.sampler=class-balanced, with a batch that is a multiple of the classes; or a larger batch"
        if share > 0.5 and even < 0.25:
            return self.problem(f"{evidence}, equal classes would be absent from {percent(even)}", advice)
        if most > RATIO * least and not SAMPLERS[train.sampler].balances_classes:
            return self.warning(evidence, advice)
        return self.ok(evidence)
