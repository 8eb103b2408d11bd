"""Tests of kontrast.augment.operations.feature_dropout."""

from __future__ import annotations

import torch

from kontrast.augment import FeatureDropout
from tests.augment.samples import seeded


def test_dropout_zeroes_and_leaves_the_rest() -> None:
    """20,000 entries: four standard errors are 0.0122."""
    x = torch.randn(2_000, 10, generator=seeded(1))
    out = FeatureDropout(0.25)(x, seeded())
    dropped = out == 0
    assert torch.equal(out[~dropped], x[~dropped])
    assert abs(float(dropped.float().mean()) - 0.25) < 0.0122


def test_probability_a_vector() -> None:
    x = torch.randn(2_000, 10, generator=seeded(1))
    same = (FeatureDropout(1.0, p=0.3)(x, seeded()) == x).all(1).float().mean()
    assert abs(float(same) - 0.7) < 0.041, "four standard errors"
