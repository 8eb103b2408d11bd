r"""The course of a loss, told from its lines in the log, each a mean over some steps.

With e = loss − bound (what can still be won), e_1 the first line, e* the least mean of three lines or a tenth of all,
ē the mean of the last tenth:

    (1)  risen   = (ē − e*)/(e_1 − e*)                               how much of the fall was lost again
    (2)  won     = (e_1 − ē)/e_1                                      how much of what could be won
    (3)  falling = (mean of the last fifth but one − of the last fifth)/(e_1 − e*)

A line's bound is of one batch, the loss a mean over several, and the bound moves with the classes of a batch and with
the weights of a classifier: so one bound, the median, is taken off all lines. Only a target's entropy (ReSSL, SCE) is
taken off line by line: there the loss follows it.

A loss that changes on the way (a warm-up on another one) is looked at from the change on: there its chance jumps. So is
one against a queue from when its random beginning is gone, three ages of its oldest key: random keys, and those of the
first weights, are easier to be told from. Of a fall of less
than a twentieth of e_1, which may be chance, (1) and (3) say nothing and are 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from kontrast.doctor.record import Missing, Record
from kontrast.doctor.rules._queues import queue_of
from kontrast.doctor.rules._words import counted

FEWEST = 5  # lines, for a course
LEAST = 0.05  # of what could be won, for a fall
AGES = 3  # of the oldest key of a queue, before its course is looked at


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
        lines = [line for line in lines if line["step"] > AGES * queue.age]
    if len(lines) < FEWEST:
        raise Missing(
            f"{counted(len(lines), 'line')} with a loss to look at in metrics.jsonl; {FEWEST} or more make a course"
        )
    values = [float(line["loss"]) for line in lines]
    bounds = [float(line.get("bound") or 0.0) for line in lines]
    if "target_temperature" not in record.options:
        bounds = [median(bounds)] * len(bounds)
    excess = [value - bound for value, bound in zip(values, bounds, strict=True)]
    tenth, fifth = max(1, len(lines) // 10), max(1, len(lines) // 5)
    e1, least, ended = excess[0], _least(excess, max(3, tenth)), _mean(excess[-tenth:])
    fall = e1 - least if e1 - least > LEAST * abs(e1) else math.inf
    return Course(
        first=values[0],
        last=_mean(values[-tenth:]),
        risen=(ended - least) / fall,
        won=(e1 - ended) / max(abs(e1), 1e-12),
        falling=(_mean(excess[-2 * fifth : -fifth]) - _mean(excess[-fifth:])) / fall,
        rates=tuple(float(line.get("lr") or 0.0) for line in lines),
    )


def _least(values: Sequence[float], window: int) -> float:
    """The least mean of so many values in a row."""
    return min(_mean(values[i : i + window]) for i in range(len(values) - window + 1))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
