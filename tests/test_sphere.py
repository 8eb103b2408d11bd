"""Rows on the unit sphere, against torch's `normalize`, and at the ends of what numbers can hold."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from kontrast.sphere import directions, sized, unit


def test_unit_rows_are_what_normalize_gives() -> None:
    x = torch.randn(7, 5, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(unit(x), functional.normalize(x, dim=1))
    assert torch.autograd.gradcheck(unit, [x])
    assert torch.autograd.gradgradcheck(unit, [x])


def test_a_zero_row_stays_zero_and_gets_no_gradient() -> None:
    x = torch.tensor([[0.0, 0.0], [3.0, 4.0], [1e-25, 0.0]], requires_grad=True)
    z = unit(x)
    assert z.tolist() == [[0.0, 0.0], [pytest.approx(0.6), pytest.approx(0.8)], [0.0, 0.0]]
    (gradient,) = torch.autograd.grad(z.sum(), x)
    assert gradient[[0, 2]].tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert gradient.isfinite().all()


def test_rows_whose_squares_overflow() -> None:
    torch.testing.assert_close(unit(torch.tensor([[3e30, 4e30], [3.0, 4.0]])), torch.tensor([[0.6, 0.8]] * 2))


@pytest.mark.parametrize("size", [1e-37, 1e-30, 1e-12, 1.0, 1e12, 1e30, 1e37])
def test_directions_of_rows_of_any_size(size: float) -> None:
    x = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    expected = functional.normalize(x.double(), dim=1).float()
    torch.testing.assert_close(directions(x * size), expected, rtol=1e-5, atol=1e-6)


def test_directions_in_another_precision_and_of_integers() -> None:
    assert directions(torch.tensor([[3, 4]]), torch.float64).tolist() == [[pytest.approx(0.6), pytest.approx(0.8)]]
    wide = torch.tensor([[3e200, 4e200]], dtype=torch.float64)
    torch.testing.assert_close(directions(wide, torch.float32), torch.tensor([[0.6, 0.8]]))


def test_one_odd_row_leaves_the_others_to_the_bit() -> None:
    x = torch.randn(5, 3)
    odd = torch.cat([x, torch.full((1, 3), 1e-30)])
    assert torch.equal(directions(odd)[:5], directions(x))


def test_sized_rescales_all_rows_by_one_factor() -> None:
    x = torch.tensor([[1e-30, 2e-30], [0.0, 4e-30]])
    rescaled, factor = sized(x)
    assert factor == pytest.approx(4e-30)
    torch.testing.assert_close(rescaled, torch.tensor([[0.25, 0.5], [0.0, 1.0]]))
    ordinary = torch.randn(3, 2)
    same, one = sized(ordinary)
    assert same is ordinary
    assert one == 1.0
