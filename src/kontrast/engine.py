r"""The engine below the losses: block sizes, the passes over blocks, and where their gradients are kept.

Every loss here is, per anchor i over candidates j, with logits l_ij = scale·⟨x_i, c_j⟩ (scale = 1/τ, or 1 where a
learned τ has divided x before):

    (1)  ℓ_i = log D_i − positive_i           D_i = Σ_j a_ij e^{l_ij}  (+ terms of the loss's own)
    (2)  ∂ℓ_i/∂l_ij = a_ij e^{l_ij} / D_i     ∂ℓ_i/∂positive_i = −1

`positive` is linear in the embeddings, so plain autograd gives its gradient in O(N·D); only D needs blocks.
The N×M logits never exist at once:

- `strips`: a block of rows against every candidate. Whole rows are there, so the normaliser is known within
    the block and both gradients, to x and to c, follow without recomputing; a row maximum is exact when logits
    are unbounded, and a loss may do what it likes with its rows (the nearest k, a second exponential). Where neither
    is needed, `softmax_pass` streams smaller blocks that stay in cache.
- `square`: z against itself with bounded logits. Only blocks on or above the diagonal are computed, one
    exponential serving (i, j) and (j, i):

        (3)  ∂L/∂l_ij + ∂L/∂l_ji = a_ij e^{l_ij} (g_i/D_i + g_j/D_j)      g = the weight of each anchor in L

    Blocks are kept for the gradient pass while they fit KEEP_BYTES and recomputed beyond it.

Exponentials are powers of two, 2^(l·log₂e): torch's `exp2` is 2.6 times as fast as its `exp` on a CPU.
Where |l| is at most RANGE nothing is subtracted first: e^{±60} is far inside float32, and so are its sums.

A loss tells the engine the weight g of each anchor (1/M for a mean, 1 for a sum), so the gradient is computed
in the forward pass and only scaled in backward; with ``reduction="none"`` it is recomputed there with the
incoming g. Either way what is kept between the passes is O(N·D). These gradients have no graph; `kontrast.autograd`
says how a loss gets its second derivative.

The plain normaliser, D_i = Σ_j a_ij e^{l_ij} with a_ij ∈ {0, 1}, is what most losses need: `log_normaliser` for queries
against candidates, `softmax_square` for z against itself. Candidates that an anchor does not see get the logit −∞, by
a `Hide`.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from kontrast.autograd import (
    ReverseOnly,
    Twin,
    dense_gradients,
    refuse_batched,
    refuse_costly,
    refuse_second_order,
)
from kontrast.registry import quoted

LOG2E = math.log2(math.e)
RANGE = {torch.float32: 60.0, torch.float64: 600.0}  # largest |logit| that needs no shift
KEEP_BYTES = 144 * 2**20  # blocks of a square kept for its gradient: all of them up to N = 8,192 in float32
SLAB_BYTES = 24 * 2**20  # they are allocated in pieces that glibc keeps for the next step instead of unmapping
STRIP_BYTES = 32 * 2**20  # one block of whole rows
STREAM_BYTES = 4 * 2**20  # one block where rows need not be whole

Tile = int | str  # a number of rows, or "auto"
Grads = tuple[Tensor | None, ...]


# ------------------------------------------------------------------------------------------ block sizes


def check_tile(tile: Tile) -> Tile:
    """``"auto"``, or the side of a block."""
    if tile == "auto":
        return tile
    if not isinstance(tile, numbers.Integral) or isinstance(tile, bool) or tile < 1:
        raise ValueError(f'tile={quoted(tile)}: must be "auto" or a whole number above 0')
    return int(tile)


def square_blocks(n: int, device: torch.device, tile: Tile) -> list[tuple[slice, slice]]:
    """Rows and columns of a square's blocks: each span of rows against the columns from its own first one on.

    "auto" on a CPU was measured on cores with 1 MB of L2 each at D = 128: one block below N = 384 (a second one saves
    less than its operations cost), 256 × 512 below N = 4,096, and from there 1,024 × 1,024 is as fast within 5 %. Of
    sizes as fast the larger is taken: each operation on a block waits for all its threads, so where another process
    holds one of the cores, the time goes with the number of operations. An accelerator starts each operation at a cost
    and gets 4,096 (chosen, not measured).
    """
    if isinstance(tile, int):
        height = width = tile
    elif device.type != "cpu":
        height = width = 4096
    elif n < 384:
        height = width = 384
    else:
        height, width = (256, 512) if n < 4096 else (1024, 1024)
    if n <= height:
        return [(slice(0, n), slice(0, n))]
    return [(r, c) for r in spans(n, height) for c in spans(n, width, r.start)]


def strip_height(m: int, itemsize: int, tile: Tile) -> int:
    """How many whole rows of m logits make a block: "auto" fills STRIP_BYTES, between 16 and 1,024 rows."""
    if isinstance(tile, int):
        return tile
    return min(1024, max(16, STRIP_BYTES // (itemsize * max(m, 1))))


def stream_width(height: int, m: int, itemsize: int, tile: Tile) -> int:
    """Columns of a block where rows need not be whole: with 1,024 rows 1,024, with fewer rows more (STREAM_BYTES)."""
    return min(m, tile if isinstance(tile, int) else max(1024, STREAM_BYTES // (itemsize * height)))


def spans(n: int, size: int, first: int = 0) -> list[slice]:
    """``first``…n in pieces of ``size``; the last may be shorter.

    >>> spans(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(start, min(start + size, n)) for start in range(first, n, size)]


