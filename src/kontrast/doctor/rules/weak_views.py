"""Views too weak or identical: the two views of an image are nearly the same, so matching them teaches nothing.

Problem: views that change nothing (of a method that takes a single view, this one): the preset none, noise of 0, or
sample views that differ by less than 1 grey level of 255 on average.
Warning: learned without labels from crops alone (crop-flip) or noise below 0.02; or positives at cosine 0.95 and
nearest others farther than 0.2 below at the end: the task is solved.
Why: without labels the views are the whole task (SimCLR: crops alone lose more than 10 points on ImageNet); identical
views let the loss fall to its bound at once. One view without augmentation is right for supervised methods.
Reads: recipe (augment, method), analysis.npz (sample_views), metrics.jsonl (monitor/positive_similarity, …_gap).
"""

from __future__ import annotations

from collections.abc import Sequence

from kontrast import augment
from kontrast.doctor.rule import Finding, Missing, Record, Rule
from kontrast.recipe import Part, View

STRONGER = "stronger views: augment=strong (crop, flip, colour, blur)"
NOISE = "{name: vector-noise, noise: 0.1}"


class WeakViews(Rule):
    """Looks at the augmentations, and at the sample views."""

    patients = ("run", "recipe")
    title = "views too weak or identical"

    def examine(self, record: Record) -> Finding | None:
        views = record.recipe.augment.views
        is_single = (
            record.method.most_views == 1 and not record.method.needs_labels
        )  # its one view must change something
        names = _names(views)
        if len(views) < 2 and not is_single:
            return None
        strengths = {view.strength for view in _views(record)}
        if strengths == {"none"}:
            return self.problem(
                f"views {names}: nothing is changed, all views of an image are the same", self._stronger(record)
            )
        apart = self._apart(record)
        if apart is not None and apart < 1:
            return self.problem(
                f"two views of an image differ by {apart:.2g} grey levels on average ({names})", self._stronger(record)
            )
        evidence = f"views {names}" + ("" if apart is None else f", {apart:.0f} grey levels apart on average")
        if record.method.needs_labels:
            return self.ok(evidence)
        if "strong" not in strengths:
            return self.warning(
                f"{evidence}: little is changed, and without labels the views are all there is", self._stronger(record)
            )
        if record.patient == "run":
            try:
                positive, gap = (record.last(f"monitor/{key}") for key in ("positive_similarity", "similarity_gap"))
            except Missing:
                return self.ok(evidence)
            evidence += f"; positives at cosine {positive:.2f}, {gap:+.2f} from the nearest other"
            if positive > 0.95 and gap > 0.2:
                return self.warning(f"{evidence}: the task is solved", self._stronger(record))
        return self.ok(evidence)

    def _stronger(self, record: Record) -> str:
        """As it can be typed: presets of images, or noise for vectors."""
        try:
            kind: str = record.data[0].kind if record.card is None else record.card.input.kind
        except Missing:
            kind = augment.kind_of(record.recipe.augment.described[0])
        if kind != "vector":
            return STRONGER
        return f'stronger views: "augment.views=[{", ".join([NOISE] * len(record.recipe.augment.views))}]"'

    def _apart(self, record: Record) -> float | None:
        """Grey levels between two views of an image, of 255; None where no pictures were kept."""
        pixels = record.arrays.get("sample_views")
        if pixels is None or pixels.ndim != 5 or pixels.shape[1] < 2:
            return None
        return float((pixels[:, 0].float() - pixels[:, 1].float()).abs().mean())


def _views(record: Record) -> list[augment.Compose]:
    """The views, for images of any size: only how strong they are is asked."""
    return [augment.view(description, size=32) for description in record.recipe.augment.described]


def _names(views: Sequence[View]) -> str:
    """Presets by name, lists of operations in brackets."""
    return ", ".join(
        view.name if isinstance(view, Part) else f"[{', '.join(step.name for step in view)}]" for view in views
    )
