"""Wang & Liu: every check holds, every check can fail, and the formulas by hand."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from kontrast.losses import HardContrastiveLoss, InfoNCELoss, hot_limit
from kontrast.theory import wang_liu as module
from kontrast.theory._inputs import as_keys
from kontrast.theory.check import REGISTRY
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


def slope_without_positive(positive: Tensor, negatives: Tensor, *, temperature: float) -> Tensor:
    return module.relative_penalty(negatives, temperature=temperature) / temperature


def positive_slope_without_temperature(positive: Tensor, negatives: Tensor, *, temperature: float) -> Tensor:
    return -temperature * module.negative_slope(positive, negatives, temperature=temperature).sum(-1)


def penalty_of_product(negatives: Tensor, *, temperature: float) -> Tensor:
    return (negatives * temperature).softmax(-1)


def cold_limit_without_hinge(query: Tensor, key: Tensor, negatives: Tensor) -> Tensor:
    return (query @ negatives.T).amax(1) - (query * key).sum(1)


def hot_limit_without_the_positive_in_n(*keys: Tensor, temperature: float) -> Tensor:
    n = 1 + len(keys[2])
    constant = math.log(n)
    return constant + (hot_limit(*keys, temperature=temperature) - constant) * n / (n - 1)


def simple_loss_over_everyone(positive: Tensor, negatives: Tensor) -> Tensor:
    return -positive + negatives.sum(-1) / (1 + negatives.shape[-1])


def penalty_not_renormalised(negatives: Tensor, *, temperature: float, hard_negatives: int) -> Tensor:
    threshold = negatives.topk(hard_negatives, -1).values[..., -1:]
    return module.relative_penalty(negatives, temperature=temperature) * (negatives >= threshold)


BREAKS: Breaks = {
    "entropy-closed-form": ("entropy", entropy_without_log_total),
    "entropy-slope-by-weight": ("entropy_by_weight", entropy_by_weight_not_squared),
    "weight-slope-by-inverse-temperature": ("weight_by_inverse_temperature", weight_slope_without_temperature),
    "entropy-slope-by-inverse-temperature": ("entropy_by_inverse_temperature", inverse_slope_without_temperature),
    "cauchy-inequality": ("cauchy", cauchy_of_normalised),
    "entropy-rises-with-temperature": ("weights", weights_of_product),
    "entropy-slope-is-variance": ("entropy_by_temperature", variance_over_square),
    "penalty-entropy-slope-is-variance": ("entropy_by_temperature", plain_variance),
    "infonce-gradient": ("negative_slope", slope_without_positive),
    "gradient-balance": ("positive_slope", positive_slope_without_temperature),
    "relative-penalty-is-boltzmann": ("relative_penalty", penalty_of_product),
    "infonce-cold-limit": ("cold_limit", cold_limit_without_hinge),
    "infonce-hot-limit": ("hot_limit", hot_limit_without_the_positive_in_n),
    "simple-loss-is-hot-limit": ("simple_loss", simple_loss_over_everyone),
    "infonce-gradient-becomes-simple": ("simple_loss", simple_loss_over_everyone),
    "hard-relative-penalty-is-renormalised": ("hard_relative_penalty", penalty_not_renormalised),
}


def test_rates_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits are reached at the rates of (a) and (b), not at others."""
    with monkeypatch.context() as patch:
        patch.setattr(module, "cold_excess", lambda *s, temperature: (0.0 * s[0], 0.0 * s[0]))
        assert not REGISTRY["infonce-cold-limit"].run(0).holds
    with monkeypatch.context() as patch:
        patch.setattr(module, "hot_excess", lambda *s, temperature: torch.cat([s[0][:, None], s[1]], 1).var(1))
        assert not REGISTRY["infonce-hot-limit"].run(0).holds


def test_formulas_by_hand() -> None:
    """A positive at log 2, negatives at 0 and log 3, τ = 1: e^s = 2, 1, 3."""
    positive = torch.tensor(math.log(2), dtype=torch.float64)
    negatives = torch.tensor([0.0, math.log(3)], dtype=torch.float64)
    assert float(module.positive_slope(positive, negatives, temperature=1.0)) == pytest.approx(-4 / 6)
    assert module.negative_slope(positive, negatives, temperature=1.0).tolist() == pytest.approx([1 / 6, 3 / 6])
    assert module.relative_penalty(negatives, temperature=1.0).tolist() == pytest.approx([1 / 4, 3 / 4])
    hard = module.hard_relative_penalty(negatives, temperature=1.0, hard_negatives=1)
    assert hard.tolist() == pytest.approx([0, 1])
    assert float(module.simple_loss(positive, negatives)) == pytest.approx(-math.log(2) + math.log(3) / 2)
    least, most = module.cold_excess(positive, negatives, temperature=1.0)  # m = 1, δ = log(3/2)
    assert (float(least), float(most)) == pytest.approx((0, 2 * 2 / 3))
    s = [math.log(2), 0.0, math.log(3)]
    variance = sum(x * x for x in s) / 3 - (sum(s) / 3) ** 2
    assert float(module.hot_excess(positive, negatives, temperature=10.0)) == pytest.approx(variance / 200)


def test_a_shared_largest_similarity_stays_above_the_cold_limit() -> None:
    """As printed, (6) is off by log m: here by log 3, however cold."""
    positive, negatives = torch.tensor([0.5]).double(), torch.tensor([[0.5, 0.5, -1.0]]).double()
    for tau in (0.1, 0.01, 0.001):
        value = InfoNCELoss(tau, normalize=False)(*as_keys(positive, negatives))
        assert float(value) == pytest.approx(math.log(3))


def test_the_hard_loss_ignores_what_it_does_not_keep() -> None:
    positive, negatives = torch.tensor([0.5]).double(), torch.tensor([[0.4, 0.3, -1.0]]).double()
    loss = HardContrastiveLoss(0.1, 2, normalize=False)
    moved = negatives.clone()
    moved[0, 2] = 0.2
    assert float(loss(*as_keys(positive, moved))) == float(loss(*as_keys(positive, negatives)))


def test_formulas_of_the_supplement_by_hand() -> None:
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