def slots(sizes: Sequence[int], *, like: Tensor) -> list[Tensor]:
    """Buffers of so many elements each, cut from slabs: few large allocations are reused from step to step."""
    slabs: list[list[int]] = []
    room = 0
    for size in sizes:
        if size > room:
            slabs.append([])
            room = max(size, SLAB_BYTES // like.element_size())
        slabs[-1].append(size)
        room -= size
    return [slot for slab in slabs for slot in like.new_empty(sum(slab)).split_with_sizes(slab)]


def in_range(bound: float, terms: int, dtype: torch.dtype) -> bool:
    """Whether sums of ``terms`` exponentials of logits up to ±``bound`` stay inside the dtype's range."""
    return bound + math.log(max(terms, 1)) <= RANGE[dtype]


def largest_logit(x: Tensor, c: Tensor) -> float:
    """A bound on |⟨x_i, c_j⟩| without computing them: the product of the largest norms."""
    if 0 in (len(x), len(c)):
        return 0.0
    return float(torch.linalg.vector_norm(x, dim=1).max() * torch.linalg.vector_norm(c, dim=1).max())


# --------------------------------------------------------------------------------------------- autograd


class Pass(Protocol):
    """One evaluation: ℓ, and, when ``weight`` is given, the gradient of Σ_i weight_i ℓ_i for what ``needs`` it."""

    def __call__(
        self, tensors: Sequence[Tensor], weight: Tensor | None, needs: Sequence[bool]
    ) -> tuple[Tensor, Grads]: ...


def tiled(
    run: Pass,
    weight: Tensor | None,
    *tensors: Tensor | None,
    fixed: Sequence[Tensor | None] = (),
    twin: Twin | None = None,
) -> Tensor:
    """ℓ as a differentiable ``[N]``, or, given each anchor's weight, the scalar Σ_i weight_i ℓ_i.

    ``fixed`` are tensors of the user's that ``run`` also reads: changing them before backward must be an error.
    ``twin`` is the dense form, for second derivatives; without it they are refused.
    """
    differentiable = False
    if torch.is_grad_enabled():
        for t in tensors:
            differentiable = differentiable or (t is not None and t.requires_grad)
    inputs = () if twin is None else twin.inputs
    return _Tiled.apply(run, weight, differentiable, fixed, twin, *tensors, *inputs)  # type: ignore[no-any-return]


@dataclass
class OnePass:
    """A loss that is one pass of the engine: the values or, given a weight, their sum. With a twin its node also has
    the second derivative."""

    run: Pass
    tensors: tuple[Tensor | None, ...]

    def __call__(self, weight: Tensor | None, twin: Twin | None = None) -> Tensor:
        return tiled(self.run, weight, *self.tensors, twin=twin)


class _Tiled(ReverseOnly):
    @staticmethod
    def forward(
        ctx: Any,
        run: Pass,
        weight: Tensor | None,
        differentiable: bool,
        fixed: Sequence[Tensor | None],
        twin: Twin | None,
        *tensors: Tensor,
    ) -> Tensor:
        ctx.set_materialize_grads(False)
        inputs: tuple[Tensor, ...] = ()
        if twin is not None:  # its inputs stand behind the engine's
            ctx.dense, ctx.pairs, ctx.weight = twin.values, twin.pairs, weight
            number = len(tensors) - len(twin.inputs)
            tensors, inputs = tensors[:number], tensors[number:]
        ctx.number, ctx.inputs = len(tensors), len(inputs)
        ctx.deferred = weight is None
        needs = ctx.needs_input_grad[5 : 5 + len(tensors)]
        values, grads = run(tensors, weight if differentiable else None, needs)
        if weight is not None:
            ctx.save_for_backward(*grads, *inputs)
            return torch.dot(weight, values)
        ctx.run = run
        ctx.save_for_backward(*tensors, *fixed, *inputs)  # fixed only for autograd to see that they stay as they are
        return values

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None) -> Grads:
        options: Grads = (None,) * 5
        if grad is None:  # which is how a switch goes past the engine
            return (None,) * len(ctx.needs_input_grad)
        number: int = ctx.number
        inputs: Grads = (None,) * ctx.inputs
        saved = ctx.saved_tensors
        if torch.is_grad_enabled():
            if not inputs:
                refuse_second_order()
            refuse_costly(1, ctx.pairs)
            needs = ctx.needs_input_grad[5 + number :]
            exact: Grads = dense_gradients(ctx.dense, ctx.weight, grad, saved[-len(inputs) :], needs)
            return options + (None,) * number + exact
        if ctx.deferred:
            refuse_batched(grad)
            with torch.autocast(grad.device.type, enabled=False):
                grads: Grads = ctx.run(saved[:number], grad, ctx.needs_input_grad[5 : 5 + number])[1]
            return options + grads + inputs
        for g in saved[:number]:
            options += (None if g is None else g * grad,)
        return options + inputs


