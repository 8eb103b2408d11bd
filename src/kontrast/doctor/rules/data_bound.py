"""Data-bound training: the processor waits for images to be read instead of computing.

Ill: more than half of the time between steps is spent waiting for the next batch (median over the log).
Watch: more than a fifth.
Why: below a fifth, no more than 1.25 times the speed can be won. On a GPU, which works on meanwhile, it is a limit.
Reads: metrics.jsonl (waiting, images_per_second), recipe (workers, cache).
"""

from __future__ import annotations

from statistics import median
from typing import ClassVar

from kontrast.doctor.finding import Finding
from kontrast.doctor.record import Patient, Record
from kontrast.doctor.rules._base import Rule, above
from kontrast.doctor.rules._words import counted, percent


class DataBound(Rule):
    """Looks at the share of time spent waiting."""

    patients: ClassVar[tuple[Patient, ...]] = ("run",)
    disease: ClassVar[str] = "data-bound training"

    def examine(self, record: Record) -> Finding | None:
        """Over the whole log."""
        waiting = median(record.course("waiting"))
        seen = f"{percent(waiting)} of the time is spent waiting for batches"
        run = record.recipe.run
        seen += (
            f", {median(record.course('images_per_second')):,.0f} images a second with {counted(run.workers, 'worker')}"
        )
        cure = f"run.workers={max(4, 2 * run.workers)}" + ("" if run.cache else ", run.cache=true (decode once)")
        return self.by(above(waiting, ill=0.5, watch=0.2), seen, f"{cure}; smaller images on disk (data.size)")
