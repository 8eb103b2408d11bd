"""What the nearest other rows of each row say of its label: leave-one-out kNN, every vote alike.

k is 20, or a quarter of a class where classes are small, but 8 at least.
"""

from __future__ import annotations

import torch
from torch import Tensor

from kontrast.evaluate.neighbours import nearest

NEIGHBOURS, FEWEST, MOST = 20, 8, 5000
PAIRED, CLUSTERED = 500, 0.7  # rows whose cosines are looked at; of Sarle's coefficient, see `label_noise`


def votes_of_others(features: Tensor, labels: Tensor, k: int | None = None) -> Tensor:
    """Shares of the k nearest other rows that have each label, float ``[N, K]``.

    >>> x = torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.1, 1.0]])
    >>> votes_of_others(x, torch.tensor([0, 0, 1, 1]), k=1).argmax(1)
    tensor([0, 0, 1, 1])
    """
    return votes_of(nearest_others(features, int(labels.max()) + 1, k), labels)


def nearest_others(features: Tensor, classes: int, k: int | None = None) -> Tensor:
    """The k nearest other rows of each row, ``[N, k]``."""
    n = len(features)
    k = min(max(FEWEST, min(NEIGHBOURS, n // (4 * classes))) if k is None else k, n - 1)
    found = nearest(features, features, k + 1)[1]
    own = found == torch.arange(n)[:, None]
    own[:, -1] |= ~own.any(1)  # rows that have more than k equals may not be among their own nearest
    return found[~own].view(n, k)


def votes_of(rows: Tensor, labels: Tensor) -> Tensor:
    """Shares of the rows ``[N, k]`` that have each label, ``[N, K]``."""
    return torch.nn.functional.one_hot(labels[rows], int(labels.max()) + 1).float().mean(1)


def clustered(features: Tensor) -> bool:
    """Whether cosines have two values rather than one about which they lie: near in a cluster, far from the others.

    >>> draw = torch.Generator().manual_seed(0)
    >>> x = torch.randn(600, 32, generator=draw)
    >>> clustered(x), clustered(x + 9 * torch.eye(32)[torch.arange(600) % 4])
    (False, True)
    """
    rows = torch.randperm(len(features), generator=torch.Generator().manual_seed(0))[:PAIRED]
    x = features[rows].double()
    u = torch.nn.functional.normalize(x - x.mean(0), dim=1)
    s = (u @ u.T)[~torch.eye(len(u), dtype=torch.bool)]
    z = (s - s.mean()) / s.std().clamp_min(1e-12)
    return float((z.pow(3).mean() ** 2 + 1) / z.pow(4).mean().clamp_min(1e-12)) > CLUSTERED


def sampled(features: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """At most `MOST` rows of each, drawn by a fixed seed: shares of rows need no more."""
    if len(features) <= MOST:
        return features, labels
    rows = torch.randperm(len(features), generator=torch.Generator().manual_seed(0))[:MOST]
    return features[rows], labels[rows]
