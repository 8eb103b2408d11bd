"""A queue too small: it has fewer keys than a batch would give without it, or fewer than there are classes.

Problem: fewer keys than join it in a step, or than there are classes.
Warning: fewer than two batches.
Why: a queue whose keys join and leave within one step remembers nothing; with fewer negatives than classes most classes
are in none of them. The published queues hold 16 batches and more (SCE 4,096 of 256; ImageNet 65,536).
Reads: recipe (queue, batch size), number of classes where there are labels.
"""

from __future__ import annotations

from kontrast.doctor.rule import Finding, Missing, Record, Rule, below
from kontrast.doctor.rules._setup import queue_of


class SmallQueue(Rule):
    """Compares the queue with the batch and the classes."""

    patients = ("run", "recipe")
    title = "queue too small"

    def examine(self, record: Record) -> Finding | None:
        queue = queue_of(record)
        if queue is None:
            return None
        try:
            classes = len(record.analysis.class_names or ()) or len(record.class_sizes)
        except Missing:
            classes = 0
        evidence = f"{queue.length:,} keys; {queue.keys:,} join in a step" + (f", {classes} classes" if classes else "")
        grade = "problem" if queue.length < classes else below(queue.age, problem=1.0, warning=2.0)
        return self.graded(
            grade, evidence, f"raise method.queue to about {16 * queue.keys:,}, within the training rows"
        )
