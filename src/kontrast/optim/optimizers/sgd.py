r"""Stochastic gradient descent with momentum, what all four papers train with on small images.

    (1)  g ← ∇L(p) + β p            β = weight_decay
    (2)  v ← μ v + g                μ = momentum; v = g at the first step
    (3)  p ← p − lr v               Nesterov: p ← p − lr (g + μ v)

Torch's own, in one fused kernel where the device has it (CPU and CUDA).

Deviates: none. The papers decay every parameter, norms and biases too, and so do we by default.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from kontrast.checks import number
from kontrast.eager import eager
from kontrast.optim.optimizers._base import Groups, can_fuse, fuse, groups


@eager
class SGD(torch.optim.SGD):
    """SGD with momentum, (1)–(3).

    Args:
        module_or_parameters: What is trained, or groups of it (dictionaries, as torch has them); parameters without
            gradient are left out.
        lr: The learning rate.
        momentum: μ, from 0 to below 1.
        weight_decay: β.
        nesterov: Whether the momentum is Nesterov's.
        exclude_norm_and_bias: Whether norms and biases are left out of the decay (1).

    Raises:
        ValueError: A number is outside its range, or no parameter requires a gradient.

    >>> SGD(nn.Linear(3, 2), lr=0.1, weight_decay=1e-4, exclude_norm_and_bias=True).param_groups[1]["weight_decay"]
    0.0
    """

    usual_rates = (0.036, 0.3)  # of the papers' recipes, for a batch of 256

    def __init__(
        self,
        module_or_parameters: nn.Module | Iterable[nn.Parameter] | Groups,
        *,
        lr: float,
        momentum: float = 0.9,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        exclude_norm_and_bias: bool = False,
    ) -> None:
        parameters = groups(module_or_parameters, apart=exclude_norm_and_bias, weight_decay=0.0)
        mu = number("momentum", momentum, least=0.0, below=1.0)
        if nesterov and mu == 0:
            raise ValueError("momentum=0: must be above 0 with nesterov=True. Set it, or use nesterov=False")
        fused = can_fuse(parameters)
        super().__init__(
            parameters,
            lr=number("lr", lr, least=0.0),
            momentum=mu,
            weight_decay=number("weight_decay", weight_decay, least=0.0),
            nesterov=bool(nesterov),
            fused=fused,
        )
        fuse(self, fused)
        if fused and mu:
            self.register_step_pre_hook(_begin_late)


def _begin_late(optimiser: torch.optim.Optimizer, *_: Any) -> None:
    """Give parameters whose first gradient comes late a velocity of 0, which makes their first step (2)'s v = g.

    Torch's fused kernel takes a group of which all have a velocity, or none.
    """
    for group in optimiser.param_groups:
        learning = [p for p in group["params"] if p.grad is not None]
        late = [p for p in learning if optimiser.state.get(p, {}).get("momentum_buffer") is None]
        if len(late) < len(learning):
            for p in late:
                optimiser.state[p]["momentum_buffer"] = torch.zeros_like(p)