# ----------------------------------------------------------------------------------- whole rows at a time


class Rows(NamedTuple):
    """What a loss says of a strip of rows, whose logits it has overwritten.

    ``value`` is ℓ_i; ∂ℓ_i/∂l_ij is ``factor_i`` times what now stands at (i, j), so that normalising a row costs
    nothing per element. ``positive`` is ∂ℓ_i/∂positive_i and ``temperature`` ∂ℓ_i/∂τ at fixed logits, where there
    are any.
    """

    value: Tensor
    factor: Tensor
    positive: Tensor | None = None
    temperature: Tensor | None = None


# Takes log₂e·l for the rows of a slice, overwrites it, and says what it means; `grad` tells if (2) is wanted.
StripBlock = Callable[[Tensor, slice, bool], Rows]


def strips(
    x: Tensor,
    c: Tensor,
    block: StripBlock,
    *,
    scale: float,
    weight: Tensor | None,
    needs: Sequence[bool],
    tile: Tile,
    learned: slice | None = None,
) -> tuple[Tensor, Grads]:
    """x against c in blocks of whole rows. ``needs`` and the gradients are for x, c, positive, temperature.

    ``learned`` are the candidates whose gradient is wanted, if they are not all; c's gradient has their rows only.
    """
    n, m, dim = len(x), len(c), x.shape[1]
    learned = slice(0, m) if learned is None else learned
    x, c = x.contiguous(), c.contiguous()
    x2 = x * (LOG2E * scale)
    values = x.new_zeros(n)
    wanted = [weight is not None and need for need in needs]
    gx = x.new_zeros(n, dim) if wanted[0] else None
    gc = x.new_zeros(learned.stop - learned.start, dim) if wanted[1] else None
    gp = x.new_zeros(n) if wanted[2] else None
    gt = x.new_zeros(()) if wanted[3] else None
    height = strip_height(m, x.element_size(), tile)
    buffer = x.new_empty(min(height, n), m)
    for r in spans(n, height):
        logits = torch.mm(x2[r], c.T, out=buffer[: r.stop - r.start])
        rows = block(logits, r, any(wanted))
        values[r] = rows.value
        if weight is None:
            continue
        g = weight[r]
        slope = (rows.factor * g)[:, None] * scale
        if gx is not None:
            torch.mm(logits, c, out=gx[r]).mul_(slope)  # (2)
        if gc is not None:
            gc.addmm_(logits[:, learned].T, x[r] * slope)
        if gp is not None and rows.positive is not None:
            gp[r] = rows.positive * g
        if gt is not None and rows.temperature is not None:
            gt += torch.dot(rows.temperature, g)
    return values, (gx, gc, gp, gt)


