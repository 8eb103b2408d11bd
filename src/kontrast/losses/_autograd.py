"""Hand-written gradients have no second derivative; asking for one must say so instead of yielding zero."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Backward = Callable[[Any, Tensor], Any]


def first_order_only(backward: Backward) -> Backward:
    """For the backward of an ``autograd.Function``: with ``create_graph=True`` the gradients it returns raise when they
    are differentiated. (torch's ``once_differentiable`` lets them pass as constants if the incoming gradient is one.)
    """

    @functools.wraps(backward)
    def wrapped(ctx: Any, grad: Tensor) -> Any:
        asked = torch.is_grad_enabled()
        with torch.no_grad():
            grads = backward(ctx, grad)
        if not asked:
            return grads
        if isinstance(grads, tuple):
            return tuple(g if g is None else _Once.apply(g, _tied(g)) for g in grads)
        return _Once.apply(grads, _tied(grads))

    return wrapped


def _tied(grad: Tensor) -> Tensor:
    return torch.zeros((), device=grad.device, requires_grad=True)


class _Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, grad: Tensor, tied: Tensor) -> Tensor:
        return grad.view_as(grad)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        raise RuntimeError(
            "kontrast's losses have no second derivative: their gradient is computed block by block. For one, use the "
            "dense `reference` in the loss's module: plain torch, per anchor, on rows that are normalised already"
        )
