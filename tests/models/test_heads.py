from __future__ import annotations

import pytest
import torch
from torch import nn

from kontrast import models


def layers(head: nn.Module) -> list[str]:
    """A head in words: Linear(in, out) with + where it has a bias, BN with + where it has weight and bias."""
    words = []
    for layer in head.modules():
        if isinstance(layer, nn.Linear):
            words.append(f"{layer.in_features}→{layer.out_features}{'' if layer.bias is None else '+'}")
        elif isinstance(layer, nn.BatchNorm1d):
            words.append(f"BN{layer.num_features}{'+' if layer.affine else ''}")
        elif isinstance(layer, nn.ReLU):
            words.append("ReLU")
    return words


@pytest.mark.parametrize(
    ("name", "in_dim", "expected"),
    [
        ("none", 512, ""),
        ("wang-liu", 512, "512→128+"),
        ("tcl", 512, "512→512+ ReLU 512→128+"),
        ("tcl", 2048, "2048→2048+ ReLU 2048→128+"),
        ("tcl-ssl", 512, "512→2048+ ReLU 2048→256+"),
        ("sce", 512, "512→512 BN512+ ReLU 512→256+"),
        ("sce-imagenet", 2048, "2048→2048 BN2048+ ReLU 2048→2048 BN2048+ ReLU 2048→256 BN256"),
        ("sce-predictor", 256, "256→4096 BN4096+ ReLU 4096→256"),
    ],
)
def test_heads_are_the_papers(name: str, in_dim: int, expected: str) -> None:
    made = models.head(name, in_dim=in_dim)
    assert " ".join(layers(made)) == expected
    assert made(torch.randn(4, in_dim)).shape == (4, made.out_dim)
    assert made.in_dim == in_dim


def test_every_named_head_is_tested_above() -> None:
    marked = test_heads_are_the_papers.pytestmark[0].args[1]
    assert {case[0] for case in marked} == set(models.HEADS)


def test_options_change_a_named_head() -> None:
    assert layers(models.head("sce", in_dim=64, out=128))[-1] == "512→128+"
    assert layers(models.head("sce-imagenet", in_dim=8, hidden=4096))[0] == "8→4096"
    assert layers(models.MLPHead(6, 5, 4, 1)) == ["6→4+"]
    assert layers(models.MLPHead(6, 5, 4, 3, bias=False)) == ["6→5", "ReLU", "5→5", "ReLU", "5→4"]
    assert layers(models.MLPHead(6, 5, 4, batch_norm=True, last_batch_norm=True, last_affine=True))[-1] == "BN4+"
    assert layers(models.LinearHead(6, 4, bias=False)) == ["6→4"]


def test_a_seed_fixes_the_start() -> None:
    a, b, c = (models.head("tcl", in_dim=8, seed=s).layers[0].weight for s in (1, 1, 2))
    assert torch.equal(a, b)
    assert not torch.equal(a, c)


def test_errors_speak() -> None:
    with pytest.raises(ValueError, match=r"no head 'sec'; did you mean 'sce'\? Known: none"):
        models.head("sec", in_dim=8)
    with pytest.raises(ValueError, match=r"head 'wang-liu' has no option 'hidden'\. It has out, bias"):
        models.head("wang-liu", in_dim=8, hidden=5)
    with pytest.raises(ValueError, match="in_dim=0: must be a whole number of at least 1"):
        models.head("tcl", in_dim=0)
    with pytest.raises(ValueError, match="layers=0: must be a whole number of at least 1"):
        models.MLPHead(8, layers=0)
