r"""Ranked references: are the rows nearest to a query of its class?

For query i the references are ranked by cosine; rel(r) is 1 if the r-th is of i's class, R the number of references of
that class:

    (1)  recall@k = share of queries with a row of their class among the first k
    (2)  mAP@R = mean over queries of 1/R Σ_{r=1}^{R} rel(r) · (1/r) Σ_{q≤r} rel(q)

((2): Musgrave, Belongie & Lim 2020, eq. 4–5.) Queries whose class has no reference are left out of both. Equal cosines
keep the references' order.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from kontrast.evaluate.neighbours import number, packed
from kontrast.sphere import directions

RECALLS = (1, 5, 10)
STRIP = 2**22  # cosines at a time: with their ranks about 150 MB


class Ranking(NamedTuple):
    """What `ranking` found."""

    numbers: dict[str, float]
    nearest: Tensor  # int64 [M], the class of the nearest reference
    counted: Tensor  # bool [M], whether the class has references


@torch.no_grad()
def ranking(
    query: Tensor, labels: Tensor, references: Tensor | None = None, reference_labels: Tensor | None = None
) -> Ranking:
    """(1) and (2) of queries ``[M, D]`` among references ``[N, D]``, or among each other.

    >>> x = torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.1, 1.0]])
    >>> ranking(x, torch.tensor([0, 0, 1, 1])).numbers["mAP@R"]
    1.0
    """
    q = directions(query, torch.float32)
    keys = q if references is None else directions(references, torch.float32)
    y = labels if reference_labels is None else reference_labels
    classes = int(max(labels.max(), y.max())) + 1
    relevant = torch.bincount(y, minlength=classes)[labels] - (1 if references is None else 0)  # R of each query
    available = len(keys) - (1 if references is None else 0)
    if available < 1:
        raise ValueError("retrieval among the test rows needs at least two of them")
    order = torch.argsort(relevant, stable=True)  # strips of queries with about the same R: the longest decides
    nearest = torch.zeros_like(labels)
    precision = torch.zeros(len(q), dtype=torch.float64)
    first_hit = torch.full((len(q),), available + 1)
    column = torch.arange(len(keys))
    for rows in torch.split(order, max(16, STRIP // len(keys))):
        s = q[rows] @ keys.T
        if references is None:
            s.scatter_(1, rows[:, None], -torch.inf)
        deepest = min(available, max(int(relevant[rows].max()), *RECALLS))
        index = number(packed(s, column).topk(deepest, dim=1).values)
        nearest[rows] = y[index[:, 0]]
        hit = y[index] == labels[rows, None]
        place = torch.arange(1, deepest + 1)
        first_hit[rows] = torch.where(hit.any(1), hit.int().argmax(1) + 1, available + 1)
        within = hit & (place <= relevant[rows, None])
        precision[rows] = (within.cumsum(1).double() / place * within).sum(1)
    counted = relevant > 0
    if not bool(counted.any()):
        raise ValueError("no query has a reference of its class; expected classes of two rows and more")
    numbers = {f"recall@{k}": float((first_hit[counted] <= k).double().mean()) for k in RECALLS}
    numbers["mAP@R"] = float((precision[counted] / relevant[counted]).mean())  # (2)
    numbers["queries left out"] = int((~counted).sum())
    return Ranking(numbers, nearest, counted)
