"""The energy penalty of cross-entropy against (1)–(3) of kontrast.energy, loops written out."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from kontrast import energy, simplex
from kontrast.geometry import bounds
from kontrast.losses import CrossEntropyLoss
from tests.losses.literal import EXACT, D, N, Row, dot, points, rows, unit

CLASSES = 4
LABELS = torch.tensor([2, 0, 3, 2, 1, 0])
POWERS = (0.0, 0.5, 1.0, 2.0, 3.0, 10.0)


def with_weights(weight: Tensor, **options: Any) -> CrossEntropyLoss:
    loss = CrossEntropyLoss(*weight.shape, **options).to(weight.dtype)
    with torch.no_grad():
        loss.weight.copy_(weight)
    return loss


def penalty(weight: Tensor, power: float, amount: float = 1.0) -> tuple[Tensor, Tensor]:
    """What the penalty adds to the loss, and its gradient by the weights."""
    z, labels = torch.zeros(1, weight.shape[1], dtype=weight.dtype), [0]  # a point at the origin: no gradient from it
    loss = with_weights(weight, energy_penalty=amount, energy_power=power)
    value = loss(z, labels)
    value.backward()
    assert loss.weight.grad is not None
    return value.detach() - math.log(len(weight)), loss.weight.grad


def eq_1(weight: list[Row], power: float) -> float:
    """The mean over ordered pairs of ‖ŵ_i − ŵ_j‖^(−s), or of log 1/‖ŵ_i − ŵ_j‖."""
    found = []
    for i, first in enumerate(weight):
        for j, second in enumerate(weight):
            if i != j:
                a, b = ([x / math.sqrt(dot(w, w)) for x in w] for w in (first, second))
                distance = math.sqrt(math.fsum((x - y) ** 2 for x, y in zip(a, b, strict=True)))
                found.append(distance**-power if power else math.log(1 / distance))
    return math.fsum(found) / len(found)


@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("shape", [(2, 1), (2, 3), (4, 2), (7, 5)])
def test_value_is_eq_1(shape: tuple[int, int], power: float) -> None:
    weight = rows(*shape, seed=1)
    if shape == (2, 1):
        weight = points([0.3], [-2.0])
    expected = eq_1(weight.tolist(), power)
    assert energy.reference(weight, power).item() == pytest.approx(expected, rel=1e-12)
    assert energy.energy(weight, power).item() == pytest.approx(expected, rel=1e-12)
    assert penalty(weight, power, 0.7)[0].item() == pytest.approx(0.7 * expected, rel=1e-11)


def test_by_hand() -> None:
    # Right angle, straight angle, right angle: squared distances 2, 4, 2.
    weight = points([3.0, 0.0], [0.0, 0.1], [-7.0, 0.0])
    assert penalty(weight, 2.0)[0].item() == pytest.approx((1 / 2 + 1 / 4 + 1 / 2) / 3, rel=1e-12)
    assert penalty(weight, 1.0)[0].item() == pytest.approx((2 / math.sqrt(2) + 1 / 2) / 3, rel=1e-12)
    assert penalty(weight, 0.0)[0].item() == pytest.approx(-(2 * math.log(2) / 2 + math.log(2)) / 3, rel=1e-12)


@pytest.mark.parametrize("power", POWERS)
def test_gradient_is_that_of_eq_1(power: float) -> None:
    weight = rows(CLASSES, D, seed=2)
    _, gradient = penalty(weight, power)
    for i in range(CLASSES):
        for d in range(D):
            moved = [weight.clone(), weight.clone()]
            for x, side in zip(moved, (1e-5, -1e-5), strict=True):
                x[i, d] += side
            difference = (eq_1(moved[0].tolist(), power) - eq_1(moved[1].tolist(), power)) / 2e-5
            assert gradient[i, d].item() == pytest.approx(difference, rel=1e-5, abs=1e-8)


def test_only_directions_count() -> None:
    weight = rows(CLASSES, D, seed=3)
    value, gradient = penalty(weight, 2.0)
    longer = weight * torch.tensor([[0.1], [2.0], [30.0], [1.0]], dtype=torch.float64)
    torch.testing.assert_close(penalty(longer, 2.0)[0], value, **EXACT)
    assert (gradient * weight).sum(1).abs().max() < 1e-13 * gradient.norm()  # nothing along the weights


def test_it_is_added_once_to_mean_and_sum_and_not_to_none() -> None:
    z, weight = rows(N, D, seed=4), rows(CLASSES, D, seed=5)
    extra = 0.25 * eq_1(weight.tolist(), 1.0)
    options = {"energy_penalty": 0.25, "energy_power": 1.0}
    for reduction in ("mean", "sum"):
        plain = with_weights(weight, reduction=reduction)(z, LABELS)
        both = with_weights(weight, reduction=reduction, weight_penalty=0.5, **options)(z, LABELS)
        squared = math.fsum(x * x for w in weight.tolist() for x in w)
        assert (both - plain).item() == pytest.approx(extra + 0.5 * squared, rel=1e-12)
    values = with_weights(weight, reduction="none", **options)(z, LABELS)
    assert torch.equal(values, with_weights(weight, reduction="none")(z, LABELS))


def test_the_default_is_no_penalty() -> None:
    z, weight = rows(N, D, seed=6), rows(CLASSES, D, seed=7)
    assert torch.equal(with_weights(weight)(z, LABELS), with_weights(weight, energy_penalty=0.0)(z, LABELS))
    assert (CrossEntropyLoss(3, 2).energy_penalty, CrossEntropyLoss(3, 2).energy_power) == (0.0, 2.0)


# ---------------------------------------------------------------------------------------------------- edge cases


@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_equal_weights_are_finite_and_do_not_move(power: float, dtype: torch.dtype) -> None:
    """All equal; of different lengths; one equal pair among others, which are still pushed."""
    value, gradient = penalty(torch.ones(3, 7, dtype=dtype), power)
    expected = energy.NEAREST**-power if power else -math.log(energy.NEAREST)
    assert value.item() == pytest.approx(expected, rel=1e-5)
    assert (gradient == 0).all()
    lengths = torch.tensor([[1.0], [2.0], [0.5]], dtype=dtype)
    value, gradient = penalty(torch.ones(3, 7, dtype=dtype) * lengths, power)
    assert value.isfinite()
    assert (gradient == 0).all()
    one, two = rows(2, 7, seed=8).to(dtype)
    value, gradient = penalty(torch.stack([one, one, two]), power)
    assert value.isfinite()
    assert gradient.isfinite().all()
    assert (gradient != 0).any(1).all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_a_zero_weight_neither_moves_nor_moves_others(dtype: torch.dtype) -> None:
    weight = rows(CLASSES, D, seed=9).to(dtype)
    _, alone = penalty(weight, 2.0)
    value, gradient = penalty(torch.cat([weight, torch.zeros(2, D, dtype=dtype)]), 2.0)
    assert value.isfinite()
    assert (gradient[CLASSES:] == 0).all()
    pairs = CLASSES * (CLASSES - 1) / ((CLASSES + 2) * (CLASSES + 1))  # the mean is over more pairs
    torch.testing.assert_close(gradient[:CLASSES], alone * pairs)


def test_half_precision_is_computed_in_float32() -> None:
    weight = rows(CLASSES, D, seed=10).half()
    value, gradient = penalty(weight, 2.0)
    exact, expected = penalty(weight.float(), 2.0)
    assert value.dtype == torch.float32
    torch.testing.assert_close(value, exact)
    torch.testing.assert_close(gradient, expected.half())


def test_float32_is_right_down_to_the_nearest_distance() -> None:
    """At NEAREST 2 − 2cos has lost most of its digits; what is left must do."""
    for distance in (0.0101, 0.1, 1.0):
        angle = 2 * math.asin(distance / 2)
        weight = points([1.0, 0.0], [math.cos(angle), math.sin(angle)])
        assert penalty(weight.float(), 2.0)[0].item() == pytest.approx(distance**-2, rel=0.01)


@pytest.mark.parametrize(("option", "value"), [("energy_penalty", -1.0), ("energy_power", -0.5)])
def test_negative_options_are_refused(option: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{option}={value}: must be a finite number of at least 0"):
        CrossEntropyLoss(3, 2, **{option: value})


def test_a_power_beyond_float32_is_refused() -> None:
    with pytest.raises(ValueError, match="energy_power must be at most 10, got 11"):
        CrossEntropyLoss(3, 2, energy_power=11)


# -------------------------------------------------------------------------------------------- strips of many classes


class Largest(TorchDispatchMode):
    """The entries of the largest tensor that an operation returns."""

    entries = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = function(*args, **(kwargs or {}))
        for t in out if isinstance(out, tuple | list) else (out,):
            if isinstance(t, Tensor):
                self.entries = max(self.entries, t.numel())
        return out


@pytest.mark.parametrize("power", [0.0, 2.0])
@pytest.mark.parametrize("entries", [1, 100, 33 * 32])
def test_strips_are_the_whole(monkeypatch: pytest.MonkeyPatch, power: float, entries: int) -> None:
    """First and second derivatives; strips of one row, of several with a short last one, of all but one."""
    weight = rows(33, 6, seed=11).requires_grad_()

    def derivatives() -> tuple[Tensor, ...]:
        value = energy.energy(weight, power)
        (first,) = torch.autograd.grad(value, weight, create_graph=True)
        (second,) = torch.autograd.grad(first.square().sum(), weight)
        return value, first, second

    whole = derivatives()
    monkeypatch.setattr(energy, "ENTRIES", entries)
    for found, expected in zip(derivatives(), whole, strict=True):
        torch.testing.assert_close(found, expected, **EXACT)


def test_many_classes_make_no_matrix_of_all_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    weight = rows(100, 3, seed=12).requires_grad_()
    with Largest() as whole:
        torch.autograd.grad(energy.energy(weight, 2.0), weight)
    monkeypatch.setattr(energy, "ENTRIES", 1000)
    with Largest() as strips:
        torch.autograd.grad(energy.energy(weight, 2.0), weight)
    assert (whole.entries, strips.entries) == (10_000, 1000)


# --------------------------------------------------------------------------------------------------- the minimum


@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("k", [2, 3, 10])
def test_eq_3_is_the_energy_of_the_simplex_and_others_are_above(k: int, power: float) -> None:
    lowest = bounds.hyperspherical_energy(k, power)
    weight = simplex.vertices(k, k + 1, seed=3, dtype=torch.float64)
    assert eq_1((5 * weight).tolist(), power) == pytest.approx(lowest, rel=1e-12)
    for seed in range(20):
        noise = rows(k, k + 1, seed=seed)
        for other in (noise, unit(weight + 0.05 * noise)):
            assert penalty(other, power)[0].item() > lowest


def test_the_penalty_spreads_weights_that_the_data_leave_alone() -> None:
    """Plain gradient descent on the penalty alone ends at the simplex."""
    loss = with_weights(rows(CLASSES, D, seed=13), energy_penalty=1.0)
    z = torch.zeros(1, D, dtype=torch.float64)
    for _ in range(500):
        (slope,) = torch.autograd.grad(loss(z, [0]), loss.weight)
        with torch.no_grad():
            loss.weight -= 2.0 * slope
    w = unit(loss.weight.detach())
    cosines = (w @ w.T)[~torch.eye(CLASSES, dtype=torch.bool)]
    assert (cosines + 1 / (CLASSES - 1)).abs().max() < 1e-6
