"""Similarities a block at a time, in one buffer: never all N² of them."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from kontrast.checks import whole_number

SIDE = 2048  # of a square block: 16 MB in float32
STRIP = 48 * 2**20  # bytes of a strip of whole rows
HIDDEN = -1e30  # stands for −∞ where 0·(−∞) would be NaN


def square_blocks(x: Tensor, side: int | None = None) -> Iterator[tuple[slice, slice, Tensor]]:
    """Iterate over ``x x^T`` by blocks on and above the diagonal: rows, columns, block (which may be overwritten)."""
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
    """Iterate over ``query candidates^T`` by strips of whole rows, with each query's own entry hidden.

    The caller may overwrite a strip.
    """
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
    """The k largest of each row, in descending order; equal to ``topk`` and several times as fast on long rows.

    The k largest lie in at most k groups of neighbours, and these groups have the largest maxima. So the maxima are
    compared first, and only k groups are searched.
    """
    end = s.shape[1] // group * group
    if s.shape[1] < 4 * group * k:
        return s.topk(k, dim=1).values
    grouped = s[:, :end].view(len(s), -1, group)
    groups = grouped.amax(2).topk(k, dim=1, sorted=False).indices
    inside = grouped.gather(1, groups[:, :, None].expand(-1, -1, group)).flatten(1)
    return torch.cat([inside, s[:, end:]], dim=1).topk(k, dim=1).values
