r"""The plain normaliser, D_i = Σ_j a_ij e^{l_ij} with a_ij ∈ {0, 1}: which candidates an anchor sees.

`Softmax` is what most losses hand to the engine's strips; `softmax_square` is its counterpart for z against
itself. Columns that an anchor does not see get the logit −∞.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from kontrast.losses._tiles import (
    LOG2E,
    Grads,
    Rows,
    Tile,
    slots,
    spans,
    square,
    stream_width,
    strip_height,
    strips_over_both,
    tiled,
)

Hide = Callable[[Tensor, slice, slice], None]  # sets −∞ in a block of logits, given its rows and columns


def hide_nothing(logits: Tensor, r: slice, c: slice) -> None:
    """Every candidate is seen."""


def hide_diagonal(start: int) -> Hide:
    """Anchor i does not see candidate start + i, which is itself."""

    def hide(logits: Tensor, r: slice, c: slice) -> None:
        logits.diagonal(start + r.start - c.start).fill_(-torch.inf)

    return hide


def hide_index(index: Tensor) -> Hide:
    """Anchor i does not see candidate index[i]."""

    def hide(logits: Tensor, r: slice, c: slice) -> None:
        column = index[r, None] - c.start
        inside = (column >= 0) & (column < logits.shape[1])
        column = column.clamp(0, logits.shape[1] - 1)
        logits.scatter_(1, column, logits.gather(1, column).masked_fill(inside, -torch.inf))

    return hide


def hide_both(first: Hide, second: Hide) -> Hide:
    """Anchors see neither what the one hides nor what the other does."""

    def hide(logits: Tensor, r: slice, c: slice) -> None:
        first(logits, r, c)
        second(logits, r, c)

    return hide


def row_shift(logits: Tensor, *others: Tensor) -> Tensor:
    """The largest logit of each row (and of further ones), to be subtracted; 0 for a row that sees nothing."""
    largest = logits.amax(1)
    for other in others:
        largest = torch.maximum(largest, other)
    return largest.masked_fill(largest == -torch.inf, 0.0)


@dataclass(frozen=True)
class Softmax:
    """The block function of the plain normaliser.

    ``positive [N]`` is subtracted from log D; with ``slot`` it is also a candidate of its own, beside the columns.
    ``bounded`` says that no shift is needed.
    """

    positive: Tensor
    hide: Hide
    slot: bool
    bounded: bool

    def __call__(self, logits: Tensor, r: slice, grad: bool) -> Rows:
        self.hide(logits, r, slice(0, logits.shape[1]))
        shift = None
        if not self.bounded:
            others = (self.positive[r] * LOG2E,) if self.slot else ()
            shift = row_shift(logits, *others)
            logits.sub_(shift[:, None])
        return self.rows(logits.exp2_().sum(1), r, shift)

    def rows(self, sums: Tensor, r: slice, shift: Tensor | None = None) -> Rows:
        """What the sums over the columns mean for the rows."""
        positive = self.positive[r]
        if not self.slot:
            sums = torch.where(sums == 0, 1.0, sums)  # no candidate at all: log D is put at 0
            log_d = sums.log() if shift is None else sums.log() + shift / LOG2E
            return Rows(log_d - positive, sums.reciprocal(), torch.full_like(positive, -1.0))
        own = torch.exp2(positive * LOG2E if shift is None else positive * LOG2E - shift)
        whole = sums + own
        value = whole.log() - positive if shift is None else whole.log() + shift / LOG2E - positive
        # −log p = log(1 + Σ_j e^{l_j}/e^{l_own}) keeps the digits of a loss near 0, where the difference loses them.
        near = own > torch.finfo(own.dtype).tiny ** 0.5
        value = torch.where(near, torch.log1p(sums / own), value)
        return Rows(value, whole.reciprocal(), -(sums / whole))


def log_normaliser(
    x: Tensor,
    c: Tensor,
    positive: Tensor | None = None,
    *,
    hide: Hide = hide_nothing,
    slot: bool = False,
    scale: float,
    bounded: bool,
    weight: Tensor | None,
    tile: Tile,
    more: Tensor | None = None,
    fixed: Sequence[Tensor | None] = (),
) -> Tensor:
    """log D_i − positive_i over the candidates c, ``[N]``, or its weighted sum. ``fixed`` is for `tiled`.

    ``more`` are further candidates, whose columns follow those of c. They are not joined to c, so that a gradient is
    computed only for the part that wants one.
    """

    def run(tensors: Sequence[Tensor], weight: Tensor | None, needs: Sequence[bool]) -> tuple[Tensor, Grads]:
        x, c, positive, more = tensors
        block = Softmax(x.new_zeros(len(x)) if positive is None else positive, hide, slot, bounded)
        return softmax_pass(x, c, block, more=more, scale=scale, weight=weight, needs=needs, tile=tile)

    return tiled(run, weight, x, c, positive, more, fixed=fixed)


def softmax_pass(
    x: Tensor,
    c: Tensor,
    block: Softmax,
    *,
    more: Tensor | None = None,
    scale: float,
    weight: Tensor | None,
    needs: Sequence[bool],
    tile: Tile,
) -> tuple[Tensor, Grads]:
    """The values of the plain normaliser over c and ``more``, and its gradients for x, c, positive and ``more`` where a
    weight is given.

    Unbounded logits need whole rows for their maximum. Bounded ones are streamed as attention does it: blocks small
    enough for the cache give Σ_j e^{l_ij} and Σ_j e^{l_ij} c_j in one pass, and the row is normalised at the end. Where
    candidates want their gradient too, their blocks of a strip of rows are kept until its normaliser is known.
    """
    if not block.bounded:
        return strips_over_both(x, c, more, block, scale=scale, weight=weight, needs=needs, tile=tile)
    x = x.contiguous()
    x2 = x * (LOG2E * scale)
    values = x.new_empty(len(x))
    wants_x, wants_c, wants_positive, wants_more = (weight is not None and need for need in needs)
    gx = torch.zeros_like(x) if wants_x else None
    gp = torch.zeros_like(values) if wants_positive else None
    parts = [_part(c, wants_c)] + ([] if more is None else [_part(more, wants_more)])
    learned = sum(len(part.rows) for part in parts if part.gradient is not None)
    height = max(1, min(len(x), strip_height(learned or 1, x.element_size(), tile)))
    columns = list(_columns(parts, height, tile))
    kept = sum(column.gradient is not None for column in columns)
    size = height * max(len(column.rows) for column in columns)
    buffers = slots(min(kept + 1, len(columns)), size, like=x)  # the last is for all blocks that are not kept
    for r in spans(len(x), height):
        sums = x.new_zeros(r.stop - r.start)
        strip: list[tuple[Tensor, _Column]] = []
        for column in columns:
            shape = (r.stop - r.start, len(column.rows))
            e = buffers[-1 if column.gradient is None else len(strip)][: shape[0] * shape[1]].view(shape)
            torch.mm(x2[r], column.rows.T, out=e)
            block.hide(e, r, column.place)
            sums += e.exp2_().sum(1)
            if column.gradient is not None:
                strip.append((e, column))
            elif gx is not None:
                gx[r].addmm_(e, column.rows)
        rows = block.rows(sums, r)
        values[r] = rows.value
        if weight is None:
            continue
        slope = (rows.factor * weight[r])[:, None] * scale
        if strip:
            pulled = x[r] * slope
            for e, column in strip:
                assert column.gradient is not None
                column.gradient.addmm_(e.T, pulled)
                if gx is not None:
                    gx[r].addmm_(e, column.rows)
        if gx is not None:
            gx[r] *= slope
        if gp is not None and rows.positive is not None:
            gp[r] = rows.positive * weight[r]
    return values, (gx, parts[0].gradient, gp, None if more is None else parts[1].gradient)


class _Column(NamedTuple):
    """Some candidates: their rows, where they stand among all, and where their gradient goes, if it is wanted."""

    rows: Tensor
    place: slice
    gradient: Tensor | None


def _part(c: Tensor, wants: bool) -> _Column:
    c = c.contiguous()
    return _Column(c, slice(0, len(c)), torch.zeros_like(c) if wants else None)


def _columns(parts: Sequence[_Column], height: int, tile: Tile) -> Iterator[_Column]:
    """The parts cut into blocks, those of the second standing after those of the first."""
    start = 0
    for c, _, gradient in parts:
        for s in spans(len(c), stream_width(height, len(c), c.element_size(), tile)):
            yield _Column(c[s], slice(start + s.start, start + s.stop), None if gradient is None else gradient[s])
        start += len(c)


def plain_block(logits: Tensor, r: slice, c: slice) -> tuple[Tensor, Tensor]:
    """The square's block where everyone but the anchor itself is a candidate."""
    logits.exp2_()
    if r == c:
        logits.fill_diagonal_(0.0)
    over_columns = logits.sum(1)
    return over_columns, over_columns if r == c else logits.sum(0)