def strips_over_both(
    x: Tensor,
    c: Tensor,
    more: Tensor | None,
    block: StripBlock,
    *,
    scale: float,
    weight: Tensor | None,
    needs: Sequence[bool],
    tile: Tile,
) -> tuple[Tensor, Grads]:
    """`strips` over the rows of c, followed by those of ``more``. ``needs`` and gradients: x, c, positive, more."""
    wants_x, wants_c, wants_positive, wants_more = needs
    whole = c if more is None else torch.cat([c, more])
    wants_more = wants_more and more is not None
    learned = slice(0 if wants_c else len(c), len(whole) if wants_more else len(c))
    wanted = (wants_x, wants_c or wants_more, wants_positive, False)
    values, (gx, g, gp, _) = strips(
        x, whole, block, scale=scale, weight=weight, needs=wanted, tile=tile, learned=learned
    )
    gc = g[: len(c)] if g is not None and wants_c else None
    gm = g[len(c) - learned.start :] if g is not None and wants_more else None
    return values, (gx, gc, gp, gm)


# ---------------------------------------------------------------------------------------- z against itself

# Takes log₂e·l for a block, overwrites it with a·e^l, and returns its sums over columns and, if it reaches further than
# its own rows (`mirrored`), over the rows there.
SquareBlock = Callable[[Tensor, slice, slice], tuple[Tensor, Tensor | None]]


def mirrored(r: slice, c: slice) -> slice:
    """The columns of a block of the square beyond its own rows: their (j, i) is in no block, and (i, j) serves both."""
    return slice(max(r.stop, c.start), c.stop)


def square(
    z: Tensor,
    positive: Tensor,
    block: SquareBlock,
    *,
    slot: bool = False,
    scale: float,
    weight: Tensor | None,
    needs: Sequence[bool],
    tile: Tile,
) -> tuple[Tensor, Grads]:
    """z against itself, its logits within RANGE. ``needs`` and the gradients are for z and positive.

    With ``slot`` the positive is a candidate of its own, which the block function has left out.
    """
    n, z = len(z), z.contiguous()
    in_bits = {"beta": 0, "alpha": LOG2E * scale}  # log₂e·l from the product itself
    pairs = square_blocks(n, z.device, tile)
    wants_z = weight is not None and needs[0]
    if len(pairs) == 1:  # without slices: the time of a small batch goes to what surrounds its products
        e = z.new_empty(n, n)
        d = block(e.addmm_(z, z.T, **in_bits), *pairs[0])[0]
    else:
        sizes = [(r.stop - r.start) * (c.stop - c.start) for r, c in pairs]
        keep = wants_z and sum(sizes) * z.element_size() <= KEEP_BYTES
        outer, *blocks = slots([max(sizes), *(sizes if keep else [max(sizes)])], like=z)
        d = z.new_zeros(n)
        for k, (r, c) in enumerate(pairs):
            over_columns, over_rows = block(_view(blocks[k * keep], r, c).addmm_(z[r], z[c].T, **in_bits), r, c)
            d[r] += over_columns
            if over_rows is not None:
                d[mirrored(r, c)] += over_rows
    slope: Tensor | float = -1.0
    if slot:
        own = torch.exp2(positive * LOG2E)
        values = torch.log1p(d / own)  # (1), with the digits of a loss near 0
        slope = -d / (d + own)
        d += own
    else:
        d.clamp_(min=torch.finfo(d.dtype).tiny)  # an anchor without a candidate has no positive, and no weight either
        values = d.log().sub_(positive)  # (1)
    gp = weight * slope if weight is not None and needs[1] else None
    if weight is None or not wants_z:
        return values, (None, gp)

    u = (weight * scale).div_(d)
    if len(pairs) == 1:
        return values, (torch.mm(e.mul_(u[:, None] + u), z), gp)  # (3)
    gz = torch.zeros_like(z)
    for k, (r, c) in enumerate(pairs):
        e = _view(blocks[k * keep], r, c)
        if not keep:
            block(e.addmm_(z[r], z[c].T, **in_bits), r, c)
        e.mul_(torch.add(u[r, None], u[None, c], out=_view(outer, r, c)))  # (3)
        gz[r].addmm_(e, z[c])
        if c.stop > r.stop:
            beyond = mirrored(r, c)
            gz[beyond].addmm_(e[:, beyond.start - c.start :].T, z[r])
    return values, (gz, gp)


