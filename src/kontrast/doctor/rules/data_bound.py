"""Data-bound training: the processor waits for images to be read instead of computing.

Problem: more than half of the time between steps is spent waiting for the next batch (median over the log).
Warning: more than a fifth.
Why: below a fifth, at most 1.25 times the speed can be gained. On a GPU, which keeps working meanwhile, it is a limit.
Reads: metrics.jsonl (waiting, images_per_second), recipe (workers, cache).
"""

from __future__ import annotations

from statistics import median

from kontrast.doctor.rule import Finding, Record, Rule, above, percent, quantity


class DataBound(Rule):
    """Looks at the share of time spent waiting."""

    patients = ("run",)
    title = "data-bound training"

    def examine(self, record: Record) -> Finding | None:
        waiting = median(record.values("waiting"))
        run, rate = record.recipe.run, median(record.values("images_per_second"))
        evidence = f"{percent(waiting)} of the time is spent waiting for batches, {rate:,.0f} images a second"
        evidence += f" with {quantity(run.workers, 'worker')}"
        advice = f"run.workers={max(4, 2 * run.workers)}" + ("" if run.cache else ", run.cache=true (decode once)")
        return self.graded(
            above(waiting, problem=0.5, warning=0.2), evidence, f"{advice}; smaller images on disk (data.size)"
        )
