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
  is needed, `_softmax.softmax_pass` streams smaller blocks that stay in cache.
- `square`: z against itself with bounded logits. Only blocks on or above the diagonal are computed, one
  exponential serving (i, j) and (j, i):

    (3)  ∂L/∂l_ij + ∂L/∂l_ji = a_ij e^{l_ij} (g_i/D_i + g_j/D_j)      g = the weight of each anchor in L

  Blocks are kept for the gradient pass while they fit KEEP_BYTES and recomputed beyond it.

Exponentials are powers of two, 2^(l·log₂e): torch's `exp2` is 2.6 times as fast as its `exp` on a CPU.
Where |l| is at most RANGE nothing is subtracted first: e^{±60} is far inside float32, and so are its sums.

A loss tells the engine the weight g of each anchor (1/M for a mean, 1 for a sum), so the gradient is computed
in the forward pass and only scaled in backward; with ``reduction="none"`` it is recomputed there with the
incoming g. Either way what is kept between the passes is O(N·D). These gradients have no graph; `_autograd` says how a
loss gets its second derivative.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from kontrast.autograd import ReverseOnly, first_order_only, refuse_batched

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
        raise ValueError(f'tile must be "auto" or a whole number above 0, got {tile!r}')
    return int(tile)


def square_side(n: int, device: torch.device, tile: Tile) -> int:
    """Side of a square's blocks.

    "auto" on a CPU was measured on two cores with 1 MB of L2 each at D = 128: 512 is the fastest below N = 4,096, and
    from there 1,024 is as fast within 3 %. Of sizes as fast the larger is taken: each operation on a block waits for
    all its threads, so where another process holds one of the cores, the time goes with the number of operations. An
    accelerator starts each operation at a cost and gets 4,096 (chosen, not measured).
    """
    if isinstance(tile, int):
        return tile
    if device.type != "cpu":
        return 4096
    return 512 if n < 4096 else 1024


def strip_height(m: int, itemsize: int, tile: Tile) -> int:
    """How many whole rows of m logits make a block: "auto" fills STRIP_BYTES, between 16 and 1,024 rows."""
    if isinstance(tile, int):
        return tile
    return min(1024, max(16, STRIP_BYTES // (itemsize * max(m, 1))))


def stream_width(height: int, m: int, itemsize: int, tile: Tile) -> int:
    """Columns of a block where rows need not be whole: with 1,024 rows 1,024, with fewer rows more (STREAM_BYTES)."""
    return min(m, tile if isinstance(tile, int) else max(1024, STREAM_BYTES // (itemsize * height)))


def spans(n: int, size: int) -> Iterator[slice]:
    """0…n in pieces of ``size``; the last may be shorter.

    >>> list(spans(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def slots(number: int, size: int, *, like: Tensor) -> list[Tensor]:
    """So many buffers of so many elements, cut from slabs: few large allocations are reused from step to step."""
    per_slab = max(1, SLAB_BYTES // (size * like.element_size()))
    return [slot for s in spans(number, per_slab) for slot in like.new_empty(s.stop - s.start, size)]


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


def tiled(run: Pass, weight: Tensor | None, *tensors: Tensor | None, fixed: Sequence[Tensor | None] = ()) -> Tensor:
    """ℓ as a differentiable ``[N]``, or, given each anchor's weight, the scalar Σ_i weight_i ℓ_i.

    ``fixed`` are tensors of the user's that ``run`` also reads: changing them before backward must be an error.
    """
    differentiable = torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)
    return _Tiled.apply(run, weight, differentiable, fixed, *tensors)  # type: ignore[no-any-return]


class _Tiled(ReverseOnly):
    @staticmethod
    def forward(
        ctx: Any,
        run: Pass,
        weight: Tensor | None,
        differentiable: bool,
        fixed: Sequence[Tensor | None],
        *tensors: Tensor,
    ) -> Tensor:
        ctx.set_materialize_grads(False)
        needs = ctx.needs_input_grad[4:]
        ctx.deferred = weight is None
        values, grads = run(tensors, weight if differentiable else None, needs)
        if weight is not None:
            ctx.save_for_backward(*grads)
            return torch.dot(weight, values)
        ctx.run = run
        ctx.number = len(tensors)
        ctx.save_for_backward(*tensors, *fixed)  # the latter only for autograd to see that they stay as they are
        return values

    @staticmethod
    @first_order_only
    def backward(ctx: Any, grad: Tensor) -> Grads:
        if ctx.deferred:
            refuse_batched(grad)
            with torch.autocast(grad.device.type, enabled=False):
                _, grads = ctx.run(ctx.saved_tensors[: ctx.number], grad, ctx.needs_input_grad[4:])
        else:
            grads = tuple(None if g is None else g * grad for g in ctx.saved_tensors)
        return (None, None, None, None, *grads)


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

# Takes log₂e·l for a block, overwrites it with a·e^l, and returns its sums over columns and over rows.
SquareBlock = Callable[[Tensor, slice, slice], tuple[Tensor, Tensor]]


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
    n = len(z)
    z2 = z.contiguous() * (LOG2E * scale) ** 0.5
    side = min(square_side(n, z.device, tile), n)
    pairs = [(r, c) for r in spans(n, side) for c in spans(n, side) if c.start >= r.start]
    wants_z = weight is not None and needs[0]
    keep = wants_z and len(pairs) * side * side * z.element_size() <= KEEP_BYTES
    outer, *blocks = slots(1 + (len(pairs) if keep else 1), side * side, like=z)

    def compute(k: int, r: slice, c: slice) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        shape = (r.stop - r.start, c.stop - c.start)
        e = blocks[k if keep else 0][: shape[0] * shape[1]].view(shape)
        torch.mm(z2[r], z2[c].T, out=e)
        return e, block(e, r, c)

    d = z.new_zeros(n)
    kept: list[Tensor] = []
    for k, (r, c) in enumerate(pairs):
        e, (over_columns, over_rows) = compute(k, r, c)
        d[r] += over_columns
        if r != c:
            d[c] += over_rows
        if keep:
            kept.append(e)
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

    u = weight / d * scale
    gz = torch.zeros_like(z)
    for k, (r, c) in enumerate(pairs):
        e = kept[k] if keep else compute(k, r, c)[0]
        e.mul_(torch.add(u[r, None], u[None, c], out=outer[: e.numel()].view_as(e)))  # (3)
        gz[r].addmm_(e, z[c])
        if r != c:
            gz[c].addmm_(e.T, z[r])
    return values, (gz, gp)
