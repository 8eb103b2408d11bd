r"""A queue too stale: its oldest keys come from a target network that has changed since, or from the same image.

With a queue of Q keys, q new ones in each step and momentum m, the oldest key is Q/q steps old:

    drift = (1 − m)·Q/q          meanwhile 1 − e^{−drift} of the target is replaced

Problem: drift above 3 (95 % replaced); or a queue longer than two passes over the data.
Warning: drift above 1 (63 % replaced); or a queue longer than one pass.
Why: keys are comparable if they come from nearly one network (MoCo: drift 0.26 with 65,536 keys of batches of 256 and m
= 0.999; m = 0.9 loses 4 points, m = 0 fails). SCE's is 0.16. In a queue longer than the data an image meets its own old
keys among its negatives.
Reads: recipe (queue, momentum, batch size), number of training rows.
"""

from __future__ import annotations

from kontrast.doctor.rule import Finding, Missing, Record, Rule, above
from kontrast.doctor.rules._setup import queue_of
from kontrast.runs.schemas import STATUSES


class StaleQueue(Rule):
    """Computes the drift of the oldest key."""

    patients = ("run", "recipe")
    title = "queue too stale"

    def examine(self, record: Record) -> Finding | None:
        queue = queue_of(record)
        if queue is None:
            return None
        try:
            passes: float | None = queue.length / record.rows
        except Missing:
            passes = None
        evidence = f"the oldest of {queue.length:,} keys is {queue.age:.3g} steps old, drift {queue.drift:.2g}"
        evidence += f" at momentum {queue.momentum:g}" + (
            "" if passes is None else f"; {passes:.2g} passes over the data"
        )
        grades = above(queue.drift, problem=3.0, warning=1.0), above(passes or 0.0, problem=2.0, warning=1.0)
        grade = min(grades, key=STATUSES.index)
        advice = "raise method.momentum (0.99, with a long queue 0.999) or shorten method.queue"
        if grades[1] != "ok":
            advice = f"method.queue below the {record.rows:,} training rows; " + advice
        return self.graded(grade, evidence, advice)
