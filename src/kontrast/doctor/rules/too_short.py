"""A run too short to judge: it has hardly begun to learn, so what it has not learned is no sign of anything.

Ill: never.
Watch: fewer than 50 steps in all; or fewer than 5 lines with a loss in the log, so that its course cannot be seen.
Why: after a few dozen steps every run is at chance and its embeddings near one point. It is told first, and other rules
that judge what was learned (collapse, loss at chance, learning rate too low) only watch then, with this cure before
theirs. 5 lines are what 50 steps give at the default run.log_every.
Reads: metrics.jsonl (step, epoch, loss), run.json (status), recipe (train).
"""

from __future__ import annotations

from typing import ClassVar

from kontrast.doctor.finding import Finding
from kontrast.doctor.record import Patient, Record
from kontrast.doctor.rules._base import Rule
from kontrast.doctor.rules._course import FEWEST
from kontrast.doctor.rules._length import shortness, steps_of
from kontrast.doctor.rules._words import counted


class TooShort(Rule):
    """Counts steps and lines."""

    patients: ClassVar[tuple[Patient, ...]] = ("run",)
    disease: ClassVar[str] = "training too short to judge"

    def examine(self, record: Record) -> Finding | None:
        """Of runs that have not failed."""
        if record.run.get("status") == "failed":
            return None
        if (short := shortness(record)) is not None:
            return self.watch(*short)
        steps = steps_of(record)
        lines = sum(line.get("loss") is not None for line in record.lines)
        if lines < FEWEST:
            seen = f"{counted(lines, 'line')} with a loss in {counted(steps, 'step')}: too few to see its course"
            return self.watch(seen, f"write more often: run.log_every={max(1, steps // 20)}")
        return self.healthy(f"{counted(steps, 'step')}, {counted(lines, 'line')} with a loss")
