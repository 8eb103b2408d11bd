"""Anchors without positives: rows that are alone in their class in the batch, where there is one view of each.

Ill: more than a tenth of the anchors, in expectation.
Watch: more than a hundredth.
Why: such an anchor gives no gradient of its own (it is left out of the mean, or counts as 0), while its class is only
pushed away by the others. The share follows from the class sizes, the batch and the sampler (equation 2 of `_batches`);
with two views or more none is alone.
Reads: recipe (method, views, batch size, sampler), labels of the training rows.
"""

from __future__ import annotations

from typing import ClassVar

from kontrast.doctor.finding import Finding
from kontrast.doctor.record import Patient, Record
from kontrast.doctor.rules._base import Rule, above
from kontrast.doctor.rules._batches import compares_classes, lone
from kontrast.doctor.rules._words import percent

CURE = (
    "give each image two views (augment.views=[crop-flip, crop-flip]), raise train.batch_size, or take "
    "train.sampler=class-balanced with a batch of twice the classes or more"
)


class LoneAnchors(Rule):
    """Computes the share."""

    patients: ClassVar[tuple[Patient, ...]] = ("run", "recipe")
    disease: ClassVar[str] = "anchors without positives"

    def examine(self, record: Record) -> Finding | None:
        """Of supervised contrastive methods."""
        if not compares_classes(record):
            return None
        train, views = record.recipe.train, len(record.recipe.augment.views)
        if views > 1:
            return self.healthy(f"{views} views of each image: every anchor has a positive")
        share = lone(record.class_sizes, train.batch_size, train.sampler)
        seen = f"{percent(share)} of the anchors of a batch of {train.batch_size} ({train.sampler}) are alone"
        return self.by(above(share, ill=0.1, watch=0.01), f"{seen} in their class", CURE)
