r"""Local separation: how far the positive stands from the nearest negatives.

For each anchor the similarities to its negatives are sorted, s_i(1) ≥ s_i(2) ≥ …; shown are the distributions over the
anchors of the positive s_ii and of the k-th nearest negative, k = 1 … 10:

    (1)  gap_i = s_ii − s_i(1)

(Wang & Liu figure 8, supplement figures 1–7.) The smaller τ, the larger the gap; the larger τ, the closer the positive
to 1. Range of gap_i: −2 … 2; negative where another sample is nearer than the positive.

Deviates: the authors' code records the similarities of training batches against the memory bank now and then; here
it is whatever queries, keys and negatives are passed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kontrast.checks import same_dtype, whole_number
from kontrast.geometry._features import FEW, check_keys, measure, warn_if_few
from kontrast.geometry._tiles import largest, strips
from kontrast.geometry.estimate import Estimate, mean

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class SeparationSummary:
    """What is drawn: a row for the positive and one for each of the nearest negatives."""

    names: list[str]  # "positive", "1", "2", …
    means: list[Estimate]
    quantile_levels: tuple[float, ...]
    quantiles: list[list[float]]  # a row's quantiles
    gap: Estimate  # mean of (1)
    separated: Estimate  # share of anchors with gap_i > 0


@dataclass(frozen=True, eq=False)
class LocalSeparation:
    """The raw similarities."""

    positive: Tensor  # [N]
    nearest: Tensor  # [N, k], sorted from the nearest

    @property
    def gap(self) -> Tensor:
        """(1) per anchor, ``[N]``."""
        return self.positive - self.nearest[:, 0]

    def summary(self, quantiles: Sequence[float] = QUANTILES) -> SeparationSummary:
        """Means with errors, quantiles and the gap."""
        if not all(0 <= q <= 1 for q in quantiles):
            raise ValueError(f"quantiles must be shares from 0 to 1, got {list(quantiles)}")
        columns = torch.cat([self.positive[:, None], self.nearest], dim=1).double()
        # Sorted by hand, because torch.quantile refuses more than 16 million entries.
        place = torch.tensor(list(quantiles), dtype=torch.float64, device=columns.device) * (len(columns) - 1)
        ordered = columns.sort(0).values
        below, above = ordered[place.floor().long()], ordered[place.ceil().long()]
        at = torch.lerp(below, above, (place - place.floor())[:, None])
        return SeparationSummary(
            names=["positive", *(str(k + 1) for k in range(self.nearest.shape[1]))],
            means=[mean(column) for column in columns.T],
            quantile_levels=tuple(quantiles),
            quantiles=at.T.tolist(),
            gap=mean(self.gap),
            separated=mean((self.gap > 0).double()),
        )


@measure
def local_separation(
    query: Any,
    key: Any,
    negatives: Any = None,
    own_index: Any = None,
    nearest: int = 10,
    *,
    normalize: bool = True,
) -> LocalSeparation:
    """Each anchor's similarity to its positive and to its nearest negatives; arguments as `losses.InfoNCELoss`.

    With fewer negatives than ``nearest`` all of them are given.

    >>> x = torch.nn.functional.one_hot(torch.arange(40)).float()
    >>> found = local_separation(x, x, nearest=3)
    >>> found.nearest.shape, found.summary().gap.value  # orthogonal: positive 1, negatives 0
    (torch.Size([40, 3]), 1.0)
    """
    k = whole_number("nearest", nearest, least=1)
    query, key, candidates, own = check_keys(query, key, negatives, own_index, normalize=normalize)
    warn_if_few(len(query), FEW, "anchors that local separation is computed on")
    query, key, candidates = same_dtype(query, key, candidates)
    k = min(k, len(candidates) - (own is not None))
    found = query.new_empty(len(query), k)
    for r, s in strips(query, candidates, own):
        found[r] = largest(s, k)
    return LocalSeparation((query * key).sum(1), found)
