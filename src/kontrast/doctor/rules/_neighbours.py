"""What the nearest other rows of each row say of its label: leave-one-out kNN, every vote alike.

k is 20, or a quarter of a class where classes are small, but 8 at least.
"""

from __future__ import annotations

import torch
from torch import Tensor

from kontrast.evaluate.neighbours import nearest

NEIGHBOURS, FEWEST, MOST = 20, 8, 5000


def votes_of_others(features: Tensor, labels: Tensor, k: int | None = None) -> Tensor:
    """Shares of the k nearest other rows that have each label, float ``[N, K]``.

    >>> x = torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.1, 1.0]])
    >>> votes_of_others(x, torch.tensor([0, 0, 1, 1]), k=1).argmax(1)
    tensor([0, 0, 1, 1])
    """
    n, classes = len(features), int(labels.max()) + 1
    k = min(max(FEWEST, min(NEIGHBOURS, n // (4 * classes))) if k is None else k, n - 1)
    found = nearest(features, features, k + 1)[1]
    own = found == torch.arange(n)[:, None]
    own[:, -1] |= ~own.any(1)  # rows that have more than k equals may not be among their own nearest
    others = labels[found[~own].view(n, k)]
    return torch.nn.functional.one_hot(others, classes).float().mean(1)


def sampled(features: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """At most `MOST` rows of each, drawn by a fixed seed: shares of rows need no more."""
    if len(features) <= MOST:
        return features, labels
    rows = torch.randperm(len(features), generator=torch.Generator().manual_seed(0))[:MOST]
    return features[rows], labels[rows]
