"""Alignment: equation (1) of `kontrast.geometry.alignment`."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

from kontrast import geometry
from kontrast.geometry import alignment
from tests.geometry.samples import average, distance, rms, rows, sphere, unit

ALPHAS = (0.5, 1.0, 2.0, 3.0)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("normalize", [True, False])
def test_eq_1(alpha: float, normalize: bool) -> None:
    x, y = rows(40, 4), rows(40, 4, seed=1)
    a, b = (unit(x), unit(y)) if normalize else (x, y)
    powers = [distance(p, q) ** alpha for p, q in zip(a.tolist(), b.tolist(), strict=True)]
    found = alignment(x, y, alpha, normalize=normalize, with_error=True)
    assert found.value == pytest.approx(average(powers), rel=1e-12)
    assert found.error == pytest.approx(stats.sem(powers), rel=1e-12)
    assert alignment(x, y, alpha, normalize=normalize) == found.value


@pytest.mark.parametrize("alpha", ALPHAS)
def test_equal_orthogonal_and_opposite_views(alpha: float) -> None:
    x = torch.eye(40, dtype=torch.float64)
    found = [alignment(x, y, alpha) for y in (3 * x, x.roll(1, 0), -x)]
    assert found == pytest.approx([0.0, 2 ** (alpha / 2), 2**alpha], rel=1e-14)


def test_views_that_nearly_agree_in_float32() -> None:
    """Differences are taken first, so that ‖x − y‖² ≈ 1e-10 is not lost beside 2 − 2⟨x, y⟩."""
    x = torch.tensor([[1.0, 0.0]]).repeat(40, 1)
    y = torch.tensor([[1.0, 1e-5]]).repeat(40, 1)
    assert alignment(x, y) == pytest.approx(1e-10, rel=1e-6)


def test_unrelated_views_have_two() -> None:
    found = alignment(sphere(4000, 32), sphere(4000, 32, seed=1), with_error=True)
    assert abs(found.value - 2) < 4 * found.error < 0.1


def test_views_in_different_precisions() -> None:
    x, y = rows(40, 4), rows(40, 4, seed=1).float()
    assert alignment(x, y) == pytest.approx(alignment(x, y.double()), rel=1e-6)


def test_error_of_one_pair_is_not_known() -> None:
    with pytest.warns(geometry.TooFewSamples):
        assert math.isnan(alignment(rows(1, 3), rows(1, 3, seed=1), with_error=True).error)


def test_error_is_the_spread_over_samples() -> None:
    """1,000 samples of 40 pairs: σ is known to 2 %, the mean squared error is unbiased; 10 % is a real difference."""
    found = [alignment(rows(40, 3, seed=s), rows(40, 3, seed=s + 10**6), with_error=True) for s in range(1000)]
    assert rms([f.error for f in found]) / float(np.std([f.value for f in found])) == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("alpha", [0.0, -2.0, float("nan"), "2"])
def test_wrong_alpha(alpha: object) -> None:
    with pytest.raises(ValueError, match=r"alpha=.*: must be a finite number above 0"):
        alignment(rows(40, 3), rows(40, 3), alpha)  # type: ignore[call-overload]
