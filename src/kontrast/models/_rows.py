"""Rows of length one for what is stored: the queue's and the memory bank's."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def unit_rows(x: Tensor) -> Tensor:
    """``[N, D]`` with rows of length one; a zero row stays zero.

    Deviates: ``F.normalize`` makes a zero row of one whose squares overflow, and leaves one shorter than 1e-12 short;
    from these the largest entry is taken out first. All others are its own, to the bit.

    >>> unit_rows(torch.tensor([[3e25, 4e25], [3e-25, 4e-25], [0.0, 0.0]]))
    tensor([[0.6000, 0.8000],
            [0.6000, 0.8000],
            [0.0000, 0.0000]])
    """
    norm = torch.linalg.vector_norm(x, dim=1, keepdim=True)
    largest = x.abs().amax(1, keepdim=True)
    odd = (norm.isinf() | (norm < 1e-12)) & (largest > 0)
    return F.normalize(torch.where(odd, x / largest, x), dim=1)
