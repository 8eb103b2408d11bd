"""Local separation: how far the positive stands from the nearest negatives.

For each anchor the similarities to its negatives are sorted, s_i(1) ≥ s_i(2) ≥ …; shown are the distributions over the
anchors of the positive s_ii and of the k-th nearest negative, k = 1 … 10:

    (1)  gap_i = s_ii − s_i(1)

(Wang & Liu figure 8, supplement figures 1–7.) The smaller τ, the larger the gap; the larger τ, the closer the positive
to 1. Range of gap_i: −2 … 2; negative where another sample is nearer than the positive.

Deviates: the authors' code compares training batches with the memory bank now and then; here it is whatever queries,
keys and negatives are passed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kontrast.checks import same_dtype, whole_number
from kontrast.geometry._rows import FEW, check_keys, largest, measure, strips, warn_if_few
from kontrast.geometry.estimate import Estimate, mean

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class SeparationSummary:
    """The numbers of a figure: a row for the positive and one for each of the nearest negatives.

    Attributes:
        names: Names of the rows: "positive", "1", "2", ….
        means: Mean and error of each row.
        quantile_levels: Levels of the quantiles, 0 … 1.
        quantiles: The quantiles of each row.
        gap: Mean of (1).
        share_separated: Share of anchors with gap_i > 0.

    >>> x = torch.eye(40)
    >>> local_separation(x, x, nearest=2).summary().names
    ['positive', '1', '2']
    """

    names: list[str]
    means: list[Estimate]
    quantile_levels: tuple[float, ...]
    quantiles: list[list[float]]
    gap: Estimate
    share_separated: Estimate


@dataclass(frozen=True, eq=False)
class LocalSeparation:
    """The similarities of each anchor.

    Attributes:
        positive: Similarity to the positive, ``[N]``.
        nearest: Similarities to the nearest negatives, ``[N, k]``, in descending order.

    >>> LocalSeparation(torch.tensor([0.75]), torch.tensor([[0.5, 0.25]])).gap
    tensor([0.2500])
    """

    positive: Tensor
    nearest: Tensor

    @property
    def gap(self) -> Tensor:
        """(1) per anchor, ``[N]``."""
        return self.positive - self.nearest[:, 0]

    def summary(self, quantiles: Sequence[float] = QUANTILES) -> SeparationSummary:
        """Means with errors, quantiles and the gap.

        Args:
            quantiles: Levels of the quantiles, 0 … 1.

        Returns:
            The numbers of a figure.

        Raises:
            ValueError: A level lies outside 0 … 1.

        >>> x = torch.eye(40)
        >>> local_separation(x, x, nearest=2).summary(quantiles=[0.5]).quantiles
        [[1.0], [0.0], [0.0]]
        """
        if not all(0 <= q <= 1 for q in quantiles):
            raise ValueError(f"quantiles must be shares from 0 to 1, got {list(quantiles)}")
        columns = torch.cat([self.positive[:, None], self.nearest], dim=1).double()
        # Sorted by hand, because torch.quantile refuses more than 16 million entries.
        place = torch.tensor(list(quantiles), dtype=torch.float64, device=columns.device) * (len(columns) - 1)
        ascending = columns.sort(0).values
        below, above = ascending[place.floor().long()], ascending[place.ceil().long()]
        at = torch.lerp(below, above, (place - place.floor())[:, None])
        return SeparationSummary(
            names=["positive", *(str(k + 1) for k in range(self.nearest.shape[1]))],
            means=[mean(column) for column in columns.T],
            quantile_levels=tuple(quantiles),
            quantiles=at.T.tolist(),
            gap=mean(self.gap),
            share_separated=mean((self.gap > 0).double()),
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
    """Each anchor's similarity to its positive and to its nearest negatives.

    Args:
        query: Anchors ``[N, D]``.
        key: Their positives ``[N, D]``; without ``negatives`` the other rows are the negatives.
        negatives: The negatives ``[K, D]`` of every anchor, such as a queue.
        own_index: For each anchor ``[N]`` its own row of ``negatives``, which is left out.
        nearest: How many negatives to keep; all, if there are fewer.
        normalize: Whether rows are scaled to length one.

    Returns:
        The similarities.

    Raises:
        ValueError: Shapes do not fit, rows hold NaN or infinity, no negative is left, or ``nearest`` is below 1.

    >>> x = torch.nn.functional.one_hot(torch.arange(40)).float()
    >>> separation = local_separation(x, x, nearest=3)
    >>> separation.nearest.shape, separation.summary().gap.value  # orthogonal: positive 1, negatives 0
    (torch.Size([40, 3]), 1.0)
    """
    k = whole_number("nearest", nearest, least=1)
    query, key, candidates, own_rows = check_keys(query, key, negatives, own_index, normalize=normalize)
    warn_if_few(len(query), FEW, "anchors that local separation is computed on")
    query, key, candidates = same_dtype(query, key, candidates)
    k = min(k, len(candidates) - (own_rows is not None))
    similarities = query.new_empty(len(query), k)
    for r, s in strips(query, candidates, own_rows):
        similarities[r] = largest(s, k)
    return LocalSeparation((query * key).sum(1), similarities)
