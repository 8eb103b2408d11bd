"""A batch too small for the classes: an anchor meets hardly another image of its class.

Ill: less than one other image of its class beside an anchor, in expectation.
Watch: less than two.
Why: below one, the positives are mostly the anchor's own views, and a supervised contrastive loss is a self-supervised
one at the price of labels. (Equation 3 of `_batches`; with K even classes it is about b/K.)
Reads: recipe (method, batch size, sampler), labels of the training rows.
"""

from __future__ import annotations

from typing import ClassVar

from kontrast.doctor.finding import Finding
from kontrast.doctor.record import Patient, Record
from kontrast.doctor.rules._base import Rule, below
from kontrast.doctor.rules._batches import compares_classes, others

ENOUGH = 4  # of each class, beside an anchor three others


class BatchTooSmall(Rule):
    """Computes the expected positives."""

    patients: ClassVar[tuple[Patient, ...]] = ("run", "recipe")
    disease: ClassVar[str] = "batch too small for the classes"

    def examine(self, record: Record) -> Finding | None:
        """Of supervised contrastive methods."""
        if not compares_classes(record):
            return None
        sizes, train = record.class_sizes, record.recipe.train
        found, classes = others(sizes, train.batch_size, train.sampler), len(sizes)
        seen = (
            f"{found:.3g} other images of its class beside an anchor: batches of {train.batch_size}, {classes} classes"
        )
        enough = classes * min(ENOUGH, max(sum(sizes) // classes, 1))  # a multiple: class-balanced batches must be one
        cure = f"raise train.batch_size to {enough} or more (train.micro_batch keeps the memory small)"
        if train.sampler != "class-balanced":
            cure += "; with train.sampler=class-balanced every class is in every batch"
        return self.by(below(found, ill=1.0, watch=2.0), seen, cure)