def pair_square(z: Tensor, positive: Tensor, hide: Hide, *, scale: float, weight: Tensor | None, tile: Tile) -> Tensor:
    """`softmax_square` where each anchor has one positive, which ``hide`` leaves out of the blocks: as a slot of its
    own it has the same logit above and below the fraction, so that a loss near 0 keeps its digits."""

    def block(logits: Tensor, r: slice, c: slice) -> tuple[Tensor, Tensor]:
        hide(logits, r, c)
        return plain_block(logits, r, c)

    def run(tensors: Sequence[Tensor], weight: Tensor | None, needs: Sequence[bool]) -> tuple[Tensor, Grads]:
        z, positive = tensors
        return square(z, positive, block, slot=True, scale=scale, weight=weight, needs=needs, tile=tile)

    return tiled(run, weight, z, positive)


def softmax_square(z: Tensor, positive: Tensor, *, scale: float, weight: Tensor | None, tile: Tile) -> Tensor:
    """log D_i − positive_i of z against itself, self excluded, logits bounded: the fast path."""

    def run(tensors: Sequence[Tensor], weight: Tensor | None, needs: Sequence[bool]) -> tuple[Tensor, Grads]:
        z, positive = tensors
        return square(z, positive, plain_block, scale=scale, weight=weight, needs=needs, tile=tile)

    return tiled(run, weight, z, positive)
