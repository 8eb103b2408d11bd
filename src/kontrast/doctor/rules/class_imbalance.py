"""Class imbalance: a small class is missing from most batches, though even classes would not be.

Ill: the smallest class is absent from more than half of the batches, and from less than a quarter if all were even.
Watch: the largest class has more than ten times the rows of the smallest.
Why: a class that is not in the batch is neither pulled together nor pushed apart; the loss's optimum, a simplex with
one corner a class, is that of even classes (Graf et al.). kNN votes go to large classes too, so a file of features with
its labels is looked at as well. (Equation 1 of `_batches`.)
Reads: labels of the training rows, or of the file; recipe (method, batch size, sampler).
"""

from __future__ import annotations

from typing import ClassVar

from kontrast.doctor.finding import Finding
from kontrast.doctor.record import Patient, Record
from kontrast.doctor.rules._base import Rule
from kontrast.doctor.rules._batches import absent
from kontrast.doctor.rules._words import percent

RATIO = 10


class ClassImbalance(Rule):
    """Compares the class sizes."""

    patients: ClassVar[tuple[Patient, ...]] = ("run", "features", "recipe")
    disease: ClassVar[str] = "class imbalance"

    def examine(self, record: Record) -> Finding | None:
        """Where labels are learned from, or given."""
        if record.patient == "features" and "labels" not in record.arrays:
            return None
        if record.patient != "features" and not record.method.needs_labels:
            return None
        sizes = record.class_sizes
        least, most = min(sizes), max(sizes)
        seen = (
            f"{len(sizes)} classes of {least:,} to {most:,} rows"
            if least < most
            else f"all classes have {least:,} rows"
        )
        if record.patient == "features":
            cure = "judge by accuracy per class, or balance the rows that vote (as many of each class)"
            return self.watch(seen, cure) if most > RATIO * least else self.healthy(seen)
        train = record.recipe.train
        share = absent(sizes, least, train.batch_size, train.sampler)
        even = absent(sizes, round(sum(sizes) / len(sizes)), train.batch_size, train.sampler)
        seen += f"; the smallest is absent from {percent(share)} of the batches of {train.batch_size} ({train.sampler})"
        cure = "train.sampler=class-balanced, with a batch that is a multiple of the classes; or a larger batch"
        if share > 0.5 and even < 0.25:
            return self.ill(f"{seen}, even ones would be from {percent(even)}", cure)
        if most > RATIO * least and train.sampler != "class-balanced":
            return self.watch(seen, cure)
        return self.healthy(seen)
