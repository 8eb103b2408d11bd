"""The energy of weights: every check holds, every check can fail."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from kontrast.energy import energy
from kontrast.geometry import bounds
from kontrast.losses import CrossEntropyLoss
from kontrast.theory import free_points
from kontrast.theory import graf_energy as module
from kontrast.theory.check import REGISTRY
from tests.theory.breaking import Breaks


def energy_of_right_angles(num_classes: int, power: float) -> float:
    """Squared distance 2 instead of 2K/(K−1): too high."""
    return bounds.hyperspherical_energy(10**9, power)


def energy_of_lengths_too(weight: Tensor, power: float) -> Tensor:
    """Of weights that are not normalised: smaller the longer they are."""
    return energy(weight, power) / weight.norm()


def minimum_without_a_penalty(num_classes: int, radius: float, penalty: float) -> float:
    return bounds.regularised_cross_entropy(num_classes, radius, penalty / 2)


BREAKS: Breaks = {
    "energy-is-above-the-simplex": ("smallest_energy", energy_of_right_angles),
    "energy-finds-the-simplex": ("energy", energy_of_lengths_too),
    "energy-penalty-keeps-the-minimum": ("regularised_minimum", minimum_without_a_penalty),
}


def test_a_bound_that_is_too_low_is_not_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "smallest_energy", lambda k, s: bounds.hyperspherical_energy(k, s) - 1e-3)
    assert not REGISTRY["energy-is-above-the-simplex"].run(0).holds


def test_free_points_keep_the_penalty_of_a_loss_that_was_made() -> None:
    """It is in the value and in the bound, at the start too."""
    made = CrossEntropyLoss(4, 3, 0.05, energy_penalty=0.7, energy_power=1.0)
    with_penalty, without = (
        free_points(made, 4, 2, 3, steps=0),
        free_points("ce-l2", 4, 2, 3, weight_penalty=0.05, steps=0),
    )
    assert with_penalty.weights is not None
    repulsion = 0.7 * float(energy(with_penalty.weights, 1.0))
    assert with_penalty.loss - without.loss == pytest.approx(repulsion, rel=1e-12)
    lowest = 0.7 * bounds.hyperspherical_energy(4, 1.0)
    assert with_penalty.bound - without.bound == pytest.approx(lowest, rel=1e-12)
    alone = free_points(CrossEntropyLoss(4, 3, energy_penalty=0.7, energy_power=1.0), 4, 2, 3, steps=0)
    plain = free_points("ce", 4, 2, 3, steps=0)
    assert alone.bound - plain.bound == pytest.approx(repulsion, rel=1e-12)  # at the present weights
    assert torch.equal(alone.points, plain.points)
