r"""Which trials are not trained to their end: a median rule with a margin, at one fixed point.

Half-way through its training (at the first validation from there on), with v the trial's validation accuracy on the M
held-out rows and m the median of that of the trials before it, same seed, same point,

    (1)  it is given up if  v < m − 3 √(2 p(1 − p)/M),      p = (mM + 2)/(M + 4)

and there are two such trials or more. Three standard errors of the difference of two accuracies, since settings of one
loss often differ by tenths of a percent: the plain median rule would give up half of them by chance. Without labels
validation is minus a loss, which has no such error, and the plain rule is what there is.

The rule looks at numbers in metrics.jsonl, in the search's own order, so it decides the same when a search is repeated.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

ERRORS = 3.0
FEWEST = 2  # trials to compare with


def hopeless(value: float, others: Sequence[float], rows: int | None) -> str | None:
    """(1): why a trial is given up, or None if it goes on; ``rows`` is M, None where validation is no accuracy.

    >>> hopeless(0.5, [0.8, 0.7], rows=400)
    'validation 0.5000 half-way, more than 3 standard errors below the median of 2 trials before it, 0.7500'
    >>> hopeless(0.7, [0.8, 0.7], rows=400) is None
    True
    """
    if len(others) < FEWEST:
        return None
    m = statistics.median(others)
    margin, words = 0.0, "below"
    if rows is not None:
        p = (m * rows + 2) / (rows + 4)  # two more right and two more wrong: no error of 0 at m = 0 or 1
        margin, words = ERRORS * math.sqrt(2 * p * (1 - p) / rows), f"more than {ERRORS:g} standard errors below"
    if value >= m - margin:
        return None
    return f"validation {value:.4f} half-way, {words} the median of {len(others)} trials before it, {m:.4f}"


def half_way(lines: Sequence[Mapping[str, Any]], total_steps: int) -> tuple[int, float] | None:
    """Step and value of the validation that the rule looks at; None if there is none before the end.

    >>> half_way([{"step": 5, "loss": 2.0}, {"step": 5, "validation": 0.3}, {"step": 10, "validation": 0.4}], 10)
    (5, 0.3)
    """
    for line in lines:
        value = line.get("validation")
        if value is not None and total_steps <= 2 * line["step"] < 2 * total_steps:
            return int(line["step"]), float(value)
    return None
