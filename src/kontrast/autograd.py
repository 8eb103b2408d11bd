r"""Derivatives of the losses beyond the first.

The engine's gradients are formulas, computed block by block: they are exact, and they have no graph. So the node of a
loss decides in backward how the gradient is computed. A loss that is one pass of the engine is one node
(`engine.OnePass`); any other is followed by a switch, a node that is the identity on the value:

- ``create_graph=False``, every ordinary step: the gradient is the engine's. No N×M tensor exists.
- ``create_graph=True``, which asks for a second derivative: the loss's dense `reference` is computed from the rows and
  differentiated by torch. All N·M similarities exist at once, several times over, hence the limit MAX_PAIRS.
- where that is not possible (too many pairs, several processes) it raises: the engine's gradient would be taken for a
  constant, and the second derivative would be silently wrong.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar

import torch
from torch import Tensor

# Largest N·M for which a second derivative is computed: 4,096 anchors against 4,096 candidates.
MAX_PAIRS = 2**24
INSTEAD = (
    "differentiate the dense `reference` in the loss's module: plain torch, one value per anchor, on rows that are "
    "normalised already"
)
P = ParamSpec("P")
R = TypeVar("R")


class Twin(NamedTuple):
    """The dense form of a loss on given inputs, for its second derivative.

    ``values(*inputs)`` are the values of the anchors in plain torch, ``[N]``. ``inputs`` are all tensors of the user's
    that it reads, also those without a gradient: they are saved, so that changing them before backward is noticed.
    ``pairs`` is N·M.
    """

    values: Callable[..., Tensor]
    inputs: tuple[Tensor | None, ...]
    pairs: int


def twice_differentiable(value: Tensor, weight: Tensor | None, twin: Twin | None, *, processes: int = 1) -> Tensor:
    """``value`` as it is, with a gradient that can be differentiated again.

    Args:
        value: the values of the anchors, or, with ``weight``, their weighted sum.
        weight: the weight of each anchor.
        twin: the dense form; None where ``value`` is plain torch and has every derivative already.
        processes: how many processes the value is computed by. A second derivative over several is refused.

    Returns:
        A copy of the value.
    """
    if not value.requires_grad or (twin is None and processes == 1):
        return value
    pairs, inputs = (0, ()) if twin is None else (twin.pairs, twin.inputs)
    dense = None if twin is None else twin.values
    return _Switch.apply(dense, weight, pairs, processes, value, *inputs)  # type: ignore[no-any-return]


class ReverseOnly(torch.autograd.Function):
    """Base of the functions here: asking for forward mode is an error that says what to use."""

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """Always raises."""
        raise RuntimeError(
            "kontrast's losses have no forward mode (torch.autograd.forward_ad, strategy='forward-mode'). Use reverse "
            f"mode, which is torch's default, or {INSTEAD}"
        )


class _Switch(ReverseOnly):
    @staticmethod
    def forward(
        ctx: Any,
        dense: Callable[..., Tensor] | None,
        weight: Tensor | None,
        pairs: int,
        processes: int,
        value: Tensor,
        *inputs: Tensor | None,
    ) -> Tensor:
        ctx.set_materialize_grads(False)
        ctx.dense, ctx.weight, ctx.pairs, ctx.processes = dense, weight, pairs, processes
        ctx.save_for_backward(*inputs)  # read for a second derivative only: in an ordinary step they may change
        return value.clone()  # not a view of it, which could not be changed in place (loss /= steps)

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None) -> tuple[Tensor | None, ...]:
        nothing = (None,) * len(ctx.needs_input_grad)
        if grad is None or not torch.is_grad_enabled():
            return (*nothing[:4], grad, *nothing[5:])
        refuse_costly(ctx.processes, ctx.pairs)
        gradients = dense_gradients(ctx.dense, ctx.weight, grad, ctx.saved_tensors, ctx.needs_input_grad[5:])
        return (*nothing[:5], *gradients)


def dense_gradients(
    dense: Callable[..., Tensor],
    weight: Tensor | None,
    grad: Tensor,
    tensors: Sequence[Tensor],
    needs: Sequence[bool],
) -> tuple[Tensor | None, ...]:
    """The gradients, with a graph, of what needs them among the inputs of a dense form."""
    # Views, so that each is a variable of its own also where one input is computed from another.
    inputs = [t.view_as(t) if need else t for t, need in zip(tensors, needs, strict=True)]
    wanted = [t for t, need in zip(inputs, needs, strict=True) if need]
    with torch.autocast(grad.device.type, enabled=False):
        values = dense(*inputs)
        total = values if weight is None else torch.dot(weight, values)
        gradients = iter(torch.autograd.grad(total, wanted, grad, create_graph=True, materialize_grads=True))
    return tuple(next(gradients) if need else None for need in needs)


def refuse_costly(processes: int, pairs: int) -> None:
    """Raise where no second derivative is computed: over several processes, or of too many pairs."""
    if processes > 1:
        raise RuntimeError(
            f"this loss is computed by {processes} processes, and its second derivative (create_graph=True) in one "
            f"only. Compute it in one process, or pass gather_distributed=False for the loss of each rank's own rows"
        )
    if pairs > MAX_PAIRS:
        raise RuntimeError(
            f"this loss compares {pairs:,} pairs (anchors × candidates), and its second derivative (create_graph=True) "
            f"is computed for up to {MAX_PAIRS:,}, since it needs them all at once. Use fewer rows, or {INSTEAD}"
        )


def refuse_second_order() -> None:
    """Raise in the backward of a function whose gradient has no graph, where ``create_graph=True`` asks for one.

    (torch's ``once_differentiable`` returns a constant where the incoming gradient is one, also if the function is not
    linear.)
    """
    raise RuntimeError(f"this loss has no second derivative (create_graph=True). For one, {INSTEAD}")


def refuse_transforms() -> None:
    """Raise inside a transform of ``torch.func``: they do not reach inside the engine."""
    if torch._C._are_functorch_transforms_active():
        raise RuntimeError(
            "kontrast's losses cannot be called inside a transform of torch.func (grad, vmap, jacrev, hessian, …). Use "
            "torch.autograd.grad, with create_graph=True for second derivatives, or torch.autograd.functional.hessian; "
            f"or {INSTEAD}"
        )


def refuse_batched(grad: Tensor) -> None:
    """Raise where one incoming gradient stands for several: the engine writes into buffers of its own."""
    functorch = torch._C._functorch
    if functorch.is_batchedtensor(grad) or functorch.is_legacy_batchedtensor(grad):
        raise RuntimeError(
            'the gradient of a loss with reduction="none" cannot be computed for several incoming gradients at once '
            "(is_grads_batched=True, vectorize=True). Compute them one after another (vectorize=False)"
        )


def full_precision(forward: Callable[P, R]) -> Callable[P, R]:
    """Run a loss or a measure outside autocast and outside torch.compile.

    Half-precision training must not reach inside it, and torch.compile would unroll the loops over blocks (the graph
    breaks around the function).
    """

    @functools.wraps(forward)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        if torch.compiler.is_compiling():  # asked here, because disabling ahead would load the compiler on import
            return torch.compiler.disable(wrapped)(*args, **kwargs)  # type: ignore[no-untyped-call, no-any-return]
        if torch._C._are_functorch_transforms_active():
            refuse_transforms()
        device = "cpu"
        for value in (*args, *kwargs.values()):
            if isinstance(value, Tensor):
                device = "cpu" if value.is_meta else value.device.type
                break
        if not torch.is_autocast_enabled(device):
            return forward(*args, **kwargs)
        with torch.autocast(device, enabled=False):
            return forward(*args, **kwargs)

    return wrapped
