"""Singular values, ranks, collapse: equation numbers are those of `kontrast.geometry.spectrum`."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from kontrast import geometry
from kontrast.geometry import Spectrum, collapse, spectrum
from tests.geometry.samples import rms, rows, sphere, unit

# Few rows go through the singular values themselves, many through the D×D products.
SIZES = [(12, 6), (24, 6), (25, 6), (200, 6)]


def by_svd(x: Tensor, *, center: bool) -> np.ndarray:
    a = x.numpy()
    return np.linalg.svd(a - a.mean(0) if center else a, compute_uv=False)


def check(found: Spectrum, sigma: np.ndarray) -> None:
    np.testing.assert_allclose(found.singular_values.numpy(), sigma, rtol=1e-9)
    assert found.effective_rank == pytest.approx(math.exp(stats.entropy(sigma)), rel=1e-10)  # (1)
    assert found.stable_rank == pytest.approx((sigma**2).sum() / sigma[0] ** 2, rel=1e-10)  # (2)
    assert found.explained_first == pytest.approx(sigma[0] ** 2 / (sigma**2).sum(), rel=1e-10)


@pytest.mark.parametrize(("n", "dim"), SIZES)
@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("normalize", [True, False])
def test_eqs_1_and_2_from_numpys_singular_values(n: int, dim: int, center: bool, normalize: bool) -> None:
    x = rows(n, dim) + 0.5
    found = spectrum(x, center=center, normalize=normalize)
    check(found, by_svd(unit(x) if normalize else x, center=center))
    assert found.rank == np.linalg.matrix_rank(x.numpy()) == dim


@pytest.mark.parametrize("k", [1, 2, 8])
def test_equal_singular_values_have_the_rank_they_look_like(k: int) -> None:
    x = torch.eye(8, dtype=torch.float64)[:k].repeat(40, 1)
    found = spectrum(x)
    assert (found.effective_rank, found.stable_rank, found.rank) == (pytest.approx(k), pytest.approx(k), k)
    assert found.explained_first == pytest.approx(1 / k)


@pytest.mark.parametrize(("n", "dim"), [(30, 10), (400, 10)])
def test_rank_of_features_in_a_subspace(n: int, dim: int) -> None:
    """Three of ten directions; what rounding leaves in the others (1e-8 through the products) does not count."""
    found = spectrum(rows(n, 3) @ rows(3, dim, seed=1))
    assert found.rank == 3
    assert 1 < found.effective_rank < 3.001


def test_rank_is_relative_to_the_largest_in_many_dimensions() -> None:
    """A thousand directions, one of them 2e-6 of the largest: above 1e-6, however long the features are in all."""
    scale = torch.ones(1000, dtype=torch.float64)
    scale[-1] = 2e-6
    assert spectrum(torch.diag(scale), normalize=False).rank == 1000


def test_small_singular_values_are_as_they_are() -> None:
    """Few rows, not centred: float64 knows them far below 1e-7 of the largest."""
    sigma = 10.0 ** -torch.tensor([0.0, 2, 4, 5, 8, 10, 12], dtype=torch.float64)
    found = spectrum(torch.diag(sigma), normalize=False)
    torch.testing.assert_close(found.singular_values, sigma, rtol=1e-3, atol=1e-15)
    assert found.rank == 4


def test_ranks_are_in_their_range_and_in_order() -> None:
    """stable rank ≤ effective rank ≤ rank: p² prefers the largest more than p does."""
    for seed in range(5):
        x = rows(100, 7, seed=seed) * torch.logspace(0, -2, 7, dtype=torch.float64)
        found = spectrum(x)
        assert 1 <= found.stable_rank <= found.effective_rank <= found.rank <= 7


def test_more_dimensions_than_rows() -> None:
    with pytest.warns(geometry.TooFewSamples, match="rows for the rank"):
        found = spectrum(rows(5, 9))
    assert found.singular_values.shape == (5,)
    assert found.rank == 5
    check(found, by_svd(unit(rows(5, 9)), center=False))


def test_more_rows_than_a_part() -> None:
    x = rows(20_000, 5, dtype=torch.float32)
    check(spectrum(x, normalize=False, center=True), by_svd(x.double(), center=True))


@pytest.mark.parametrize("n", [20, 500])
def test_center_with_a_mean_far_larger_than_the_spread(n: int) -> None:
    """Rows 1 apart, 1,000 from the origin: taken through products of 10⁶, which are known to 1e-16 of that."""
    x = rows(n, 6) + 1000.0
    found = spectrum(x, center=True, normalize=False)
    np.testing.assert_allclose(found.singular_values.numpy(), by_svd(x, center=True), rtol=1e-7)


@pytest.mark.parametrize("n", [40, 500])
def test_center_of_equal_rows_leaves_nothing(n: int) -> None:
    """Whatever rounding leaves is no direction."""
    assert spectrum(rows(1, 16).repeat(n, 1), center=True).rank == 0


@pytest.mark.parametrize(("n", "dim"), [(60, 5), (300, 5), (60, 40)])
@pytest.mark.parametrize("center", [False, True])
def test_errors_are_a_jackknife_over_twenty_groups(n: int, dim: int, center: bool) -> None:
    """The same by leaving rows out, whichever way the errors are computed: groups are random, so other seeds of
    `jackknife` give what is as good; their errors vary by 1/√38 = 16 % each."""
    x = rows(n, dim) * torch.linspace(1, 2, dim)
    found = spectrum(x, center=center, with_error=True)
    assert found.errors.keys() == {"effective_rank", "stable_rank", "rank", "explained_first"}
    assert found.scalars() == spectrum(x, center=center).scalars()

    def once(part: Tensor) -> Spectrum:
        return spectrum(part, center=center)

    others = [geometry.jackknife(once, x, seed=s) for s in range(1, 41)] if n > dim * 2 else []
    for name in ("effective_rank", "stable_rank", "explained_first"):
        assert found.errors[name] > 0
        if others:
            each = np.array([o[name] for o in others])
            assert abs(found.errors[name] - each.mean()) < 4 * each.std()
    assert found.errors["rank"] == 0


def test_errors_are_the_spread_over_samples() -> None:
    """150 samples of 200 rows: σ is known to 6 %, the errors' rms to 1.3 %; 20 % would be a real difference."""
    scale = torch.tensor([3.0, 1.0, 1.0, 0.5])
    found = [spectrum(rows(200, 4, seed=s) * scale, with_error=True) for s in range(150)]
    for name in ("effective_rank", "stable_rank", "explained_first"):
        spread = float(np.std([getattr(f, name) for f in found]))
        assert rms([f.errors[name] for f in found]) / spread == pytest.approx(1.0, abs=0.2), name


