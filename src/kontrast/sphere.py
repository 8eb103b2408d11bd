"""Rows on the unit sphere: what every loss and measure compares.

`unit` is differentiable and gives zero rows a zero gradient; `directions` is its form for measures, for rows of any
size; `unit_rows` is for rows that are stored; `sized` rescales all rows by one factor where their squares would not be
numbers.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from kontrast.autograd import ReverseOnly


def unit(x: Tensor) -> Tensor:
    """Rows of length one; a zero row stays zero and gets no gradient.

    Deviates: ``F.normalize`` divides by max(norm, 1e-12), so a zero row's gradient is multiplied by 1e12
    there (an overflow in half precision); here it is zero.

    >>> unit(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor([[0.6000, 0.8000],
            [0.0000, 0.0000]])
    """
    return _Unit.apply(x)[0]  # type: ignore[no-any-return]


def directions(x: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """`unit` for measures, of rows of any size but zero: also where their squares are 0 or infinite in ``dtype``.

    >>> directions(torch.tensor([[3e-30, 4e-30], [3e30, 4e30], [0.0, 0.0]]))
    tensor([[0.6000, 0.8000],
            [0.6000, 0.8000],
            [0.0000, 0.0000]])
    """
    dtype = x.dtype if dtype is None else dtype
    x = x if x.is_floating_point() else x.to(dtype)
    largest = torch.maximum(x.amax(1, keepdim=True), -x.amin(1, keepdim=True))  # 15 times as fast as the ∞-norm
    odd = _out_of_reach(largest, dtype)
    if bool(odd.any()):  # the other rows stay as they are, to the bit
        x = torch.where(odd, x / largest, x)
    return unit(x.to(dtype))


def unit_rows(x: Tensor) -> Tensor:
    """Rows ``[N, D]`` of length one, for the queue and the memory bank to store; a zero row stays zero.

    Deviates: ``F.normalize`` makes a zero row of one whose squares overflow, and leaves rows shorter than 1e-12 short;
    these are divided by their largest entry first. All others are those of ``F.normalize``, to the bit.

    >>> unit_rows(torch.tensor([[3e25, 4e25], [3e-25, 4e-25], [0.0, 0.0]]))
    tensor([[0.6000, 0.8000],
            [0.6000, 0.8000],
            [0.0000, 0.0000]])
    """
    norm = torch.linalg.vector_norm(x, dim=1, keepdim=True)
    largest = x.abs().amax(1, keepdim=True)
    odd = (norm.isinf() | (norm < 1e-12)) & (largest > 0)
    return F.normalize(torch.where(odd, x / largest, x), dim=1)


def sized(x: Tensor) -> tuple[Tensor, float]:
    """All rows over their largest entry, and that, if their squares are 0 or infinite; else as they are, and 1.

    >>> sized(torch.tensor([[1e-30, 2e-30]])), sized(torch.tensor([[1.0, 2.0]]))
    ((tensor([[0.5000, 1.0000]]), 2.000...e-30), (tensor([[1., 2.]]), 1.0))
    """
    largest = torch.maximum(x.amax(), -x.amin())
    return (x / largest, float(largest)) if bool(_out_of_reach(largest, x.dtype)) else (x, 1.0)


def _out_of_reach(largest: Tensor, dtype: torch.dtype) -> Tensor:
    """Whether the squares of rows with such largest entries, or of entries that count beside them, are not numbers."""
    least = torch.finfo(dtype).tiny ** 0.25  # 3e-10 in float32, 1e-77 in float64
    found: Tensor = (largest > 0) & largest.isfinite() & ((largest < least) | (largest > 1 / least))
    return found


class _Unit(ReverseOnly):
    """z = x/‖x‖ and 1/‖x‖; ∂z/∂xᵀ·g = (g − z⟨z, g⟩)/‖x‖, ∂(1/‖x‖)/∂x = −z/‖x‖².

    Both derivatives are made of the two outputs, which autograd knows: so they can be differentiated any number of
    times, and x is not kept.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        z, inverse = divide_by_length(x)
        ctx.save_for_backward(z, inverse)
        return z, inverse

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None, of_inverse: Tensor | None) -> Tensor | None:
        z, inverse = ctx.saved_tensors
        gradient = None if grad is None else unit_gradient(grad, z, inverse)
        if of_inverse is not None:  # in second derivatives only
            more = -of_inverse * inverse.square() * z
            gradient = more if gradient is None else gradient + more
        return gradient


def divide_by_length(x: Tensor) -> tuple[Tensor, Tensor]:
    """z = x/‖x‖ and 1/‖x‖ ``[…, 1]``, without a graph; both are 0 for a zero row."""
    norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    if norm.numel() == 0:
        return x.clone(), norm
    smallest, largest = torch.aminmax(norm)
    if not float(largest) < torch.inf:  # squares overflow before the rows do: take out the largest entry first
        most = x.abs().amax(-1, keepdim=True).clamp(min=1.0)
        norm = torch.linalg.vector_norm(x / most, dim=-1, keepdim=True) * most
    inverse = norm.reciprocal()
    # Below this the squares underflow and the norm is not known: such a row counts as zero.
    least = torch.finfo(x.dtype).tiny ** 0.5
    if not float(smallest) > least:
        inverse.masked_fill_(norm <= least, 0.0)
    return x * inverse, inverse


def unit_gradient(grad: Tensor, z: Tensor, inverse: Tensor) -> Tensor:
    """The gradient of x for one of z: (g − z⟨z, g⟩)/‖x‖."""
    along = (z * grad).sum(-1, keepdim=True)
    return torch.addcmul(grad, z, along, value=-1).mul_(inverse)
