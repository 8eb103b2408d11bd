"""Anchors without positives: rows that are alone in their class in the batch, where there is one view of each.

Problem: more than a tenth of the anchors, in expectation.
Warning: more than a hundredth.
Why: such an anchor gives no gradient of its own (it is left out of the mean, or counts as 0), and the other anchors
only push its class away. The share follows from the class sizes, the batch and the sampler (equation 2 of `_setup`);
with two views or more no anchor is alone.
Reads: recipe (method, views, batch size, sampler), labels of the training rows.
"""

from __future__ import annotations

from kontrast.doctor.rule import Finding, Record, Rule, above, percent
from kontrast.doctor.rules._setup import compares_classes, lone

ADVICE = (
    "give each image two views (augment.views=[crop-flip, crop-flip]), raise train.batch_size, or take "
    "train.sampler=class-balanced with a batch of twice the classes or more"
)


class LoneAnchors(Rule):
    """Computes the expected share of anchors without positives."""

    patients = ("run", "recipe")
    title = "anchors without positives"

    def examine(self, record: Record) -> Finding | None:
        if not compares_classes(record):
            return None
        train, views = record.recipe.train, len(record.recipe.augment.views)
        if views > 1:
            return self.ok(f"{views} views of each image: every anchor has a positive")
        share = lone(record.class_sizes, train.batch_size, train.sampler)
        evidence = f"{percent(share)} of the anchors of a batch of {train.batch_size} ({train.sampler}) are alone"
        return self.graded(above(share, problem=0.1, warning=0.01), f"{evidence} in their class", ADVICE)
