"""AdamW against its equations, written out."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from kontrast import optim
from tests.optim.networks import give_gradients, network


@pytest.mark.parametrize("exclude", [False, True])
def test_step_is_eqs_1_to_3(exclude: bool) -> None:
    """In float64, whose rounding over five steps stays far below assert_close's 1e-7."""
    lr, b1, b2, eps, beta = 0.01, 0.8, 0.95, 1e-6, 0.2
    module, twin = network().double(), network().double()
    optimiser = optim.optimizer(
        "adamw", module, lr=lr, betas=[b1, b2], eps=eps, weight_decay=beta, exclude_norm_and_bias=exclude
    )
    m: dict[Any, Any] = {}
    v: dict[Any, Any] = {}
    for step in range(5):
        give_gradients(module, step)
        give_gradients(twin, step)
        optimiser.step()
        for p in twin.parameters():
            if p.grad is not None:
                p.data -= lr * (0.0 if exclude and p.ndim <= 1 else beta) * p.data  # (1)
                m[p] = b1 * m.get(p, 0.0) + (1 - b1) * p.grad  # (2)
                v[p] = b2 * v.get(p, 0.0) + (1 - b2) * p.grad**2
                t = step + 1
                p.data -= lr * m[p] / (1 - b1**t) / ((v[p] / (1 - b2**t)) ** 0.5 + eps)  # (3)
    for p, q in zip(module.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(p, q)
    assert optimiser.defaults["fused"]


@pytest.mark.parametrize("wrong", [0.9, [0.9], [0.9, 0.99, 0.999], "0.9"])
def test_betas_are_two(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"betas=.*: must be two numbers"):
        optim.optimizer("adamw", network(), lr=0.1, betas=wrong)


def test_a_beta_of_one_is_refused() -> None:
    with pytest.raises(ValueError, match=r"betas=.*: must be a finite number of at least 0 and below 1"):
        optim.optimizer("adamw", network(), lr=0.1, betas=[0.9, 1.0])
