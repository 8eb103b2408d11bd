"""Uniformity: equation numbers are those of `kontrast.geometry.uniformity`."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
import torch
from scipy import special
from scipy.spatial.distance import pdist
from torch import Tensor

from kontrast import geometry
from kontrast.geometry import _rows, uniformity, uniformity_limit
from tests.geometry.samples import average, distance, leave_one_out, rms, rows, sphere, unit

TEMPERATURES = (0.1, 2.0, 7.5)


def kernel(x: Tensor, t: float) -> list[list[float]]:
    """e^{−t‖x_i − x_j‖²}, one pair at a time."""
    points = x.tolist()
    return [[math.exp(-t * distance(a, b) ** 2) for b in points] for a in points]


def off_diagonal(k: list[list[float]], left_out: int = -1) -> list[float]:
    n = len(k)
    return [k[i][j] for i in range(n) for j in range(n) if i != j and left_out not in (i, j)]


@pytest.mark.parametrize("t", TEMPERATURES)
def test_eq_1_over_distinct_pairs(t: float) -> None:
    x = rows(31, 4)
    assert uniformity(x, t) == pytest.approx(math.log(average(off_diagonal(kernel(unit(x), t)))), rel=1e-12)


@pytest.mark.parametrize("t", TEMPERATURES)
def test_eq_1_is_the_authors_estimator(t: float) -> None:
    """Wang & Isola: ``torch.pdist(x, p=2).pow(2).mul(-t).exp().mean().log()``; scipy's pdist says the same."""
    x = sphere(70, 9)
    theirs = float(torch.pdist(x, p=2).pow(2).mul(-t).exp().mean().log())
    assert uniformity(x, t) == pytest.approx(theirs, rel=1e-12)
    assert uniformity(x, t) == pytest.approx(np.log(np.exp(-t * pdist(x.numpy()) ** 2).mean()), rel=1e-12)


@pytest.mark.parametrize("t", TEMPERATURES)
def test_equal_rows_have_zero(t: float) -> None:
    assert uniformity(sphere(1, 5).repeat(40, 1), t) == pytest.approx(0.0, abs=1e-13)


