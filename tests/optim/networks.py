"""A small network of every kind of parameter, and gradients for it, for the optimisers' tests."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def network(*, channels_last: bool = False) -> nn.Sequential:
    """Matrices, biases, norms, and a layer that does not learn."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Conv2d(4, 5, 3, bias=False), nn.Linear(5, 2))
    made[3].weight.requires_grad_(False)
    return made.to(memory_format=torch.channels_last) if channels_last else made  # type: ignore[call-overload, no-any-return]


def give_gradients(module: nn.Module, step: int, *, as_it_lies: bool = True) -> None:
    """Random ones, laid out as the parameters are, or in the usual way."""
    draw = torch.Generator().manual_seed(step)
    for p in module.parameters():
        if p.requires_grad:
            g = torch.randn(p.shape, generator=draw, dtype=p.dtype)
            p.grad = torch.empty_like(p).copy_(g) if as_it_lies else g


def weights(module: nn.Module) -> Tensor:
    """All in one row."""
    return torch.cat([p.detach().flatten() for p in module.parameters()])
