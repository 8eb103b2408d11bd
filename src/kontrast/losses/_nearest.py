"""The nearest negatives of each anchor, chosen from whole rows of logits."""

from __future__ import annotations

import torch
from torch import Tensor


def nearest(logits: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest of each row and where they stand, in no particular order; exactly k also among equals."""
    top = torch.topk(logits, k, dim=1, sorted=False)
    return top.values, top.indices


def nearest_mask(s: Tensor, is_negative: Tensor, k: int) -> Tensor:
    """For the references: which of all similarities are an anchor's k nearest negatives, ``[N, M]`` bool."""
    s = s.detach().masked_fill(~is_negative, -torch.inf)
    chosen = s.argsort(dim=1, descending=True)[:, :k]
    return torch.zeros_like(is_negative).scatter_(1, chosen, True) & is_negative
