r"""Adam with decoupled weight decay (Loshchilov & Hutter), for encoders of timm that SGD trains badly.

    (1)  p ← p − lr β p                                    β = weight_decay
    (2)  m ← β₁ m + (1−β₁) g,   v ← β₂ v + (1−β₂) g²       g = ∇L(p)
    (3)  p ← p − lr · m/(1−β₁ᵗ) / (√(v/(1−β₂ᵗ)) + ε)

Torch's own, in one fused kernel where the device has it (CPU and CUDA).

Deviates: torch's default decay is 0.01; ours 0.05, what vision transformers are trained with.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import nn

from kontrast.checks import number
from kontrast.eager import eager
from kontrast.optim.optimizers._base import Groups, can_fuse, fuse, groups
from kontrast.registry import quoted


@eager
class AdamW(torch.optim.AdamW):
    """AdamW, (1)–(3).

    Args:
        module_or_parameters: What is trained, or groups of it (dictionaries, as torch has them); parameters without
            gradient are left out.
        lr: The learning rate.
        betas: β₁ and β₂, from 0 to below 1.
        eps: ε.
        weight_decay: β.
        exclude_norm_and_bias: Whether norms and biases are left out of the decay (1).

    Raises:
        ValueError: A number is outside its range, or no parameter requires a gradient.

    >>> AdamW(nn.Linear(3, 2), lr=1e-3).defaults["weight_decay"]
    0.05
    """

    usual_rates = (1e-5, 3e-3)  # no paper here uses it
    scales_with_batch = False  # the step is about lr in every weight, whatever the gradient

    def __init__(
        self,
        module_or_parameters: nn.Module | Iterable[nn.Parameter] | Groups,
        *,
        lr: float,
        betas: Sequence[float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.05,
        exclude_norm_and_bias: bool = False,
    ) -> None:
        parameters = groups(module_or_parameters, apart=exclude_norm_and_bias, weight_decay=0.0)
        if isinstance(betas, str) or not isinstance(betas, Sequence) or len(betas) != 2:
            raise ValueError(f"betas={quoted(betas)}: must be two numbers, such as [0.9, 0.999]")
        b1, b2 = (number("betas", b, least=0.0, below=1.0) for b in betas)
        fused = can_fuse(parameters)
        super().__init__(
            parameters,
            lr=number("lr", lr, least=0.0),
            betas=(b1, b2),
            eps=number("eps", eps, least=0.0),
            weight_decay=number("weight_decay", weight_decay, least=0.0),
            fused=fused,
        )
        fuse(self, fused)
