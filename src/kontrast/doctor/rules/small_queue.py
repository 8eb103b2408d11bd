"""A queue too small: it has fewer keys than a batch would give for nothing, or than there are classes.

Ill: fewer keys than join it in a step, or than there are classes.
Watch: fewer than two batches.
Why: keys that join and leave within one step are no memory; with fewer negatives than classes most classes are in none
of them. The published queues have 16 batches and more (SCE 4,096 of 256; ImageNet 65,536).
Reads: recipe (queue, batch size), number of classes where there are labels.
"""

from __future__ import annotations

from typing import ClassVar

from kontrast.doctor.finding import Finding
from kontrast.doctor.record import Missing, Patient, Record
from kontrast.doctor.rules._base import Rule, below
from kontrast.doctor.rules._queues import queue_of


class SmallQueue(Rule):
    """Compares the queue with batch and classes."""

    patients: ClassVar[tuple[Patient, ...]] = ("run", "recipe")
    disease: ClassVar[str] = "queue too small"

    def examine(self, record: Record) -> Finding | None:
        """Of methods with a queue."""
        queue = queue_of(record)
        if queue is None:
            return None
        try:
            classes = len(record.analysis.get("class_names") or ()) or len(record.class_sizes)
        except Missing:
            classes = 0
        seen = f"{queue.length:,} keys; {queue.keys:,} join in a step" + (f", {classes} classes" if classes else "")
        grade = "ill" if queue.length < classes else below(queue.age, ill=1.0, watch=2.0)
        return self.by(grade, seen, f"raise method.queue to {16 * queue.keys:,} or so, within the training rows")
