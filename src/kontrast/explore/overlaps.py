r"""Classes that overlap: pairs that a linear classifier cannot tell apart on rows it did not learn from.

With p(b|i) the probability that row i would be given label b (`kontrast.explore.label_errors`), n_a
the rows with label a, and V(i) the nearest others of i that have a label:

    (1)  overlap(a, b) = (Σ_{i in a} p(b|i) + Σ_{i in b} p(a|i)) / (n_a + n_b)
    (2)  mixed(a, b)   = the share of V(i), over the rows i of a and b, that has the other of the two labels

Both are 0 for classes apart. A pair is listed if (1) is at least `LEAST`. Labels that are wrong at random add about
their share divided by the number of classes to every pair.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

LEAST = 0.02
MOST = 50  # pairs
EXAMPLES = 12  # of a pair
NEIGHBOURS = 10


@dataclass(frozen=True)
class Overlap:
    """Two classes that overlap.

    Args:
        classes: Their labels.
        overlap: (1).
        mixed: (2).
        count: Rows of both classes.
        confused: Those of them whose most probable class is the other one of the two.
        rows: Examples: the rows of both classes that lie most between them.
    """

    classes: tuple[int, int]
    overlap: float
    mixed: float
    count: int
    confused: int
    rows: tuple[int, ...]


def overlaps(labels: Tensor, probabilities: Tensor, neighbours: Tensor) -> list[Overlap]:
    """List the pairs of classes that overlap, the largest overlap first.

    Args:
        labels: int64 ``[N]``, −1 for none.
        probabilities: Of each class for each row, ``[N, K]``; rows without a label are not read.
        neighbours: The nearest other rows, int64 ``[N, k]``.

    Returns:
        At most `MOST` pairs.

    >>> p = torch.tensor([[0.9, 0.1, 0.0], [0.4, 0.6, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    >>> pairs = overlaps(torch.tensor([0, 0, 1, 2]), p, torch.zeros(4, 1).long())
    >>> [(pair.classes, round(pair.overlap, 2)) for pair in pairs]
    [((0, 1), 0.4)]
    """
    classes = probabilities.shape[1]
    rows = (labels >= 0).nonzero()[:, 0]
    y, p = labels[rows], probabilities[rows].double()
    near = labels[neighbours[rows, :NEIGHBOURS]]
    sizes = torch.bincount(y, minlength=classes).double()
    mass = torch.zeros(classes, classes, dtype=torch.float64).index_add_(0, y, p)
    votes = torch.zeros(classes * classes, dtype=torch.float64)
    votes += torch.bincount((y[:, None] * classes + near)[near >= 0], minlength=classes * classes)
    votes = votes.view(classes, classes)
    chosen = torch.bincount(y * classes + p.argmax(1), minlength=classes * classes).view(classes, classes)
    both = (sizes[:, None] + sizes).clamp_min(1)
    share = (mass + mass.T) / both
    voters = (votes.sum(1)[:, None] + votes.sum(1)).clamp_min(1)
    mixed = (votes + votes.T) / voters
    upper = torch.triu(torch.ones(classes, classes, dtype=torch.bool), 1)
    pairs = (upper & (share >= LEAST)).nonzero()
    order = share[pairs[:, 0], pairs[:, 1]].argsort(descending=True, stable=True)[:MOST]
    found = []
    for a, b in pairs[order].tolist():
        members = ((y == a) | (y == b)).nonzero()[:, 0]
        between = torch.minimum(p[members, a], p[members, b])
        examples = rows[members[between.argsort(descending=True, stable=True)[:EXAMPLES]]]
        found.append(
            Overlap(
                classes=(a, b),
                overlap=float(share[a, b]),
                mixed=float(mixed[a, b]),
                count=int(sizes[a] + sizes[b]),
                confused=int(chosen[a, b] + chosen[b, a]),
                rows=tuple(examples.tolist()),
            )
        )
    return found
