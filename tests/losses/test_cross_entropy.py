"""Cross-entropy against (1) and (2) of losses/cross_entropy.py, and Graf et al.'s bound and regularised optimum."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from kontrast import simplex
from kontrast.losses import CrossEntropyLoss
from kontrast.losses.cross_entropy import reference
from tests.losses.literal import EXACT, D, N, Row, assert_values, axes, dot, points, rows, unit

CLASSES = 4
LABELS = torch.tensor([2, 0, 3, 2, 1, 0])


def with_weights(weight: Tensor, *options: Any, **named: Any) -> CrossEntropyLoss:
    loss = CrossEntropyLoss(*weight.shape, *options, **named).double()
    with torch.no_grad():
        loss.weight.copy_(weight)
    return loss


def softmax(z: Row, weight: list[Row]) -> list[float]:
    e = [math.exp(dot(z, w)) for w in weight]
    return [x / math.fsum(e) for x in e]


def eq_1(z: Row, label: int, weight: list[Row]) -> float:
    return -math.log(softmax(z, weight)[label])


@pytest.mark.parametrize("normalize", [False, True])
def test_value_is_eq_1(normalize: bool) -> None:
    z, weight = rows(N, D, seed=0), rows(CLASSES, D, seed=1)
    points_seen = unit(z) if normalize else z
    expected = [eq_1(x, y, weight.tolist()) for x, y in zip(points_seen.tolist(), LABELS.tolist(), strict=True)]
    assert_values(reference(points_seen, LABELS, weight=weight), expected)
    assert_values(with_weights(weight, normalize=normalize, reduction="none")(z, LABELS), expected)
    mean = with_weights(weight, normalize=normalize)(z, LABELS)
    assert mean.item() == pytest.approx(math.fsum(expected) / N, rel=1e-12)


def test_normalisation_is_off_unless_asked_for() -> None:
    z, weight = rows(N, D, seed=2), rows(CLASSES, D, seed=3)
    longer = with_weights(weight, reduction="none")(10 * z, LABELS)
    expected = [eq_1(x, y, weight.tolist()) for x, y in zip((10 * z).tolist(), LABELS.tolist(), strict=True)]
    assert_values(longer, expected)


@pytest.mark.parametrize("penalty", [0.0, 0.3])
def test_gradient_of_eq_1_and_eq_2(penalty: float) -> None:
    """∂L_i/∂⟨z_i, w_c⟩ = p_ic − 1[c = y_i], and 2λW from the penalty, once for the whole batch."""
    z, weight = rows(N, D, seed=4).requires_grad_(), rows(CLASSES, D, seed=5)
    loss = with_weights(weight, penalty, reduction="sum")
    loss(z, LABELS).backward()
    to_weight = [[2 * penalty * x for x in w] for w in weight.tolist()]
    for i, y in enumerate(LABELS.tolist()):
        slopes = [p - (c == y) for c, p in enumerate(softmax(z[i].tolist(), weight.tolist()))]
        assert_values(z.grad[i], [dot(slopes, column) for column in weight.T.tolist()])
        to_weight = [
            [g + slope * x for g, x in zip(row, z[i].tolist(), strict=True)]
            for row, slope in zip(to_weight, slopes, strict=True)
        ]
    torch.testing.assert_close(loss.weight.grad, points(*to_weight), **EXACT)


def test_by_hand() -> None:
    # Weights (1,0), (0,1), (−1,0) and the point (2,1): logits 2, 1, −2.
    loss = with_weights(points([1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]), reduction="none")
    z = points([2.0, 1.0]).expand(3, 2)
    log_z = math.log(math.exp(2) + math.exp(1) + math.exp(-2))
    assert_values(loss(z, [0, 1, 2]), [log_z - 2, log_z - 1, log_z + 2])


def test_at_the_origin_every_class_is_as_likely() -> None:
    value = with_weights(rows(CLASSES, D, seed=6), reduction="none")(torch.zeros(N, D).double(), LABELS)
    assert_values(value, [math.log(CLASSES)] * N)


# ----------------------------------------------------------------------------------------------------- penalty


def test_penalty_is_added_once_to_mean_and_sum_and_not_to_none() -> None:
    z, weight = rows(N, D, seed=7), rows(CLASSES, D, seed=8)
    squared = math.fsum(x * x for w in weight.tolist() for x in w)
    for reduction in ("mean", "sum"):
        plain, regularised = (with_weights(weight, lam, reduction=reduction)(z, LABELS) for lam in (0.0, 0.25))
        assert (regularised - plain).item() == pytest.approx(0.25 * squared, rel=1e-12)
    values = with_weights(weight, 0.25, reduction="none")(z, LABELS)
    assert torch.equal(values, with_weights(weight, reduction="none")(z, LABELS))


def test_a_negative_penalty_is_refused() -> None:
    with pytest.raises(ValueError, match=r"weight_penalty=-1\.0: must be a finite number of at least 0"):
        CrossEntropyLoss(3, 2, -1.0)


# ------------------------------------------------------------------------------------------ bound and optimum


def bound(k: int, radius: float, weight_norm: float) -> float:
    return math.log(1 + (k - 1) * math.exp(-radius * math.sqrt(k) / (k - 1) * weight_norm))


@pytest.mark.parametrize("k", [2, 4, 10])
@pytest.mark.parametrize(("radius", "length"), [(1.0, 1.0), (2.0, 0.7), (0.5, 3.0)])
def test_the_bound_is_reached_at_the_simplex(k: int, radius: float, length: float) -> None:
    labels = torch.arange(3 * k) % k
    vertices = simplex.vertices(k, k + 1, seed=2, dtype=torch.float64)
    value = with_weights(length * vertices)(radius * vertices[labels], labels)
    norm = math.sqrt(k) * length
    assert value.item() == pytest.approx(bound(k, radius, norm), rel=1e-12)
    assert value.item() == pytest.approx(math.log(1 + (k - 1) * math.exp(-k * radius * length / (k - 1))), rel=1e-12)


@pytest.mark.parametrize("k", [2, 4, 10])
@pytest.mark.parametrize("radius", [0.5, 2.0])
def test_the_bound_is_not_passed_by_other_points(k: int, radius: float) -> None:
    """Balanced labels, points in the ball: random ones, the simplex shaken, collapsed ones, shorter ones."""
    labels = torch.arange(3 * k) % k
    vertices = simplex.vertices(k, k + 1, dtype=torch.float64)
    for seed in range(20):
        noise, shift = rows(3 * k, k + 1, seed=seed), rows(k, k + 1, seed=100 + seed)
        tries = [
            (unit(noise), shift),
            (unit(vertices[labels] + 0.05 * noise), vertices),
            (vertices[labels], vertices + 0.05 * shift),
            (unit(shift)[labels], unit(shift)),
            (0.9 * vertices[labels], vertices),
        ]
        for z, weight in tries:
            lowest = bound(k, radius, math.sqrt(sum(dot(w, w) for w in weight.tolist())))
            assert with_weights(weight)(radius * z, labels).item() > lowest


def optimal_radius(k: int, penalty: float) -> float:
    """argmin over r of CE + λ‖W‖² with unit points at the simplex and weights r times it, by where the slope is 0."""
    vertices = simplex.vertices(k, dtype=torch.float64)
    loss, labels = with_weights(vertices, penalty), torch.arange(k)

    def slope(r: float) -> float:
        with torch.no_grad():
            loss.weight.copy_(r * vertices)
        (gradient,) = torch.autograd.grad(loss(vertices, labels), loss.weight)
        return float((gradient * vertices).sum())

    low, high = 0.0, 20.0
    assert slope(low) < 0 < slope(high)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return low


@pytest.mark.parametrize(("k", "penalty", "known"), [(4, 0.005, 2.6583), (4, 0.05, 1.2281), (10, 1e-4, 6.0375)])
def test_regularised_weights_have_the_radius_of_the_theorem(k: int, penalty: float, known: float) -> None:
    """r_W solves 2λ r (e^{Kr/(K−1)} + K − 1) = ρ, here ρ = 1."""
    r = optimal_radius(k, penalty)
    assert r == pytest.approx(known, abs=5e-5)  # the figures it is known to
    assert 2 * penalty * r * (math.exp(k * r / (k - 1)) + k - 1) == pytest.approx(1.0, rel=1e-10)


def test_the_value_is_lowest_at_that_radius() -> None:
    vertices = simplex.vertices(4, dtype=torch.float64)
    values = [with_weights(r * vertices, 0.05)(vertices, torch.arange(4)).item() for r in (1.2181, 1.2281, 1.2381)]
    assert values[1] < min(values[0], values[2])


# ------------------------------------------------------------------------------------------ labels and weights


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64], ids=str)
def test_labels_of_every_integer_dtype(dtype: torch.dtype) -> None:
    z, loss = rows(N, D, seed=9), with_weights(rows(CLASSES, D, seed=10), reduction="none")
    assert torch.equal(loss(z, LABELS.to(dtype)), loss(z, LABELS))


def test_bool_labels_are_two_classes() -> None:
    z, loss = rows(N, D, seed=11), with_weights(rows(2, D, seed=12), reduction="none")
    assert torch.equal(loss(z, LABELS > 1), loss(z, (LABELS > 1).long()))


@pytest.mark.parametrize(
    "kind", [Tensor.tolist, lambda x: x.numpy().astype(np.uint8), lambda x: x.repeat_interleave(2)[::2]]
)
def test_labels_of_every_kind(kind: Callable[[Tensor], Any]) -> None:
    z, loss = rows(N, D, seed=13), with_weights(rows(CLASSES, D, seed=14), reduction="none")
    assert torch.equal(loss(z, kind(LABELS)), loss(z, LABELS))


@pytest.mark.parametrize(("wrong", "seen"), [(-1, "-1 to 3"), (4, "0 to 4"), (10**12, f"0 to {10**12}")])
def test_labels_out_of_range_are_a_value_error(wrong: int, seen: str) -> None:
    labels = LABELS.clone()
    labels[4] = wrong
    message = f"labels run from {seen}; with num_classes=4 they must be in 0 … 3"
    with pytest.raises(ValueError, match=message):
        CrossEntropyLoss(CLASSES, D)(torch.ones(N, D), labels)


def test_embeddings_of_another_size_are_a_value_error() -> None:
    with pytest.raises(ValueError, match=r"embeddings have shape \[6, 4\]; this loss was made for dim=5"):
        CrossEntropyLoss(CLASSES, 5)(torch.ones(N, 4), LABELS)


@pytest.mark.parametrize("options", [(1, 3), (0, 3), (2.0, 3), (3, 0)])
def test_classes_and_dimensions_are_whole_numbers(options: tuple[Any, Any]) -> None:
    name = "dim" if options == (3, 0) else "num_classes"
    with pytest.raises(ValueError, match=f"{name}=.*: must be a whole number of at least"):
        CrossEntropyLoss(*options)


@pytest.mark.parametrize("dim", [1, 16, 400])
def test_weights_begin_uniform_within_one_over_the_root_of_dim(dim: int) -> None:
    torch.manual_seed(0)
    weight = CrossEntropyLoss(200, dim).weight.detach()
    largest = 1 / math.sqrt(dim)
    assert weight.shape == (200, dim)
    assert weight.abs().max() <= largest
    # Of 200·dim uniform draws the largest is within 5 % of the end but for a chance of 0.95^200 < 4e-5.
    assert weight.max() > 0.95 * largest
    assert weight.min() < -0.95 * largest


def test_weights_can_be_drawn_anew() -> None:
    torch.manual_seed(0)
    loss = CrossEntropyLoss(5, 3)
    before = loss.weight.detach().clone()
    loss.reset_parameters()
    assert not torch.equal(before, loss.weight)
    torch.manual_seed(0)
    loss.reset_parameters()
    assert torch.equal(before, loss.weight)


def test_there_is_no_bias() -> None:
    """With the axes as points each loss is a softmax of a column of the weights, and nothing is learned beside them."""
    loss = with_weights(rows(3, 3, seed=15), reduction="none")
    assert [(name, tuple(p.shape)) for name, p in loss.named_parameters()] == [("weight", (3, 3))]
    columns = loss.weight.T.tolist()
    expected = [-math.log(math.exp(column[0]) / math.fsum(map(math.exp, column))) for column in columns]
    assert_values(loss(axes(3), [0, 0, 0]), expected)
