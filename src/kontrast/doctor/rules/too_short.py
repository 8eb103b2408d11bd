"""A run too short to judge: what it has not learned yet is no sign of anything.

Problem: never.
Warning: fewer than 50 steps in all; or fewer than 5 lines with a loss in the log, so that its course is unknown.
Why: after a few dozen steps every run is at chance and its embeddings near one point. This finding is shown first, and
the rules that judge what was learned (collapse, loss at chance, learning rate too low) only give a warning then, with
this advice before theirs. 50 steps give 5 lines at the default run.log_every.
Reads: metrics.jsonl (step, epoch, loss), run.json (status), recipe (train).
"""

from __future__ import annotations

from kontrast.doctor.rule import Finding, Record, Rule, quantity, too_short, trained_steps
from kontrast.doctor.rules._learned import FEWEST_LINES


class TooShort(Rule):
    """Counts steps and lines of the log."""

    patients = ("run",)
    title = "training too short to judge"
    explains_others = True

    def examine(self, record: Record) -> Finding | None:
        if record.state.status == "failed":
            return None
        if (short := too_short(record)) is not None:
            return self.warning(*short)
        steps = trained_steps(record)
        lines = sum(line.get("loss") is not None for line in record.metrics)
        if lines < FEWEST_LINES:
            evidence = f"{quantity(lines, 'line')} with a loss in {quantity(steps, 'step')}: too few to see its course"
            return self.warning(evidence, f"write more often: run.log_every={max(1, steps // 20)}")
        return self.ok(f"{quantity(steps, 'step')}, {quantity(lines, 'line')} with a loss")
