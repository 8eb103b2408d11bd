r"""Outliers: rows that are far from all others, for where they lie.

With N(i) the k nearest others of row i that are no copies of it, and s the cosine of the centred features:

    (1)  r_i = mean over N(i) of 1 − s_ij                          how far its neighbours are
    (2)  z_i = (log r_i − median)/(1.4826 · median |log r − median|)     in standard deviations of most rows
    (3)  outliers: z_i > `FAR`, the farthest first, at most `MOST` of the rows

(2) is not moved by the outliers themselves. The mean feature is subtracted first: where all features share a direction,
cosines are all near 1 and tell little.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

NEIGHBOURS = 10
FAR = 3.0
MOST = 0.05  # of the rows


@dataclass(frozen=True)
class Outliers:
    """How far each row is from the others.

    Args:
        score: z (2), float32 ``[N]``.
        rows: The outliers (3), the farthest first.
    """

    score: Tensor
    rows: list[int]


def outliers(cosines: Tensor, neighbours: Tensor, groups: Tensor | None = None) -> Outliers:
    """Find the rows that are far from all others (1)–(3).

    Args:
        cosines: Of the nearest other rows, descending, ``[N, k]``.
        neighbours: These rows, int64 ``[N, k]``.
        groups: The number of each row's group of near-duplicates, −1 for none, int64 ``[N]``.

    Returns:
        The score of every row, and the outliers.

    >>> from kontrast.evaluate.neighbours import nearest_others
    >>> x = torch.randn(200, 2, generator=torch.Generator().manual_seed(0)) * 0.1 + 1
    >>> x[50] = torch.tensor([-1.0, 1.0])
    >>> outliers(*nearest_others(x, 10)).rows[0]
    50
    """
    counts = torch.ones_like(cosines)
    if groups is not None:
        counts[(groups[:, None] == groups[neighbours]) & (groups[:, None] >= 0)] = 0
    counts *= counts.cumsum(1) <= NEIGHBOURS
    distance = ((1 - cosines).clamp_min(0) * counts).sum(1) / counts.sum(1).clamp_min(1)
    known = counts.any(1) & (distance > 0)  # not copies of all their neighbours
    if not bool(known.any()):
        return Outliers(torch.zeros(len(cosines)), [])
    log = distance.clamp_min(torch.finfo(torch.float32).tiny).log().float()
    middle = log[known].median()
    width = 1.4826 * (log[known] - middle).abs().median()
    score = torch.where(known, (log - middle) / width.clamp_min(1e-3), torch.zeros(()))
    far = score.argsort(descending=True, stable=True)[: int(MOST * len(score))]
    return Outliers(score, far[score[far] > FAR].tolist())
