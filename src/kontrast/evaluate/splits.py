"""Rows held out of others, as many of each class as its share, by a seed."""

from __future__ import annotations

import torch
from torch import Tensor

from kontrast.data import Stream, generator


def hold_out(labels: Tensor, fraction: float, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Row numbers kept and held out, both rising: of each class ``fraction`` of its rows, rounded, at least one.

    A class of one row keeps it.

    >>> kept, held = hold_out(torch.tensor([0] * 10 + [1] * 5 + [2]), 0.2)
    >>> len(kept), torch.tensor([0] * 10 + [1] * 5 + [2])[held]
    (13, tensor([0, 0, 1]))
    """
    if not 0 < fraction < 1:
        raise ValueError(f"the part held out is {fraction}; expected a share between 0 and 1")
    drawn = torch.randperm(len(labels), generator=generator(seed, Stream.HELD_OUT))
    is_held = torch.zeros(len(labels), dtype=torch.bool)
    for label in torch.unique(labels).tolist():
        members = drawn[labels[drawn] == label]
        wanted = min(max(1, round(fraction * len(members))), len(members) - 1)
        is_held[members[:wanted]] = True
    if not bool(is_held.any()):
        raise ValueError(
            f"no class of these {len(labels)} rows has two, so none can be held out; expected some. Give more rows, or "
            "a set for testing"
        )
    return (~is_held).nonzero()[:, 0], is_held.nonzero()[:, 0]
