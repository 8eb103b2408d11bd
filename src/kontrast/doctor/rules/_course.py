r"""The course of a loss, told from its lines in the log, each a mean over some steps.

With e = loss − bound (what can still be won; a target's entropy, where that is the bound, is taken off), e_1 the first
line, e* the least, ē the mean of the last tenth:

    (1)  risen   = (ē − e*)/(e_1 − e*)                               how much of the fall was lost again
    (2)  won     = (e_1 − ē)/e_1                                      how much of what could be won
    (3)  falling = (mean of the last fifth but one − of the last fifth)/(e_1 − e*)

A loss that changes on the way (a warm-up on another one) is looked at from the change on: there its chance jumps. So is
one against a queue from when its random beginning is gone: random keys are easier to be told from. Of a fall of less
than a twentieth of e_1, which may be chance, (1) and (3) say nothing and are 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kontrast.doctor.record import Missing, Record
from kontrast.doctor.rules._queues import queue_of

FEWEST = 5  # lines, for a course
LEAST = 0.05  # of what could be won, for a fall


@dataclass(frozen=True)
class Course:
    """(1) to (3), and the loss first and last."""

    first: float
    last: float
    risen: float
    won: float
    falling: float
    rates: tuple[float, ...]  # learning rates of the lines

    def words(self) -> str:
        """The loss, from where to where."""
        return f"loss {self.first:.4g} → {self.last:.4g}"


def course_of(record: Record) -> Course:
    """Of a run's log."""
    lines = [line for line in record.lines if line.get("loss") is not None]
    if not lines:
        raise Missing("metrics.jsonl has no loss")
    chance = lines[-1].get("chance")
    if chance is not None:
        changed = [i for i, line in enumerate(lines) if abs((line.get("chance") or 0.0) - chance) > 0.1 * abs(chance)]
        lines = lines[changed[-1] + 1 :] if changed else lines
    queue = queue_of(record)
    if queue is not None:
        lines = [line for line in lines if line["step"] > queue.age]
    if len(lines) < FEWEST:
        raise Missing(f"{len(lines)} lines with a loss in metrics.jsonl; {FEWEST} or more make a course")
    values = [float(line["loss"]) for line in lines]
    excess = [value - (line.get("bound") or 0.0) for value, line in zip(values, lines, strict=True)]
    tenth, fifth = max(1, len(lines) // 10), max(1, len(lines) // 5)
    e1, least, ended = excess[0], min(excess), _mean(excess[-tenth:])
    fall = e1 - least if e1 - least > LEAST * abs(e1) else math.inf
    return Course(
        first=values[0],
        last=_mean(values[-tenth:]),
        risen=(ended - least) / fall,
        won=(e1 - ended) / max(abs(e1), 1e-12),
        falling=(_mean(excess[-2 * fifth : -fifth]) - _mean(excess[-fifth:])) / fall,
        rates=tuple(float(line.get("lr") or 0.0) for line in lines),
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
