"""Tests of kontrast.augment.operations.gaussian_noise."""

from __future__ import annotations

import pytest
import torch
from scipy.stats import kstest

from kontrast.augment import GaussianNoise
from tests.augment.samples import seeded


def test_noise_is_normal() -> None:
    """Kolmogorov–Smirnov against N(0, 0.3²) at 1e-3, fixed seed."""
    x = torch.randn(2_000, 5, generator=seeded(1))
    added = (GaussianNoise(0.3)(x, seeded()) - x).flatten()
    assert kstest(added.numpy(), "norm", args=(0, 0.3)).pvalue > 1e-3
    assert kstest(added.numpy(), "norm", args=(0, 0.32)).pvalue < 1e-3, "it can fail"


def test_probability_a_vector() -> None:
    x = torch.randn(2_000, 10, generator=seeded(1))
    same = (GaussianNoise(1.0, p=0.3)(x, seeded()) == x).all(1).float().mean()
    assert abs(float(same) - 0.7) < 0.041, "four standard errors"


def test_errors() -> None:
    with pytest.raises(ValueError, match=r"uint8; call .float\(\)"):
        GaussianNoise()(torch.zeros(2, 4, dtype=torch.uint8))
