r"""What a batch holds, in expectation: N rows, n_c of class c, b drawn without replacement ("shuffled") or with.

    (1)  P(no row of c among b)          = C(N−n_c, b)/C(N, b),            with replacement (1 − n_c/N)^b
    (2)  P(no other row of c beside one) = C(N−n_c, b−1)/C(N−1, b−1),      with replacement (1 − n_c/N)^{b−1}
    (3)  others of its class beside a row, mean over rows = Σ_c (n_c/N)(b−1)(n_c−1)/(N−1),  with replacement n_c/N

A class-balanced batch has b/K of each (one that is no multiple of K is refused: `refused`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from kontrast.doctor.record import Record


def absent(sizes: Sequence[int], size: int, batch: int, sampler: str) -> float:
    """(1) of a class of ``size`` rows.

    >>> round(absent([5, 5], 5, 2, "shuffled"), 4), absent([5, 5], 5, 2, "with-replacement")  # 5/10 · 4/9, (1/2)²
    (0.2222, 0.25)
    """
    n = sum(sizes)
    if sampler == "class-balanced":
        return 0.0
    return (1 - size / n) ** batch if sampler == "with-replacement" else _none_drawn(n, size, batch)


def lone(sizes: Sequence[int], batch: int, sampler: str) -> float:
    """(2), the mean over rows: the share of anchors without another row of their class.

    >>> round(lone([5, 5], 2, "shuffled"), 4)  # of the nine others five are of the other class
    0.5556
    """
    n = sum(sizes)
    if sampler == "class-balanced":
        return 1.0 if batch // len(sizes) < 2 else 0.0
    if sampler == "with-replacement":
        return sum(m / n * (1 - m / n) ** (batch - 1) for m in sizes)
    return sum(m / n * _none_drawn(n - 1, m - 1, batch - 1) for m in sizes)


def others(sizes: Sequence[int], batch: int, sampler: str) -> float:
    """(3).

    >>> others([5, 5], 10, "shuffled"), others([5, 5], 10, "class-balanced")
    (4.0, 4.0)
    """
    n = sum(sizes)
    if sampler == "class-balanced":
        return max(0.0, batch / len(sizes) - 1)
    if sampler == "with-replacement":
        return sum(m / n * (batch - 1) * m / n for m in sizes)
    return sum(m / n * (batch - 1) * (m - 1) / max(n - 1, 1) for m in sizes)


def _none_drawn(n: int, members: int, drawn: int) -> float:
    """That none of the members is among ``drawn`` of n rows."""
    rest = n - members
    if drawn > rest:
        return 0.0
    logs = math.lgamma(rest + 1) - math.lgamma(rest - drawn + 1) - math.lgamma(n + 1) + math.lgamma(n - drawn + 1)
    return math.exp(logs)


def compares_classes(record: Record) -> bool:
    """Whether the method's positives are the rows of a class (SupCon, TCL, SC); cross-entropy has no positives."""
    return record.method.needs_labels and record.temperature is not None
