"""Similarities a block at a time: never all N² of them, and in memory that is used again."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from kontrast.checks import whole_number

SIDE = 2048  # of a square block: 16 MB in float32
STRIP = 48 * 2**20  # bytes of a strip of whole rows
HIDDEN = -1e30  # stands for −∞ where 0·(−∞) would be NaN


def square_blocks(x: Tensor, side: int | None = None) -> Iterator[tuple[slice, slice, Tensor]]:
    """``x x^T`` by blocks on and above the diagonal: rows, columns, the block (to be used up by the caller)."""
    side = SIDE if side is None else whole_number("tile", side, least=1)
    buffer = x.new_empty(min(side, len(x)) ** 2)
    starts = range(0, len(x), side)
    for i in starts:
        for j in starts[i // side :]:
            r, c = slice(i, min(i + side, len(x))), slice(j, min(j + side, len(x)))
            shape = (r.stop - r.start, c.stop - c.start)
            block = buffer[: shape[0] * shape[1]].view(shape)
            torch.mm(x[r], x[c].T, out=block)
            yield r, c, block


def strips(query: Tensor, candidates: Tensor, own: Tensor | None = None) -> Iterator[tuple[slice, Tensor]]:
    """``query candidates^T`` by strips of whole rows (to be used up by the caller), each query's own hidden."""
    height = max(16, min(1024, STRIP // (candidates.element_size() * len(candidates))))
    height = min(height, len(query))
    buffer = query.new_empty(height * len(candidates))
    for start in range(0, len(query), height):
        r = slice(start, min(start + height, len(query)))
        s = buffer[: (r.stop - r.start) * len(candidates)].view(-1, len(candidates))
        torch.mm(query[r], candidates.T, out=s)
        if own is not None:
            s.scatter_(1, own[r, None], HIDDEN)
        yield r, s


def largest(s: Tensor, k: int, group: int = 64) -> Tensor:
    """The k largest of each row, sorted from the largest; equal to ``topk`` and several times as fast on long rows.

    The k largest stand in at most k groups of neighbours, and among all groups these have the largest maxima; so the
    maxima are compared first, and only k groups are looked into.
    """
    whole = s.shape[1] // group * group
    if s.shape[1] < 4 * group * k:
        return s.topk(k, dim=1).values
    grouped = s[:, :whole].view(len(s), -1, group)
    chosen = grouped.amax(2).topk(k, dim=1, sorted=False).indices
    inside = grouped.gather(1, chosen[:, :, None].expand(-1, -1, group)).flatten(1)
    return torch.cat([inside, s[:, whole:]], dim=1).topk(k, dim=1).values
