"""The relative penalty and its entropy: equation numbers are those of `kontrast.geometry.entropy`."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from scipy import special, stats
from torch import Tensor

from kontrast.geometry import penalty_curve, penalty_entropy, relative_penalty
from tests.geometry.samples import EXACT, FORMS, anchors, keyed, on_sphere, rows, sphere

TAUS = (0.05, 0.3, 1.0, 10.0)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("tau", TAUS)
@pytest.mark.parametrize("normalize", [True, False])
def test_eq_2_is_scipys_entropy_of_eq_1(form: str, tau: float, normalize: bool) -> None:
    inputs = keyed(form, 12)
    rows_taken = on_sphere(inputs) if normalize else inputs
    expected = [stats.entropy(special.softmax(np.array(s) / tau)) for _, s in anchors(**rows_taken)]
    found = penalty_entropy(**inputs, temperature=tau, normalize=normalize)
    # 1/τ multiplies similarities that are off by some 1e-16.
    assert found.tolist() == pytest.approx(expected, rel=1e-10, abs=1e-13 / tau)


@pytest.mark.parametrize("form", FORMS)
def test_eq_1_by_hand(form: str) -> None:
    inputs = keyed(form, 7)
    found = relative_penalty(**inputs, temperature=0.2)
    own = list(range(7)) if form == "batch" else inputs.get("own_index")
    for i, (_, s) in enumerate(anchors(**on_sphere(inputs))):
        mine = found[i].tolist()
        if own is not None:
            assert mine.pop(int(own[i])) == 0.0
        total = math.fsum(math.exp(v / 0.2) for v in s)
        assert mine == pytest.approx([math.exp(v / 0.2) / total for v in s], rel=1e-10)


def test_entropy_is_that_of_the_relative_penalty() -> None:
    inputs = keyed("bank", 40)
    r = relative_penalty(**inputs, temperature=0.15)
    torch.testing.assert_close(
        penalty_entropy(**inputs, temperature=0.15), torch.special.entr(r).sum(1), rtol=1e-10, atol=1e-12
    )


def test_equal_similarities_have_log_m_at_every_temperature() -> None:
    x = torch.eye(6, dtype=torch.float64)
    found = penalty_entropy(x, x, temperature=[1e-3, 0.1, 1.0, 100.0])
    torch.testing.assert_close(found, torch.full((6, 4), math.log(5), dtype=torch.float64), **EXACT)


def test_limits_for_small_and_large_temperatures() -> None:
    """0: all on the nearest negative; log M: all alike, up to Var(s)/(2τ²) ≤ 1/(2τ²)."""
    inputs = keyed("queue", 20)
    cold, hot = penalty_entropy(**inputs, temperature=[1e-4, 1e4]).T
    assert bool((cold.abs() < 1e-10).all())
    assert bool(((math.log(29) - hot).abs() < 0.5e-8).all())


def test_cold_limit_of_two_equally_near_negatives_is_log_2() -> None:
    query = torch.tensor([[1.0, 0.0]])
    negatives = torch.tensor([[0.6, 0.8], [0.6, -0.8], [-1.0, 0.0]])
    assert penalty_entropy(query, query, negatives, temperature=1e-3).item() == pytest.approx(math.log(2), rel=1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_entropy_rises_with_the_temperature(form: str) -> None:
    """Strictly, because the similarities differ."""
    found = penalty_entropy(**keyed(form, 15), temperature=[0.02 * 1.3**i for i in range(25)])
    assert bool((found.diff(dim=1) > 0).all())
    assert bool((found >= 0).all())


@pytest.mark.parametrize("tau", [0.1, 0.5, 2.0])
def test_eq_3_by_finite_differences(tau: float) -> None:
    """dH/dτ = Var_r(s)/τ³; central differences of h = 1e-4 τ are off by h² H‴/6, some 1e-8 of the derivative."""
    inputs = keyed("queue", 10)
    h = 1e-4 * tau
    lower, upper = penalty_entropy(**inputs, temperature=[tau - h, tau + h]).T
    r = relative_penalty(**inputs, temperature=tau)
    s = torch.tensor([negatives for _, negatives in anchors(**on_sphere(inputs))], dtype=torch.float64)
    variance = (r * s.square()).sum(1) - (r * s).sum(1).square()
    torch.testing.assert_close((upper - lower) / (2 * h), variance / tau**3, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("form", FORMS)
def test_several_temperatures_are_as_many_calls(form: str) -> None:
    inputs = keyed(form, 30)
    together = penalty_entropy(**inputs, temperature=TAUS)
    assert together.shape == (30, 4)
    for i, tau in enumerate(TAUS):
        alone = penalty_entropy(**inputs, temperature=tau)
        assert alone.shape == (30,)
        assert torch.equal(together[:, i], alone)


@pytest.mark.parametrize("given", [[0.5], (0.5,), np.array([0.5]), np.array([0.5], np.float32)])
def test_a_list_of_one_stays_a_list(given: Any) -> None:
    inputs = keyed("batch", 5)
    found = penalty_entropy(**inputs, temperature=given)
    assert torch.equal(found, penalty_entropy(**inputs, temperature=0.5)[:, None])


@pytest.mark.parametrize("kind", [int, np.float64, np.float32, np.int64, Fraction])
def test_a_number_of_any_kind_is_one_temperature(kind: Callable[[int], Any]) -> None:
    inputs = keyed("batch", 5)
    assert torch.equal(penalty_entropy(**inputs, temperature=kind(1)), penalty_entropy(**inputs, temperature=1.0))


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), [], [0.1, 0.0], "0.1", None, True])
def test_wrong_temperatures(bad: Any) -> None:
    with pytest.raises(ValueError, match="temperature"):
        penalty_entropy(**keyed("batch", 5), temperature=bad)
    with pytest.raises(ValueError, match="temperature"):
        relative_penalty(**keyed("batch", 5), temperature=bad)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("tau", [1e-3, 1e-2, 100.0])
def test_extreme_temperatures(dtype: torch.dtype, tau: float) -> None:
    """Finite and within 0 … log M; float32 similarities are off by 1e-7, which τ divides."""
    inputs = {k: v.to(dtype) if v.is_floating_point() else v for k, v in keyed("bank", 40).items()}
    found = penalty_entropy(**inputs, temperature=tau).double()
    assert bool(found.isfinite().all())
    assert bool((found >= -1e-6).all())
    assert bool((found <= math.log(48) + 1e-6).all())
    expected = [stats.entropy(special.softmax(np.array(s) / tau)) for _, s in anchors(**on_sphere(keyed("bank", 40)))]
    assert found.tolist() == pytest.approx(expected, rel=1e-6, abs=1e-12 + torch.finfo(dtype).eps * 10 / tau)
    assert bool(relative_penalty(**inputs, temperature=tau).isfinite().all())


def test_one_negative_has_no_entropy() -> None:
    x = sphere(2, 4)
    assert penalty_entropy(x, x, temperature=0.1).abs().max().item() < 1e-14


def test_the_positive_does_not_count() -> None:
    """A queue has the negatives alone, so other keys change nothing."""
    inputs = keyed("queue", 10)
    other = inputs | {"key": rows(10, 5, seed=77)}
    assert torch.equal(penalty_entropy(**inputs, temperature=0.1), penalty_entropy(**other, temperature=0.1))


def test_a_bank_without_the_anchors_own_row_is_a_queue() -> None:
    inputs = keyed("bank", 10)
    found = penalty_entropy(**inputs, temperature=0.1)
    for i, own in enumerate(inputs["own_index"].tolist()):
        others = torch.cat([inputs["negatives"][:own], inputs["negatives"][own + 1 :]])
        alone = penalty_entropy(inputs["query"][[i]], inputs["key"][[i]], others, temperature=0.1)
        torch.testing.assert_close(found[[i]], alone, **EXACT)


# -------------------------------------------------------------------------------------------------- the curve


def test_curve_of_given_similarities() -> None:
    s = torch.linspace(-1, 1, 9, dtype=torch.float64)
    for tau in (0.1, 1.0):
        total = math.fsum(math.exp(v / tau) for v in s.tolist())
        expected = [math.exp(v / tau) / total for v in s.tolist()]
        assert penalty_curve(s, tau).tolist() == pytest.approx(expected, rel=1e-12)


def test_curve_along_the_last_dimension() -> None:
    s: Tensor = rows(3, 4, 5)
    found = penalty_curve(s, 0.5)
    torch.testing.assert_close(found[1, 2], penalty_curve(s[1, 2], 0.5), **EXACT)


def test_curve_is_steeper_the_colder() -> None:
    """The share of the nearest tenth falls as the temperature rises (Wang & Liu, figure 3)."""
    s = torch.linspace(-1, 1, 1000, dtype=torch.float64)
    shares = [float(penalty_curve(s, tau)[-100:].sum()) for tau in (0.07, 0.3, 1.0, 100.0)]
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] == pytest.approx(0.1, abs=1e-3)


@pytest.mark.parametrize("bad", [0.0, -0.5, float("inf"), "1"])
def test_wrong_temperature_of_the_curve(bad: Any) -> None:
    with pytest.raises(ValueError, match=r"temperature=.*: must be a finite number above 0"):
        penalty_curve(torch.ones(3), bad)
