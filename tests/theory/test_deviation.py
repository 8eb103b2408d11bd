"""How far from a simplex: the numbers of free points, by hand."""

from __future__ import annotations

import math

import pytest
import torch

from kontrast import simplex
from kontrast.theory._deviation import Deviation, WeightDeviation, class_means, deviation, weight_deviation


def test_deviations_by_hand() -> None:
    points = torch.tensor([[2.0, 0.0], [2.0, 2.0], [0.0, -2.0]], dtype=torch.float64)
    labels = torch.tensor([0, 0, 1])
    assert class_means(points, labels).tolist() == [[2, 1], [0, -2]]
    found = deviation(points, labels, radius=2.0)
    cosine = 1 - 1 / math.sqrt(5)
    expected = Deviation(math.hypot(1, 0.5) / 2, (math.sqrt(5) - 2) / 2, cosine, 0.5)
    assert vars(found) == pytest.approx(vars(expected))
    assert found.largest == pytest.approx(expected.origin if expected.origin > cosine else cosine)
    weights = torch.tensor([[0.0, 3.0], [0.0, -1.0]], dtype=torch.float64)
    against = weight_deviation(weights, torch.tensor([[0.0, 1.0], [1.0, 0.0]]).double(), radius=2.0)
    assert vars(against) == pytest.approx(vars(WeightDeviation(0.5, 0.5, 0.0, math.sqrt(2))))
    own = weight_deviation(weights, weights)
    assert own.norm == pytest.approx((math.sqrt(5) - 1) / math.sqrt(5))
    zeta = simplex.vertices(5, 7, radius=3.0, seed=1, dtype=torch.float64)
    assert deviation(zeta.repeat(2, 1), torch.arange(5).repeat(2), radius=3.0).largest < 1e-14
