"""Shuffled keys across ranks: a momentum encoder sees batches that are mixed anew, so that nobody's key shares
its query's batch statistics.

    (1)  the rows of all ranks are gathered and permuted by one permutation, the same on every rank; rank r encodes the
         n_r rows that fall to it
    (2)  the keys are gathered and put back, and rank r takes those of its own n_r rows

(MoCo, "shuffling BN".) Batches may be of different sizes. In one process the rows are permuted all the same: it matters
with split batch norm.

Deviates: MoCo draws the permutation on rank 0 and sends it; here it follows from a seed that every rank knows (the
number of the step, say), which needs no message and repeats when a run is resumed.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from kontrast import distributed


class Order(NamedTuple):
    """What `unshuffle` needs: where the rows of all ranks went, and how many each rank has."""

    permutation: Tensor  # [n_0 + n_1 + …], on the CPU
    counts: list[int]


def shuffle_keys(rows: Tensor, *, seed: int) -> tuple[Tensor, Order]:
    """(1): ``rows [N, …]`` → as many rows, taken from all ranks at random, and how to undo it.

    ``seed`` must be the same on every rank and should differ from step to step; every rank must call this.

    >>> shuffled, order = shuffle_keys(torch.arange(5), seed=0)
    >>> unshuffle(shuffled * 10, order)
    tensor([ 0, 10, 20, 30, 40])
    """
    counts = distributed.row_counts(rows)
    permutation = torch.randperm(sum(counts), generator=torch.Generator().manual_seed(seed))
    return _own_part(distributed.gather(rows, counts), permutation, counts), Order(permutation, counts)


def unshuffle(keys: Tensor, order: Order) -> Tensor:
    """(2): the keys ``[N, …]`` of shuffled rows → the keys of this rank's own rows, in their order."""
    expected = order.counts[distributed.rank()]
    if len(keys) != expected:
        raise ValueError(f"keys of shape {list(keys.shape)}: the shuffled rows of this rank were {expected}")
    return _own_part(distributed.gather(keys, order.counts), order.permutation.argsort(), order.counts)


def _own_part(everyone: Tensor, permutation: Tensor, counts: list[int]) -> Tensor:
    start = sum(counts[: distributed.rank()])
    mine = permutation[start : start + counts[distributed.rank()]]
    return everyone[mine.to(everyone.device)]
