"""The supplement's entropy proof: every check holds, every check can fail, and the formulas by hand."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from kontrast.theory import wang_liu_entropy as module
from tests.theory.breaking import Breaks


def entropy_without_log_total(p: Tensor) -> Tensor:
    return -(p * p.log()).sum(-1) / p.sum(-1)


def entropy_by_weight_not_squared(p: Tensor) -> Tensor:
    total = p.sum(-1, keepdim=True)
    return -p.log() / total + (p * p.log()).sum(-1, keepdim=True) / total


def weight_slope_without_temperature(p: Tensor, *, temperature: float) -> Tensor:
    return p * p.log()


def inverse_slope_without_temperature(p: Tensor, *, temperature: float) -> Tensor:
    larger, smaller = module.cauchy(p)
    return (smaller - larger) / p.sum(-1) ** 2


def cauchy_of_normalised(p: Tensor) -> tuple[Tensor, Tensor]:
    return (p * p.log() ** 2).sum(-1), (p * p.log()).sum(-1) ** 2


def weights_of_product(similarities: Tensor, *, temperature: float) -> Tensor:
    return (similarities * temperature).exp()


def variance_over_square(similarities: Tensor, *, temperature: float) -> Tensor:
    r = (similarities / temperature).softmax(-1)
    mean = (r * similarities).sum(-1, keepdim=True)
    return (r * (similarities - mean) ** 2).sum(-1) / temperature**2


def plain_variance(similarities: Tensor, *, temperature: float) -> Tensor:
    return similarities.var(-1, correction=0) / temperature**3


BREAKS: Breaks = {
    "entropy-closed-form": ("entropy", entropy_without_log_total),
    "entropy-slope-by-weight": ("entropy_by_weight", entropy_by_weight_not_squared),
    "weight-slope-by-inverse-temperature": ("weight_by_inverse_temperature", weight_slope_without_temperature),
    "entropy-slope-by-inverse-temperature": ("entropy_by_inverse_temperature", inverse_slope_without_temperature),
    "cauchy-inequality": ("cauchy", cauchy_of_normalised),
    "entropy-rises-with-temperature": ("weights", weights_of_product),
    "entropy-slope-is-variance": ("entropy_by_temperature", variance_over_square),
    "penalty-entropy-slope-is-variance": ("entropy_by_temperature", plain_variance),
}


def test_formulas_by_hand() -> None:
    """Similarities 0 and log 2 at τ = 1 and 1/2: P = (1, 2) and (1, 4)."""
    s = torch.tensor([0.0, math.log(2)], dtype=torch.float64)
    p = module.weights(s, temperature=0.5)
    assert p.tolist() == pytest.approx([1, 4])
    l4 = math.log(4)
    assert float(module.entropy(p)) == pytest.approx(math.log(5) - 0.8 * l4)
    assert module.entropy_by_weight(p).tolist() == pytest.approx([4 * l4 / 25, -l4 / 5 + 4 * l4 / 25])
    assert module.weight_by_inverse_temperature(p, temperature=0.5).tolist() == pytest.approx([0, 2 * l4])
    assert [float(x) for x in module.cauchy(p)] == pytest.approx([20 * l4**2, 16 * l4**2])
    assert float(module.entropy_by_inverse_temperature(p, temperature=0.5)) == pytest.approx(-2 * l4**2 / 25)
    # Var_r(s) of (1/5, 4/5) on (0, log 2)
    variance = 0.8 * 0.2 * math.log(2) ** 2
    assert float(module.entropy_by_temperature(s, temperature=0.5)) == pytest.approx(variance * 8)


def test_one_negative_has_no_entropy() -> None:
    s = torch.tensor([[0.3]], dtype=torch.float64)
    assert float(module.entropy(module.weights(s, temperature=0.1))) == pytest.approx(0, abs=1e-12)
    assert float(module.entropy_by_temperature(s, temperature=0.1)) == pytest.approx(0, abs=1e-12)
