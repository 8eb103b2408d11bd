r"""Retrieval: are the rows nearest to a query of its class?

For query i the references are ranked by cosine; rel(r) is 1 if the r-th is of i's class, R the number of references of
that class:

    (1)  recall@k = share of queries with a row of their class among the first k
    (2)  mAP@R = mean over queries of 1/R Σ_{r=1}^{R} rel(r) · (1/r) Σ_{q≤r} rel(q)

((2): Musgrave, Belongie & Lim 2020, eq. 4–5.) Queries whose class has no reference are left out of both. Equal cosines
keep the references' order.

Test rows are the queries. Their references are the other test rows, or the training rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from kontrast.checks import one_of
from kontrast.evaluate.neighbours import pack, unpack_index
from kontrast.evaluate.protocol import Protocol
from kontrast.evaluate.result import Progress, Result
from kontrast.evaluate.subject import Subject
from kontrast.sphere import directions

RECALLS = (1, 5, 10)
STRIP = 2**22  # cosines at a time: with their ranks about 150 MB


class _Ranking(NamedTuple):
    measures: dict[str, float]
    nearest: Tensor  # int64 [M], the class of the nearest reference
    has_reference: Tensor  # bool [M], whether the class has references


@torch.no_grad()
def rank(
    query: Tensor, labels: Tensor, references: Tensor | None = None, reference_labels: Tensor | None = None
) -> _Ranking:
    """Compute (1) and (2) of queries ``[M, D]`` among references ``[N, D]``, or among each other."""
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
        depth = min(available, max(int(relevant[rows].max()), *RECALLS))
        index = unpack_index(pack(s, column).topk(depth, dim=1).values)
        nearest[rows] = y[index[:, 0]]
        hit = y[index] == labels[rows, None]
        place = torch.arange(1, depth + 1)
        first_hit[rows] = torch.where(hit.any(1), hit.int().argmax(1) + 1, available + 1)
        within = hit & (place <= relevant[rows, None])
        precision[rows] = (within.cumsum(1).double() / place * within).sum(1)
    has_reference = relevant > 0
    if not bool(has_reference.any()):
        raise ValueError("no query has a reference of its class; expected classes of two rows and more")
    measures = {f"recall@{k}": float((first_hit[has_reference] <= k).double().mean()) for k in RECALLS}
    measures["mAP@R"] = float((precision[has_reference] / relevant[has_reference]).mean())  # (2)
    measures["queries left out"] = int((~has_reference).sum())
    return _Ranking(measures, nearest, has_reference)


@dataclass(frozen=True, kw_only=True)
class Retrieval(Protocol):
    """Recall@1, 5, 10 and mAP@R; ``value`` is recall@1 among the test rows.

    Args:
        references: "test" (the other test rows), "train", or "both", which adds the second to the details.

    >>> Retrieval()
    Retrieval(references='both')
    """

    references: str = "both"
    name = "retrieval"

    def __post_init__(self) -> None:
        one_of("references", self.references, ("test", "train", "both"))

    def run(self, subject: Subject, *, seed: int, progress: Progress | None) -> Result:
        """Rank the references of each test row; ``seed`` has no effect."""
        train, test = subject.features(progress)
        y, y_test = subject.train_labels, subject.test_labels
        rankings: dict[str, _Ranking] = {}
        if self.references in ("test", "both"):
            rankings["test against test, without itself"] = rank(test, y_test)
        if self.references in ("train", "both"):
            rankings["test against train"] = rank(test, y_test, train, y)
        first, main = next(iter(rankings.items()))
        details: dict[str, Any] = {**main.measures, **{key: ranking.measures for key, ranking in rankings.items()}}
        words = f"retrieval by cosine, recall@1, {first}"
        about = self.about(subject, words, seed=seed, train_rows=0 if "test against test" in first else len(y))
        return Result.of_predictions(
            main.nearest[main.has_reference], y_test[main.has_reference], subject.num_classes, details=details, **about
        )
