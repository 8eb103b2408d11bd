"""SGD against its equations, written out."""

from __future__ import annotations

import pytest
import torch

from kontrast import optim
from tests.optim.networks import give_gradients, network, weights


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("exclude", [False, True])
def test_step_is_eqs_1_to_3(nesterov: bool, exclude: bool) -> None:
    """In float64, whose rounding over five steps stays far below assert_close's 1e-7."""
    lr, mu, beta = 0.1, 0.8, 0.01
    module, twin = network().double(), network().double()
    optimiser = optim.optimizer(
        "sgd", module, lr=lr, momentum=mu, weight_decay=beta, nesterov=nesterov, exclude_norm_and_bias=exclude
    )
    velocity: dict[torch.nn.Parameter, torch.Tensor] = {}
    for step in range(5):
        give_gradients(module, step)
        give_gradients(twin, step)
        optimiser.step()
        for p in twin.parameters():
            if p.grad is not None:
                g = p.grad + (0.0 if exclude and p.ndim <= 1 else beta) * p.detach()  # (1)
                velocity[p] = mu * velocity[p] + g if p in velocity else g  # (2)
                p.data -= lr * (g + mu * velocity[p] if nesterov else velocity[p])  # (3)
    for p, q in zip(module.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(p, q)


def test_the_fused_kernel_is_used_on_the_cpu_and_agrees_with_the_plain_loop() -> None:
    """To rounding: it multiplies and adds at once. Numbers below 2 and four steps of 1e-7: 1e-6 holds with room."""
    ends = []
    for make in (
        lambda p: optim.optimizer("sgd", p, lr=0.1, weight_decay=1e-4),
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=1e-4, foreach=False),
    ):
        module = network()
        optimiser = make([p for p in module.parameters() if p.requires_grad])
        for step in range(4):
            give_gradients(module, step)
            optimiser.step()
        ends.append((optimiser.defaults["fused"], weights(module)))
    assert [fused for fused, _ in ends] == [True, None]
    torch.testing.assert_close(ends[0][1], ends[1][1], atol=1e-6, rtol=0)


def test_nesterov_needs_momentum() -> None:
    with pytest.raises(ValueError, match="momentum=0: must be above 0 with nesterov=True"):
        optim.optimizer("sgd", network(), lr=0.1, momentum=0.0, nesterov=True)
    with pytest.raises(ValueError, match=r"momentum=.*: must be a finite number of at least 0 and below 1"):
        optim.optimizer("sgd", network(), lr=0.1, momentum=1.0)
