"""A recipe that `kontrast train` would refuse: some of its settings do not go together, or not with the data.

Ill: what train makes before its first step (data, views, sampler, encoder, head, method) is an error: a batch above the
training rows, a class-balanced batch that is no multiple of the classes, a method that needs labels and data without.
Watch: never.
Why: the very checks of train are run, and nothing is trained. Data sets by name that are not on this machine are
unknown, not ill: they may be where the recipe is to run.
Reads: recipe, its data.
"""

from __future__ import annotations

from typing import ClassVar

from kontrast import data
from kontrast.doctor.finding import Finding
from kontrast.doctor.record import Patient, Record
from kontrast.doctor.rules._base import Rule


class Refused(Rule):
    """Makes what train makes."""

    patients: ClassVar[tuple[Patient, ...]] = ("recipe",)
    disease: ClassVar[str] = "train would refuse this recipe"

    def examine(self, record: Record) -> Finding | None:
        """By train's own error."""
        made = record.made
        if not isinstance(made, Exception):
            return self.healthy(f"{len(made.train):,} training rows, {made.total_steps:,} steps")
        if record.recipe.data.name in data.names():
            _ = record.data  # `Missing`, with the reason, if they are not here
        return self.ill(f"{made}", "change what the error names; nothing was trained")