# ---------------------------------------------------------------------------------------------------- collapse


def test_kinds() -> None:
    x = sphere(400, 12)
    plane = torch.zeros(2, 12, dtype=torch.float64)
    plane[0, 0] = plane[1, 1] = 1
    kinds = {
        "none": x,
        "dimensional": x[:, :2] @ plane,
        "complete": x[:1] + 0.01 * x,
    }
    for kind, features in kinds.items():
        found = collapse(features)
        assert found.kind == kind
        assert bool(found) is (kind != "none")
        assert found.dim == 12


@pytest.mark.parametrize("n", [30, 500])
def test_eq_3(n: int) -> None:
    x = rows(n, 6) + 0.3
    found = collapse(x)
    assert found.spread == pytest.approx(1 - float(unit(x).mean(0).square().sum()), rel=1e-12)
    scaled = collapse(x, normalize=False)
    assert scaled.spread == pytest.approx(1 - float(x.mean(0).square().sum() / x.square().sum(1).mean()), rel=1e-12)


def test_eq_3_at_its_ends() -> None:
    assert collapse(torch.ones(40, 3)).spread == pytest.approx(0.0, abs=1e-6)
    x = rows(40, 3)
    assert collapse(torch.cat([x, -x])).spread == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize("n", [40, 500])
@pytest.mark.parametrize("alive", [1, 5, 9, 10])
def test_eq_4_counts_dead_directions(n: int, alive: int) -> None:
    """Of ten; one in ten is not yet a collapse."""
    mask = (torch.arange(10) < alive).double()
    found = collapse(rows(n, 10) * mask, normalize=False)
    assert found.dead == 10 - alive
    assert found.kind == ("dimensional" if found.dead > 1 else "none")


@pytest.mark.parametrize(("variance", "dead"), [(0.5e-4, 1), (2e-4, 0)])
def test_eq_4_at_its_limit(variance: float, dead: int) -> None:
    """One direction with 1e-4 of the mean variance, a little less or more. Signs make the others exact."""
    signs = torch.tensor([[1.0, 1, 1], [1, -1, 1], [-1, 1, 1], [-1, -1, 1]] * 10, dtype=torch.float64)
    signs[:, 2] = torch.tensor([1.0, -1, -1, 1] * 10)
    mean = (2 + variance) / 3
    scale = torch.tensor([1.0, 1.0, math.sqrt(variance * mean)], dtype=torch.float64)
    assert collapse(signs * scale, normalize=False).dead == dead


def test_directions_that_few_rows_cannot_have_are_not_dead() -> None:
    with pytest.warns(geometry.TooFewSamples):
        found = collapse(rows(6, 20))
    assert (found.dead, found.dim, found.kind) == (0, 20, "none")


@pytest.mark.parametrize("n", [40, 500])
def test_zero_features_have_collapsed(n: int) -> None:
    found = collapse(torch.zeros(n, 4))
    assert (found.kind, found.spread) == ("complete", 0.0)


@pytest.mark.parametrize("n", [40, 500])
def test_equal_rows_have_collapsed_completely(n: int) -> None:
    for seed in range(5):
        assert collapse(rows(1, 8, seed=seed).repeat(n, 1)).kind == "complete"
