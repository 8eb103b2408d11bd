"""Graf et al. on cross-entropy: every check holds, every check can fail, and the formulas against numbers."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from kontrast import simplex
from kontrast.geometry import bounds
from kontrast.theory import graf_cross_entropy as module
from kontrast.theory._inputs import add_noise, worst, worst_violation
from kontrast.theory.check import REGISTRY
from tests.theory.breaking import Breaks


def bound_with_k_below(num_classes: int, radius: float, weight_norm: float) -> float:
    """ρ√K/K instead of ρ√K/(K−1): too high, but only near the simplex."""
    return bounds.cross_entropy(num_classes, radius, weight_norm * (num_classes - 1) / num_classes)


def bound_without_root(num_classes: int, radius: float, weight_norm: float) -> float:
    return bounds.cross_entropy(num_classes, radius, weight_norm / math.sqrt(num_classes))


def slope_of_one_negative(num_classes: int, radius: float, weight_norm: float) -> float:
    factor = radius * math.sqrt(num_classes) / (num_classes - 1)
    return -factor / (math.exp(factor * weight_norm) + num_classes - 1)


def equation_with_half_the_penalty(r: float, num_classes: int, radius: float, penalty: float) -> float:
    k = num_classes
    return penalty * r * (math.exp(k / (k - 1) * radius * r) + k - 1) - radius


def radius_of_weight_decay(num_classes: int, radius: float, penalty: float) -> float:
    return bounds.regularised_weight_radius(num_classes, radius, penalty / 2)


def minimum_with_one_weight_penalised(num_classes: int, radius: float, penalty: float) -> float:
    r = bounds.regularised_weight_radius(num_classes, radius, penalty)
    return bounds.cross_entropy(num_classes, radius, math.sqrt(num_classes) * r) + penalty * r * r


def vertices_without_scale(num_classes: int, dim: int, **options: Any) -> Tensor:
    return simplex.vertices(num_classes, dim, **options) * math.sqrt((num_classes - 1) / num_classes)


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
    return float(module.one_negative(-k / (k - 1) * rho * module.centre(w).square().sum(1).mean(), k))


BREAKS: Breaks = {
    "cross-entropy-is-above-its-bound": ("cross_entropy_bound", bound_with_k_below),
    "cross-entropy-bound-is-the-simplex": ("cross_entropy_bound", bound_without_root),
    "cross-entropy-bound-falls-with-weights": ("cross_entropy_slope", slope_of_one_negative),
    "penalised-slope-is-the-radius-equation": ("weight_radius_equation", equation_with_half_the_penalty),
    "penalty-fixes-the-weights": ("weight_radius", radius_of_weight_decay),
    "penalised-cross-entropy-finds-the-simplex": ("regularised_minimum", minimum_with_one_weight_penalised),
    "fixed-weights-are-a-simplex": ("vertices", vertices_without_scale),
    "cross-entropy-jensen-over-classes": ("over_classes", largest_margin),
    "margins-are-of-centred-weights": ("centred_margins", margins_without_the_factor),
    "cross-entropy-jensen-over-points": ("over_points", largest_over_points),
    "cross-entropy-cauchy-schwarz-of-points": ("with_aligned_points", aligned_to_weights_that_are_not_centred),
    "cross-entropy-cauchy-schwarz-of-lengths": ("with_equal_lengths", without_the_root),
    "cross-entropy-centring": ("cross_entropy_bound", bound_with_k_below),
    "cross-entropy-chain-is-the-simplex": ("cross_entropy_bound", bound_with_k_below),
}


def test_a_bound_that_is_too_low_is_not_the_simplex(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not violated, but neither is it reached; the two checks of the theorem need each other."""
    monkeypatch.setattr(module, "cross_entropy_bound", lambda k, rho, norm: bounds.cross_entropy(k, rho, 1.1 * norm))
    assert REGISTRY["cross-entropy-is-above-its-bound"].run(0).holds
    assert not REGISTRY["cross-entropy-bound-is-the-simplex"].run(0).holds


def test_the_bound_is_not_the_only_thing_that_must_be_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """A radius that is off by a hundredth fails the curve and the run."""
    monkeypatch.setattr(module, "weight_radius", lambda *args: 1.01 * bounds.regularised_weight_radius(*args))
    assert not REGISTRY["penalty-fixes-the-weights"].run(0).holds
    assert not REGISTRY["penalised-cross-entropy-finds-the-simplex"].run(0).holds


@pytest.mark.parametrize(
    ("num_classes", "penalty", "expected"), [(4, 0.005, 2.6583), (4, 0.05, 1.2281), (10, 1e-4, 6.0375)]
)
def test_weight_radii_of_the_facts(num_classes: int, penalty: float, expected: float) -> None:
    r = module.weight_radius(num_classes, 1.0, penalty)
    assert r == pytest.approx(expected, abs=5e-5)
    assert module.weight_radius_equation(r, num_classes, 1.0, penalty) == pytest.approx(0, abs=1e-12)
    for side in (-1, 1):
        assert side * module.weight_radius_equation(r + side * 1e-3, num_classes, 1.0, penalty) > 0
    # The least of log(1 + (K−1) e^{−Kr/(K−1)}) + λKr² on a grid, written out.
    k = num_classes
    grid = [i / 1000 for i in range(1, 10_000)]
    curve = [math.log(1 + (k - 1) * math.exp(-k * x / (k - 1))) + penalty * k * x * x for x in grid]
    assert grid[curve.index(min(curve))] == pytest.approx(r, abs=1e-3)
    assert min(curve) == pytest.approx(module.regularised_minimum(k, 1.0, penalty), abs=1e-6)


@pytest.mark.parametrize(("k", "rho", "norm"), [(2, 1.0, 3.0), (4, 0.5, 1.0), (10, 2.0, 6.0)])
def test_slope_by_differences(k: int, rho: float, norm: float) -> None:
    difference = module.cross_entropy_bound(k, rho, norm + 1e-5) - module.cross_entropy_bound(k, rho, norm - 1e-5)
    assert module.cross_entropy_slope(k, rho, norm) == pytest.approx(difference / 2e-5, rel=1e-7)


def test_the_random_inputs_are_what_they_say() -> None:
    generator = torch.Generator().manual_seed(0)
    zeta = simplex.vertices(4, dtype=torch.float64)
    moved = add_noise(zeta, 0.1, generator)
    assert moved.norm(dim=1).tolist() == pytest.approx([1.0] * 4)
    assert 0 < float((moved - zeta).norm(dim=1).max()) < 0.11
    assert worst([0.5, -2.0]) == 2.0
    assert worst_violation([3.0, 0.0, -0.25]) == 0.25
    assert math.isinf(worst([0.0, math.nan]))
    assert math.isinf(worst_violation([0.0, math.nan]))


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
