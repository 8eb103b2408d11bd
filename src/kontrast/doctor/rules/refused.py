"""A recipe that `kontrast train` would refuse: some settings do not go together, or not with the data.

Problem: what train makes before its first step (data, views, sampler, encoder, head, method) raises an error: a batch
larger than the training rows, a class-balanced batch that is not a multiple of the classes, a method that needs labels
with data that have none.
Warning: never.
Why: the checks of train itself are run; nothing is trained. Named data sets that are not on this machine are unknown,
not a problem: they may be where the recipe is going to run.
Reads: recipe, its data.
"""

from __future__ import annotations

from kontrast import data
from kontrast.doctor.rule import Finding, Record, Rule


class Refused(Rule):
    """Makes what train makes before its first step."""

    patients = ("recipe",)
    title = "train would refuse this recipe"
    explains_others = True

    def examine(self, record: Record) -> Finding | None:
        job = record.job
        if not isinstance(job, Exception):
            return self.ok(f"{len(job.train):,} training rows, {job.total_steps:,} steps")
        if record.recipe.data.name in data.names():
            _ = record.data  # `Missing`, with the reason, if they are not here
        return self.problem(str(job), "change what the error names; nothing was trained")