@pytest.mark.parametrize("t", [*TEMPERATURES, 20.0, 60.0, 200.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_orthogonal_rows_have_minus_2t(t: float, dtype: torch.dtype) -> None:
    """‖x − y‖² = 2, also where e^{−2t} is below what float32 can hold."""
    precision = 1e-12 if dtype == torch.float64 else 2e-7
    assert uniformity(torch.eye(40, dtype=dtype), t) == pytest.approx(-2 * t, rel=precision)


@pytest.mark.parametrize("t", TEMPERATURES)
def test_two_opposite_points(t: float) -> None:
    """m rows on each: of an anchor's 2m − 1 others m − 1 are at distance 0 and m at distance 2."""
    m = 17
    x = torch.tensor([[0.6, 0.8], [-0.6, -0.8]], dtype=torch.float64).repeat(m, 1)
    expected = math.log((m - 1 + m * math.exp(-4 * t)) / (2 * m - 1))
    assert uniformity(x, t) == pytest.approx(expected, rel=1e-12)


def test_rows_as_they_are_in_float32_at_any_distance() -> None:
    """A cluster of 20 far from one of 20: float32 squares of 1e4 would lose the distances of 0.1 inside."""
    x = torch.cat([rows(20, 3) * 0.1, rows(20, 3, seed=1) * 0.1 + 100.0]).float()
    expected = math.log(average(off_diagonal(kernel(x.double(), 2.0))))
    # Squares of 3e4 in float64, 4e-12, in the exponent.
    assert uniformity(x, normalize=False) == pytest.approx(expected, rel=1e-10)


def test_rows_all_too_far_apart() -> None:
    with pytest.raises(ValueError, match=r"every pair is so far apart .*: normalise the features or lower t"):
        uniformity(torch.eye(40) * 100, normalize=False)


def test_one_row() -> None:
    with pytest.raises(ValueError, match="uniformity compares pairs; features has one row"):
        uniformity(rows(1, 3))


@pytest.mark.parametrize("t", [0.0, -1.0, float("nan"), float("inf"), "2", None])
def test_wrong_t(t: object) -> None:
    with pytest.raises(ValueError, match=r"t=.*: must be a finite number above 0"):
        uniformity(rows(40, 3), t)  # type: ignore[call-overload]
    with pytest.raises(ValueError, match=r"t=.*: must be a finite number above 0"):
        uniformity_limit(3, t)  # type: ignore[arg-type]


@pytest.mark.parametrize("side", [1, 2, 13, 40, 41, 100])
def test_blocks_of_any_side(monkeypatch: pytest.MonkeyPatch, side: int) -> None:
    x = rows(40, 3)
    whole = uniformity(x, with_error=True)
    monkeypatch.setattr(_rows, "SIDE", side)
    assert uniformity(x, with_error=True) == (
        pytest.approx(whole.value, rel=1e-13),
        pytest.approx(whole.error, rel=1e-12),
    )


# --------------------------------------------------------------------------------------------------- the limit


@pytest.mark.parametrize("t", [*TEMPERATURES, 30.0])
def test_eq_2_on_two_points_the_circle_and_the_sphere(t: float) -> None:
    """E e^{2t⟨x,y⟩} by hand: cosh 2t; I₀(2t); sinh(2t)/2t."""
    by_hand = [
        math.log1p(math.exp(-4 * t)) - math.log(2),
        math.log(special.ive(0, 2 * t)),
        math.log(-math.expm1(-4 * t)) - math.log(4 * t),
    ]
    assert [uniformity_limit(d, t) for d in (1, 2, 3)] == pytest.approx(by_hand, rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("dim", [1, 2, 5, 16, 128, 2048])
@pytest.mark.parametrize("t", TEMPERATURES)
def test_eq_2_is_the_hypergeometric_function(dim: int, t: float) -> None:
    """mpmath knows it to more digits than float64 has; scipy loses some in high dimensions."""
    expected = -2 * t + float(mpmath.log(mpmath.hyp0f1(dim / 2, mpmath.mpf(t) ** 2)))
    assert uniformity_limit(dim, t) == pytest.approx(expected, rel=1e-13)
    assert uniformity_limit(dim, t) == pytest.approx(-2 * t + math.log(special.hyp0f1(dim / 2, t * t)), rel=1e-11)


@pytest.mark.parametrize("dim", [2, 3, 10])
@pytest.mark.parametrize("t", [100.0, 400.0, 5000.0])
def test_eq_2_where_the_series_is_beyond_float64(dim: int, t: float) -> None:
    """₀F₁(; a; t²) = Γ(a) t^{1−a} I_{a−1}(2t), and e^{−2t} I is what `ive` gives."""
    a = dim / 2
    expected = special.gammaln(a) - (a - 1) * math.log(t) + math.log(special.ive(a - 1, 2 * t))
    assert uniformity_limit(dim, t) == pytest.approx(expected, rel=1e-10)


def test_eq_2_known_values() -> None:
    assert [round(uniformity_limit(d), 4) for d in (64, 128, 256)] == [-3.8752, -3.9375, -3.9688]


def test_eq_2_falls_to_minus_2t_with_the_dimension() -> None:
    values = [uniformity_limit(d, 2.0) for d in (1, 2, 3, 10, 100, 10**4, 10**7)]
    assert values == sorted(values, reverse=True)
    assert values[-1] == pytest.approx(-4.0, abs=1e-6)


@pytest.mark.parametrize("dim", [0, -1, 2.5, "3"])
def test_wrong_dimension(dim: object) -> None:
    with pytest.raises(ValueError, match=r"dim=.*: must be a whole number of at least 1"):
        uniformity_limit(dim)  # type: ignore[arg-type]


@pytest.mark.parametrize("dim", [2, 3, 16, 128])
@pytest.mark.parametrize("t", [0.5, 2.0])
def test_uniform_samples_stand_at_the_limit(dim: int, t: float) -> None:
    found = uniformity(sphere(3000, dim, seed=dim), t, with_error=True)
    assert abs(found.value - uniformity_limit(dim, t)) < 4 * found.error
    assert found.error < 0.02


def test_samples_that_are_not_uniform_stand_above_it() -> None:
    found = uniformity(sphere(3000, 16) + 0.05, with_error=True)
    assert found.value - uniformity_limit(16) > 10 * found.error


# --------------------------------------------------------------------------------------------------- the error


@pytest.mark.parametrize("t", TEMPERATURES)
def test_eq_3_is_the_jackknife(t: float) -> None:
    """Without each sample in turn; the logarithm is taken to first order, dlog U = dU/U."""
    x = rows(31, 3)
    k = kernel(unit(x), t)
    left_out = [average(off_diagonal(k, i)) for i in range(len(k))]
    expected = leave_one_out(left_out) / average(off_diagonal(k))
    assert uniformity(x, t, with_error=True).error == pytest.approx(expected, rel=1e-10)


def test_error_of_two_rows_is_not_known() -> None:
    with pytest.warns(geometry.TooFewSamples):
        assert math.isnan(uniformity(rows(2, 3), with_error=True).error)


def test_value_is_the_same_with_and_without_its_error() -> None:
    x = rows(50, 3)
    assert uniformity(x, with_error=True).value == uniformity(x)


def test_error_is_the_spread_over_samples() -> None:
    """500 samples of 60 points, more on one side than on the other: σ is known to 1/√1000 = 3 %, and the jackknife's
    bias is of order 1/n, so 15 % is a real difference."""
    found = [uniformity(rows(60, 3, seed=s) + torch.tensor([1.0, 0, 0]), with_error=True) for s in range(500)]
    assert rms([f.error for f in found]) / float(np.std([f.value for f in found])) == pytest.approx(1.0, abs=0.15)


def test_error_on_a_uniform_sphere_is_on_the_safe_side() -> None:
    """There the h_i are all alike and (1) varies only in second order, of which the jackknife sees twice: √2."""
    found = [uniformity(sphere(60, 3, seed=s), with_error=True) for s in range(500)]
    ratio = rms([f.error for f in found]) / float(np.std([f.value for f in found]))
    assert ratio == pytest.approx(math.sqrt(2), abs=0.15)
