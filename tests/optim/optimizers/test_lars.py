"""LARS against its equations, written out a tensor at a time, and against lightly's, of the same descent."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch import nn

from kontrast import optim
from tests.optim.networks import give_gradients, network, weights

LR, MU, BETA, ETA, EPS = 0.3, 0.8, 0.01, 0.02, 1e-8


def literal(module: nn.Module, steps: int, lr: float = LR, **options: Any) -> None:
    """(1)–(4) with loops, as solo-learn's file has them."""
    velocity: dict[nn.Parameter, torch.Tensor] = {}
    for step in range(steps):
        give_gradients(module, step)
        for p in module.parameters():
            if p.grad is None:
                continue
            vector = p.ndim <= 1
            beta = 0.0 if vector and options.get("exclude_bias_n_norm_wd") else BETA
            d, p_norm, g_norm = p.grad, float(p.detach().norm()), float(p.grad.norm())
            if not (vector and options.get("exclude_bias_n_norm")) and p_norm and g_norm:
                rate = ETA * p_norm / (g_norm + beta * p_norm + EPS)  # (1)
                if options.get("clip_lr"):
                    rate = min(rate / lr, 1.0)  # (2)
                d = rate * (p.grad + beta * p.detach())  # (3)
            velocity[p] = MU * velocity[p] + d if p in velocity else d
            p.data -= lr * (d + MU * velocity[p] if options.get("nesterov") else velocity[p])  # (4)


SWITCHES = ("clip_lr", "exclude_bias_n_norm", "exclude_bias_n_norm_wd", "nesterov")


@pytest.mark.parametrize("on", list(itertools.product([False, True], repeat=4)))
def test_step_is_eqs_1_to_4(on: tuple[bool, ...]) -> None:
    """In float64, whose rounding over five steps stays far below assert_close's 1e-7."""
    options = dict(zip(SWITCHES, on, strict=True))
    module, twin = network().double(), network().double()
    optimiser = optim.optimizer("lars", module, lr=LR, momentum=MU, weight_decay=BETA, eta=ETA, **options)
    for step in range(5):
        give_gradients(module, step)
        optimiser.step()
    literal(twin, 5, **options)
    torch.testing.assert_close(weights(module), weights(twin))


def test_switches_are_told_apart() -> None:
    """Else the test above could hold with options that do nothing; ε = 1e-8 of solo-learn is kept by default."""
    ends = {}
    for on in itertools.product([False, True], repeat=4):
        module = network().double()
        literal(module, 5, lr=1e-3, **dict(zip(SWITCHES, on, strict=True)))
        ends[on] = weights(module)
    alike = [(a, b) for a, b in itertools.combinations(ends, 2) if torch.equal(ends[a], ends[b])]
    # Where biases and norms are left out altogether, their decay is no matter.
    assert all(a[1] and b[1] and (a[0], a[3]) == (b[0], b[3]) for a, b in alike)
    assert optim.OPTIMIZERS.options("lars")["eps"] == EPS


def test_it_is_lightlys_where_that_has_the_option() -> None:
    """Same operations in another order: float64 and assert_close's own 1e-7."""
    lars = pytest.importorskip("lightly.utils.lars").LARS
    ends = []
    for make in (
        lambda m: optim.optimizer("lars", m, lr=LR, momentum=MU, weight_decay=BETA, eta=ETA),
        lambda m: lars(m.parameters(), lr=LR, momentum=MU, weight_decay=BETA, trust_coefficient=ETA),
    ):
        module = network().double()
        optimiser = make(module)
        for step in range(4):
            give_gradients(module, step)
            optimiser.step()
        ends.append(weights(module))
    torch.testing.assert_close(*ends)


@pytest.mark.parametrize("zero", ["weight", "gradient"])
def test_a_zero_weight_or_gradient_is_neither_scaled_nor_decayed(zero: str) -> None:
    layer = nn.Linear(3, 2, bias=False)
    layer.weight.grad = torch.ones(2, 3)
    (layer.weight.data if zero == "weight" else layer.weight.grad).zero_()
    before = layer.weight.detach().clone()
    optim.optimizer("lars", layer, lr=0.5, weight_decay=0.1).step()
    assert torch.equal(layer.weight.detach(), before - 0.5 * layer.weight.grad)


def test_clipping_at_a_rate_of_zero_moves_nothing() -> None:
    module = network()
    before = weights(module)
    give_gradients(module, 0)
    optim.optimizer("lars", module, lr=0.0, clip_lr=True, weight_decay=0.1).step()
    assert torch.equal(weights(module), before)


def test_a_learned_temperature_is_among_the_biases() -> None:
    scalar = nn.Parameter(torch.tensor(2.0))
    optimiser = optim.optimizer("lars", [scalar], lr=0.5, weight_decay=0.1, exclude_bias_n_norm=True)
    scalar.grad = torch.tensor(1.0)
    optimiser.step()
    assert scalar.item() == 1.5


def test_a_gradient_that_comes_later_starts_its_own_momentum() -> None:
    module, twin = network(), network()
    optimiser, other = (optim.optimizer("lars", m, lr=0.1) for m in (module, twin))
    give_gradients(module, 0)
    module[2].weight.grad = None
    optimiser.step()
    give_gradients(module, 1)
    give_gradients(twin, 1)
    optimiser.step()
    other.step()
    assert torch.equal(module[2].weight, twin[2].weight), "its first step is a first step"
    assert not torch.equal(module[0].weight, twin[0].weight)