def _view(buffer: Tensor, r: slice, c: slice) -> Tensor:
    """The part of a buffer that a block fills, in its shape."""
    height, width = r.stop - r.start, c.stop - c.start
    return buffer[: height * width].view(height, width)


# ------------------------------------------------------------------------------------- the plain normaliser

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
    """log D_i − positive_i, ``[N]``, or its weighted sum.

        D_i = Σ_j e^{scale ⟨x_i, c_j⟩}    over the candidates j that ``hide`` leaves, of c and then of ``more``
              + e^{positive_i}            with ``slot`` alone

    The positive is in D_i only by ``slot``, or as a candidate that is not hidden. Where all candidates are hidden, log
    D_i is put at 0.

    Args:
        x: ``[N, D]``, the anchors.
        c: ``[M, D]``, the candidates.
        positive: ``[N]``, logits (already scaled); None is 0.
        hide: Hides candidates from an anchor, such as its own row (`hide_diagonal`, `hide_index`).
        slot: Whether the positive is a candidate of its own, beside the columns.
        scale: What products are multiplied by: 1/τ, or 1 if x is divided by a learned τ already.
        bounded: Whether no logit needs a shift before its exponential.
        weight: Of each anchor, for the weighted sum; None gives the values.
        tile: The side of the blocks, or "auto".
        more: Further candidates, whose columns follow those of c. They are not joined to c, so that a gradient is
            computed only for the part that wants one.
        fixed: For `tiled`.
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
    buffers = slots([size] * min(kept + 1, len(columns)), like=x)  # the last is for all blocks that are not kept
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


def plain_block(logits: Tensor, r: slice, c: slice) -> tuple[Tensor, Tensor | None]:
    """The square's block where everyone but the anchor itself is a candidate."""
    logits.exp2_()
    if r.start == c.start:
        logits.fill_diagonal_(0.0)
    if c.stop == r.stop:
        return logits.sum(1), None
    return logits.sum(1), logits[:, mirrored(r, c).start - c.start :].sum(0)


def pair_square(z: Tensor, positive: Tensor, hide: Hide, *, scale: float, weight: Tensor | None, tile: Tile) -> Tensor:
    """`softmax_square` where each anchor has one positive, which ``hide`` leaves out of the blocks: as a slot of its
    own it has the same logit above and below the fraction, so that a loss near 0 keeps its digits."""

    def block(logits: Tensor, r: slice, c: slice) -> tuple[Tensor, Tensor | None]:
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


# ------------------------------------------------------------------------------------------- products with masks


def row_sums(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """mask.sum(1) in blocks: torch would first make a copy of the whole mask in the dtype of the sums."""
    out = torch.empty(len(mask), dtype=dtype, device=mask.device)
    for r in spans(len(mask), strip_height(mask.shape[1], 8, "auto")):
        out[r] = mask[r].sum(1, dtype=dtype)
    return out


def masked_sum(mask: Tensor, c: Tensor) -> Tensor:
    """mask @ c for a mask of another dtype (bool, say), in blocks, so that no float copy of it is made."""
    return _MaskedSum.apply(mask, c, False)  # type: ignore[no-any-return]


class _MaskedSum(ReverseOnly):
    """mask @ c, or maskᵀ @ c. It is linear, and each is the other's gradient: all derivatives are exact."""

    @staticmethod
    def forward(ctx: Any, mask: Tensor, c: Tensor, transposed: bool) -> Tensor:
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(mask)
        ctx.transposed = transposed
        strips = spans(len(mask), strip_height(mask.shape[1], c.element_size(), "auto"))
        if transposed:
            out = c.new_zeros(mask.shape[1], c.shape[1])
            for r in strips:
                out.addmm_(mask[r].to(c.dtype).T, c[r])
            return out
        out = c.new_empty(len(mask), c.shape[1])
        for r in strips:
            torch.mm(mask[r].to(c.dtype), c, out=out[r])
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None) -> tuple[None, Tensor | None, None]:
        (mask,) = ctx.saved_tensors
        return None, None if grad is None else _MaskedSum.apply(mask, grad, not ctx.transposed), None
