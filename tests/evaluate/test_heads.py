"""All heads at once are what torch's optimiser makes of each alone."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from kontrast.data import generator
from kontrast.evaluate.heads import ORDER, train_heads
from tests.evaluate.conftest import clouds


def alone(
    x: torch.Tensor, y: torch.Tensor, classes: int, rate: float, decay: float, epochs: int, size: int
) -> nn.Linear:
    """One head by autograd and torch's SGD, in the same order of rows."""
    head = nn.Linear(x.shape[1], classes, dtype=x.dtype)
    nn.init.zeros_(head.weight)
    nn.init.zeros_(head.bias)
    groups = [{"params": [head.weight], "weight_decay": decay}, {"params": [head.bias], "weight_decay": 0.0}]
    search = torch.optim.SGD(groups, lr=rate, momentum=0.9, nesterov=True)
    steps, step = math.ceil(len(x) / size), 0
    for epoch in range(epochs):
        order = torch.randperm(len(x), generator=generator(5, ORDER, epoch))
        for rows in order.split(size):
            for group in search.param_groups:
                group["lr"] = rate * (1 + math.cos(math.pi * step / (steps * epochs))) / 2
            search.zero_grad()
            F.cross_entropy(head(x[rows]), y[rows]).backward()
            search.step()
            step += 1
    return head


def test_heads_are_torchs_sgd_each() -> None:
    x, y = clouds(230, 4, 6, 1.0, 0)
    x = x.double()
    rates, decays = [0.01, 0.3, 0.1], [0.0, 0.01, 0.1]
    heads = train_heads(x, y, 4, learning_rates=rates, weight_decays=decays, epochs=3, batch_size=64, seed=5)
    for g, (rate, decay) in enumerate(zip(rates, decays, strict=True)):
        expected = alone(x, y, 4, rate, decay, 3, 64)
        # The same steps in float64, added up in another order.
        assert torch.allclose(heads.weight[g], expected.weight, atol=1e-12)
        assert torch.allclose(heads.bias[g], expected.bias, atol=1e-12)
        assert torch.allclose(heads.scores(x, g), expected(x), atol=1e-11)


def test_the_seed_decides_and_nothing_else() -> None:
    x, y = clouds(100, 3, 5, 1.0, 0)
    options = {"learning_rates": [0.1], "weight_decays": [0.0], "epochs": 2, "batch_size": 16}
    state = torch.get_rng_state()
    first, again, other = (train_heads(x, y, 3, seed=s, **options) for s in (1, 1, 2))
    assert torch.equal(first.weight, again.weight)
    assert not torch.equal(first.weight, other.weight)
    assert torch.equal(torch.get_rng_state(), state)


def test_one_pair_a_head() -> None:
    with pytest.raises(ValueError, match="2 learning rates and 1 weight decays"):
        train_heads(torch.eye(2), torch.arange(2), 2, learning_rates=[1.0, 2.0], weight_decays=[0.0], epochs=1)
