r"""A queue too stale: its oldest keys come from a target network that has long changed, or from this very image.

With a queue of Q keys, q new ones a step and momentum m, the oldest key is Q/q steps old:

    drift = (1 − m)·Q/q          the target is replaced to 1 − e^{−drift} meanwhile

Ill: drift above 3 (to 95 %); or a queue longer than two passes over the data.
Watch: drift above 1 (to 63 %); or a queue longer than one pass.
Why: keys are comparable if they come from nearly one network (MoCo: drift 0.26 with 65,536 keys of batches of 256 and
m = 0.999; m = 0.9 loses 4 points, m = 0 fails). SCE's is 0.16. In a queue longer than the data an image meets its own
old keys among its negatives.
Reads: recipe (queue, momentum, batch size), number of training rows.
"""

from __future__ import annotations

from typing import ClassVar

from kontrast.doctor.finding import STATUSES, Finding
from kontrast.doctor.record import Missing, Patient, Record
from kontrast.doctor.rules._base import Rule, above
from kontrast.doctor.rules._queues import queue_of


class StaleQueue(Rule):
    """Computes the drift."""

    patients: ClassVar[tuple[Patient, ...]] = ("run", "recipe")
    disease: ClassVar[str] = "queue too stale"

    def examine(self, record: Record) -> Finding | None:
        """Of methods with a queue."""
        queue = queue_of(record)
        if queue is None:
            return None
        try:
            passes, known = queue.length / record.rows, True
        except Missing:
            passes, known = 0.0, False
        seen = f"the oldest of {queue.length:,} keys is {queue.age:.3g} steps old, drift {queue.drift:.2g}"
        seen += f" at momentum {queue.momentum:g}" + (f"; {passes:.2g} passes over the data" if known else "")
        grades = above(queue.drift, ill=3.0, watch=1.0), above(passes, ill=2.0, watch=1.0)
        grade = min(grades, key=STATUSES.index)
        cure = "raise method.momentum (0.99, with a long queue 0.999) or shorten method.queue"
        if grades[1] != "healthy":
            cure = f"method.queue below the {record.rows:,} training rows; " + cure
        return self.by(grade, seen, cure)
