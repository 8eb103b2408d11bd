"""The steps of the proof for cross-entropy: every check holds, every check can fail, and what the checks rest on."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from kontrast.geometry import bounds
from kontrast.theory import graf_chain as module
from kontrast.theory._check import REGISTRY
from tests.theory.breaking import Breaks


def largest_margin(z: Tensor, labels: Tensor, w: Tensor, rho: float) -> float:
    """The hardest class in the place of the mean: too high."""
    logits = z @ w.T
    margins = (logits - logits.gather(1, labels[:, None])).scatter(1, labels[:, None], -math.inf).amax(1)
    return float(module.one_negative(margins, len(w)).mean())


def margins_without_the_factor(z: Tensor, labels: Tensor, w: Tensor) -> Tensor:
    """−⟨z, w_y − w̄⟩."""
    return -(z * (w - w.mean(0))[labels]).sum(1)


def largest_over_points(z: Tensor, labels: Tensor, w: Tensor, rho: float) -> float:
    """The median of the margins in the place of their mean."""
    return float(module.one_negative(module.mean_margins(z, labels, w).median(), len(w)))


def aligned_to_weights_that_are_not_centred(z: Tensor, labels: Tensor, w: Tensor, rho: float) -> float:
    """‖w_k‖ in the place of ‖w_k − w̄‖: a bound too, but not reached."""
    k = len(w)
    return float(module.one_negative(-k / (k - 1) * rho * w.norm(dim=1).mean(), k))


def without_the_root(z: Tensor, labels: Tensor, w: Tensor, rho: float) -> float:
    """The mean of squares without its root: above the mean only for long weights."""
    k = len(w)
    return float(module.one_negative(-k / (k - 1) * rho * module.centred(w).square().sum(1).mean(), k))


def bound_with_k_below(num_classes: int, radius: float, weight_norm: float) -> float:
    """ρ√K/K instead of ρ√K/(K−1)."""
    return bounds.cross_entropy(num_classes, radius, weight_norm * (num_classes - 1) / num_classes)


BREAKS: Breaks = {
    "cross-entropy-jensen-over-classes": ("over_classes", largest_margin),
    "margins-are-of-centred-weights": ("centred_margins", margins_without_the_factor),
    "cross-entropy-jensen-over-points": ("over_points", largest_over_points),
    "cross-entropy-cauchy-schwarz-of-points": ("with_aligned_points", aligned_to_weights_that_are_not_centred),
    "cross-entropy-cauchy-schwarz-of-lengths": ("with_equal_lengths", without_the_root),
    "cross-entropy-centring": ("cross_entropy_bound", bound_with_k_below),
    "cross-entropy-chain-is-the-simplex": ("cross_entropy_bound", bound_with_k_below),
}

CONDITIONS = {
    "cross-entropy-jensen-over-classes": "equal_to_other_classes",
    "cross-entropy-jensen-over-points": "equal_margins",
    "cross-entropy-cauchy-schwarz-of-points": "aligned_points",
    "cross-entropy-cauchy-schwarz-of-lengths": "equal_lengths",
    "cross-entropy-centring": "centred_weights",
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_an_equality_without_its_condition_is_not_one(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The inputs of another condition in the place of its own: the check notices that the step is strict there."""
    other = module.centred_weights if name != "cross-entropy-centring" else module.equal_margins
    monkeypatch.setattr(module, CONDITIONS[name], other)
    assert not REGISTRY[name].run(0).holds


@pytest.mark.parametrize("name", CONDITIONS)
def test_a_step_that_loses_nothing_is_noticed(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Where nothing is ever lost, it must have been strict somewhere."""
    step = list(CONDITIONS).index(name)
    plain = module.gap
    monkeypatch.setattr(module, "gap", lambda at, inputs: 0.0 if at == step else plain(at, inputs))
    assert math.isinf(REGISTRY[name].run(0).error)


def test_the_chain_starts_at_cross_entropy_and_ends_at_its_bound() -> None:
    generator = torch.Generator().manual_seed(3)
    z, labels, _, rho = module.equal_margins(4, 3, 8, 1.5, generator)
    w = torch.randn(4, 8, dtype=torch.float64, generator=generator)  # others, so that no step is an equality
    expected = torch.nn.functional.cross_entropy(z @ w.T, labels).item()
    values = [step(z, labels, w, rho) for step in module.steps()]
    assert values[0] == pytest.approx(expected, rel=1e-12)
    assert values[-1] == pytest.approx(bounds.cross_entropy(4, 1.5, float(w.norm())), rel=1e-12)
    assert values == sorted(values, reverse=True)


def test_step_1_written_out() -> None:
    z, w, y = [0.5, -1.0], [[1.0, 0.0], [0.0, 2.0], [-1.0, 1.0]], 1
    logits = [sum(a * b for a, b in zip(z, row, strict=True)) for row in w]
    margin = sum(logits[c] - logits[y] for c in (0, 2)) / 2
    found = module.over_classes(torch.tensor([z]).double(), torch.tensor([y]), torch.tensor(w).double(), 2.0)
    assert found == pytest.approx(math.log(1 + 2 * math.exp(margin)), rel=1e-12)
