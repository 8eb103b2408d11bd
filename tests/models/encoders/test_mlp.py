from __future__ import annotations

import pytest
import torch
from torch import nn

from kontrast import models


def test_layers_as_asked() -> None:
    made = models.encoder("mlp", in_features=10, hidden=7, features=5, depth=3)
    kinds = [type(layer) for layer in made.layers]
    assert kinds == [nn.Linear, nn.BatchNorm1d, nn.ReLU] * 2 + [nn.Linear]
    assert [(m.in_features, m.out_features) for m in made.layers if isinstance(m, nn.Linear)] == [
        (10, 7),
        (7, 7),
        (7, 5),
    ]
    assert made.feature_dim == 5
    plain = models.encoder("mlp", in_features=10, batch_norm=False)
    assert [type(layer) for layer in plain.layers] == [nn.Linear, nn.ReLU, nn.Linear]
    assert all(m.bias is not None for m in plain.layers if isinstance(m, nn.Linear))
    linear = models.encoder("mlp", in_features=10, depth=1)
    assert [type(layer) for layer in linear.layers] == [nn.Linear]


def test_pixels_are_vectors_too() -> None:
    made = models.encoder("mlp", in_channels=2, image_size=(3, 4))
    assert made.in_features == 24
    assert models.encoder("mlp", in_channels=1, image_size=8).in_features == 64
    x = torch.randn(5, 2, 3, 4)
    assert torch.equal(made.eval()(x), made(x.flatten(1)))


def test_features_reach_below_zero() -> None:
    h = models.encoder("mlp", in_features=10, seed=0)(torch.randn(50, 10, generator=torch.Generator().manual_seed(0)))
    assert (h < 0).any()


def test_errors_speak() -> None:
    with pytest.raises(ValueError, match="in_features: must be set, the length of the vectors"):
        models.encoder("mlp")
    made = models.encoder("mlp", in_features=10)
    with pytest.raises(ValueError, match=r"vectors has shape \[3, 9\]: must be \[N, 10\]"):
        made(torch.zeros(3, 9))
    with pytest.raises(ValueError, match=r"vectors has shape \[10\]"):
        made(torch.zeros(10))
    with pytest.raises(ValueError, match="depth=0: must be a whole number of at least 1"):
        models.encoder("mlp", in_features=10, depth=0)
