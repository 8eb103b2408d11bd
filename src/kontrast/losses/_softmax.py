r"""The plain normaliser, D_i = Σ_j a_ij e^{l_ij} with a_ij ∈ {0, 1}: which candidates an anchor sees.

`Softmax` is what most losses hand to the engine's strips; `softmax_square` is its counterpart for z against
itself. Columns that an anchor does not see get the logit −∞.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

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
    strips,
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
    fixed: Sequence[Tensor | None] = (),
) -> Tensor:
    """log D_i − positive_i over the candidates c, ``[N]``, or its weighted sum. ``fixed`` is for `tiled`."""

    def run(tensors: Sequence[Tensor], weight: Tensor | None, needs: Sequence[bool]) -> tuple[Tensor, Grads]:
        x, c, positive = tensors
        block = Softmax(x.new_zeros(len(x)) if positive is None else positive, hide, slot, bounded)
        return softmax_pass(x, c, block, scale=scale, weight=weight, needs=needs, tile=tile)

    return tiled(run, weight, x, c, positive, fixed=fixed)


def softmax_pass(
    x: Tensor,
    c: Tensor,
    block: Softmax,
    *,
    scale: float,
    weight: Tensor | None,
    needs: Sequence[bool],
    tile: Tile,
) -> tuple[Tensor, Grads]:
    """The values of the plain normaliser, and its gradients for x, c and positive where a weight is given.

    Unbounded logits need whole rows for their maximum. Bounded ones are streamed as attention does it: blocks small
    enough for the cache give Σ_j e^{l_ij} and Σ_j e^{l_ij} c_j in one pass, and the row is normalised at the end. Where
    c wants its gradient too, the blocks of a strip of rows are kept until their normaliser is known.
    """
    if not block.bounded:
        values, grads = strips(x, c, block, scale=scale, weight=weight, needs=(*needs, False), tile=tile)
        return values, grads[:3]
    x, c = x.contiguous(), c.contiguous()
    x2 = x * (LOG2E * scale)
    values = x.new_empty(len(x))
    wants_x, wants_c, wants_positive = (weight is not None and need for need in needs)
    gx = torch.zeros_like(x) if wants_x else None
    gc = torch.zeros_like(c) if wants_c else None
    gp = torch.zeros_like(values) if wants_positive else None
    height = max(1, min(len(x), strip_height(len(c) if wants_c else 1, x.element_size(), tile)))
    width = stream_width(height, len(c), x.element_size(), tile)
    columns = list(spans(len(c), width))
    blocks = slots(len(columns) if wants_c else 1, height * width, like=x)
    for r in spans(len(x), height):
        sums = x.new_zeros(r.stop - r.start)
        strip = []
        for k, s in enumerate(columns):
            shape = (r.stop - r.start, s.stop - s.start)
            e = blocks[k if wants_c else 0][: shape[0] * shape[1]].view(shape)
            torch.mm(x2[r], c[s].T, out=e)
            block.hide(e, r, s)
            sums += e.exp2_().sum(1)
            if gc is not None:
                strip.append(e)
            elif gx is not None:
                gx[r].addmm_(e, c[s])
        rows = block.rows(sums, r)
        values[r] = rows.value
        if weight is None:
            continue
        slope = (rows.factor * weight[r])[:, None] * scale
        if gc is not None:
            pulled = x[r] * slope
            for e, s in zip(strip, columns, strict=True):
                gc[s].addmm_(e.T, pulled)
                if gx is not None:
                    gx[r].addmm_(e, c[s])
        if gx is not None:
            gx[r] *= slope
        if gp is not None and rows.positive is not None:
            gp[r] = rows.positive * weight[r]
    return values, (gx, gc, gp)


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
