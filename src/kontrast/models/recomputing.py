r"""Activation checkpointing: what a part of a network computes is not kept for backward, but computed once more there.

Backward needs every activation of the forward pass; most of a training step's memory is that. A part that is recomputed
keeps its input alone, and makes its activations again when backward comes to it: the memory of all parts' inputs and of
the inside of one, for one more forward pass (Chen et al. 2016). Torch's `torch.utils.checkpoint` does the work.

The gradient is the same to the bit wherever the same kernels on the same input give the same bits, as on a CPU: the
second pass has the random numbers of the first (dropout), and batch norm in train mode normalises with the same batch.
Its running statistics have moved by then, and do not move again: in the second pass batch norm takes

    (1)  momentum 0, so that  running ← 1 · running + 0 · batch  is what it was,  and its counter is put back

Without gradient (evaluation, the target of momentum methods, the first pass of micro-batches) a part is simply called.

Deviates: timm's own ``set_grad_checkpointing`` moves the running statistics twice.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.checkpoint import checkpoint


def recompute(module: nn.Module) -> nn.Module:
    """Let a module's activations be computed again in backward, instead of kept.

    Args:
        module: It is changed in place; its parameters, its buffers and their names stay, and copies of it do the same.

    Returns:
        The module itself.

    >>> layer = recompute(nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1)))
    >>> layer(torch.ones(3, 2)).sum().backward()
    >>> layer[0].weight.grad.shape
    torch.Size([8, 2])
    """
    # A method of the instance, not a wrapper around it: names stay, and a deep copy is bound to its own parts.
    module.forward = types.MethodType(_forward, module)
    return module


def is_recomputed(module: nn.Module) -> bool:
    """Whether `recompute` was called on a module.

    >>> is_recomputed(nn.Linear(1, 1)), is_recomputed(recompute(nn.Linear(1, 1)))
    (False, True)
    """
    return getattr(vars(module).get("forward"), "__func__", None) is _forward


def _forward(self: nn.Module, *inputs: Any, **options: Any) -> Any:
    plain = functools.partial(type(self).forward, self)
    if not (torch.is_grad_enabled() and _needs_gradient(self, inputs)):
        return plain(*inputs, **options)
    contexts = functools.partial(_contexts, self)
    return checkpoint(plain, *inputs, use_reentrant=False, context_fn=contexts, **options)


def _needs_gradient(module: nn.Module, inputs: tuple[Any, ...]) -> bool:
    return any(isinstance(x, Tensor) and x.requires_grad for x in (*inputs, *module.parameters()))


def _contexts(module: nn.Module) -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
    return nullcontext(), _resting_statistics(module)


@contextmanager
def _resting_statistics(module: nn.Module) -> Iterator[None]:
    """(1) for every batch norm inside that is in train mode."""
    norms = [part for part in module.modules() if isinstance(part, _BatchNorm) and part.training]
    before = [(norm.momentum, norm.num_batches_tracked) for norm in norms]
    counts = [None if counter is None else counter.clone() for _, counter in before]
    for norm in norms:
        norm.momentum = 0.0
    try:
        yield
    finally:
        for norm, (momentum, counter), count in zip(norms, before, counts, strict=True):
            norm.momentum = momentum
            if counter is not None and count is not None:
                with torch.no_grad():
                    counter.copy_(count)
