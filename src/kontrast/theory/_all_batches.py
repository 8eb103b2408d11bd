r"""Graf et al.'s SC loss: of one batch, and the sum over all batches.

A batch B of size b is a multiset drawn from N points, a point may be there twice. l_i is how many of i's class are in
B, copies and i counted; lonely elements (l_i = 1) have no term:

    (1)  ℓ(Z; B) = Σ_{i∈B, l_i>1} [ log Σ_{k∈B\{i}} e^{⟨z_i, z_k⟩} − (1/(l_i−1)) Σ_{j∈B_{y_i}\{i}} ⟨z_i, z_j⟩ ]
    (2)  L_SC(Z) = Σ_B ℓ(Z; B)

With m_i copies of point i in B, all batches at once are a matrix [batches, N] times e^{⟨z, z⟩}:

    (3)  L_SC = Σ_B Σ_{i: l_i>1} m_i log( Σ_k (m_k − δ_ik) e^{⟨z_i, z_k⟩} ) − Σ_ij c_ij ⟨z_i, z_j⟩
         c_ij = Σ_{B: l_i>1} m_i (m_j − δ_ij)/(l_i−1)   where y_i = y_j, else 0
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from kontrast.checks import integer_labels, rows, whole_number

LARGEST = 30_000_000  # entries of the matrix of (3): 240 MB


def batch_loss(points: Tensor, labels: Tensor) -> Tensor:
    """(1) of a batch ``[b, D]`` with ``labels [b]``; the points are taken as they are, and there is no temperature.

    >>> z = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> batch_loss(z, torch.tensor([0, 0, 1]))  # 2 (log(e + 1) − 1)
    tensor(0.6265)
    """
    s = points @ points.T
    itself = torch.eye(len(labels), dtype=torch.bool)
    positive = (labels[:, None] == labels[None]) & ~itself
    number = positive.sum(1)
    log_d = s.masked_fill(itself, -torch.inf).logsumexp(1)
    pulled = (s * positive).sum(1) / number.clamp(min=1)
    return ((log_d - pulled) * (number > 0)).sum()  # (1)


def all_batches_loss(points: Tensor, labels: Tensor, batch_size: int) -> Tensor:
    """(2): the sum over every multiset of ``batch_size`` from these points ``[N, D]``, exactly, in float64.

    >>> from kontrast import simplex
    >>> z = simplex.vertices(3, dtype=torch.float64).repeat(3, 1)
    >>> all_batches_loss(z, torch.arange(3).repeat(3), batch_size=4)
    tensor(908.1147, dtype=torch.float64)
    """
    z = rows("points", points)
    return all_batches(integer_labels("labels", labels, len(z), z.device), batch_size)(z)


def all_batches(labels: Tensor, batch_size: int) -> Callable[[Tensor], Tensor]:
    """(3) as a function of the points; what does not depend on them is worked out once."""
    n, b = len(labels), whole_number("batch_size", batch_size, least=2)
    if (number := math.comb(n + b - 1, b)) * n > LARGEST:
        raise ValueError(
            f"there are {number:,} batches of {b} from {n} points, too many to go through: take fewer points or "
            f"smaller batches (what they sum up to at the simplex is geometry.bounds.supcon_all_batches)"
        )
    drawn = itertools.chain.from_iterable(itertools.combinations_with_replacement(range(n), b))
    index = torch.from_numpy(np.fromiter(drawn, dtype=np.int64, count=number * b).reshape(number, b))
    m = torch.zeros(number, n, dtype=torch.float64).scatter_add_(1, index, torch.ones(number, b, dtype=torch.float64))
    same = (labels[:, None] == labels[None]).double()
    others = m @ same - 1  # l_i − 1
    anchor = m * (others > 0)
    copies = (m - 1).clamp(min=0)
    share = anchor / others.clamp(min=1)
    c = (share.T @ m - torch.diag(share.sum(0))) * same

    def loss(points: Tensor) -> Tensor:
        z = points.double()
        s = z @ z.T
        shift = s.detach().amax()
        e = (s - shift).exp()
        own = e.diagonal()
        d = m @ (e - torch.diag(own)) + copies * own
        return (anchor * (torch.where(anchor > 0, d, 1.0).log() + shift)).sum() - (c * s).sum()  # (3)

    return loss
