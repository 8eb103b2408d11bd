"""Cross-entropy with weights fixed at a regular simplex ("CE-fix", Graf et al.): (1) of its file, and S1–S3."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from kontrast.losses import CrossEntropyLoss, SimplexCrossEntropyLoss
from kontrast.losses.simplex_cross_entropy import reference
from tests.losses.literal import (
    EXACT,
    D,
    N,
    Row,
    assert_same,
    assert_values,
    dot,
    points,
    rows,
    unit,
    value_and_gradients,
)

LABELS = torch.tensor([2, 0, 3, 2, 1, 0])
# The weights are float32: each coordinate is rounded by up to 6e-8 of it.
SINGLE = {"rel": 1e-6, "abs": 1e-6}
each_size = pytest.mark.parametrize(("k", "dim"), [(2, 1), (3, 2), (4, 5), (10, 9), (10, 512), (100, 128)])


def eq_1(z: Row, label: int, weight: list[Row]) -> float:
    e = [math.exp(dot(z, w)) for w in weight]
    return -math.log(e[label] / math.fsum(e))


@pytest.mark.parametrize("normalize", [False, True])
def test_value_is_eq_1(normalize: bool) -> None:
    z = rows(N, D, seed=0)
    loss = SimplexCrossEntropyLoss(4, D, radius=3.0, normalize=normalize, reduction="none").double()
    seen = unit(z) if normalize else z
    expected = [eq_1(x, y, loss.weight.tolist()) for x, y in zip(seen.tolist(), LABELS.tolist(), strict=True)]
    assert_values(reference(seen, LABELS, weight=loss.weight), expected)
    assert_values(loss(z, LABELS), expected)


def test_gradient_of_eq_1() -> None:
    """Σ_c (p_ic − 1[c = y_i]) ζ_c: the vertices pull and push, and do not move."""
    z = rows(N, D, seed=1).requires_grad_()
    loss = SimplexCrossEntropyLoss(4, D, reduction="sum").double()
    loss(z, LABELS).backward()
    weight = loss.weight.tolist()
    for i, y in enumerate(LABELS.tolist()):
        e = [math.exp(dot(z[i].tolist(), w)) for w in weight]
        slopes = [x / math.fsum(e) - (c == y) for c, x in enumerate(e)]
        assert_values(z.grad[i], [dot(slopes, column) for column in loss.weight.T.tolist()])
    assert list(loss.parameters()) == []
    assert not loss.weight.requires_grad
    assert list(loss.state_dict()) == ["weight"]


# ------------------------------------------------------------------------------------------------- the simplex


@each_size
@pytest.mark.parametrize("radius", [1.0, 2.5])
def test_weights_are_a_regular_simplex(k: int, dim: int, radius: float) -> None:
    weight = SimplexCrossEntropyLoss(k, dim, radius=radius).weight.double()
    assert weight.shape == (k, dim)
    vertices = weight.tolist()
    for column in weight.T.tolist():
        assert math.fsum(column) == pytest.approx(0.0, abs=1e-6 * radius)  # (S1)
    for v in vertices:
        assert math.sqrt(dot(v, v)) == pytest.approx(radius, rel=1e-6)  # (S2)
    edge = radius * math.sqrt(2 * k / (k - 1))
    for v, w in itertools.combinations(vertices, 2):
        assert math.dist(v, w) == pytest.approx(edge, rel=1e-6)  # (S3)


@each_size
@pytest.mark.parametrize(("radius", "length"), [(1.0, 1.0), (2.0, 3.0)])
def test_points_at_the_vertices_have_the_bound_of_cross_entropy(k: int, dim: int, radius: float, length: float) -> None:
    """log(1 + (K−1) e^{−Kρr/(K−1)}), below which no point of that length comes."""
    loss = SimplexCrossEntropyLoss(k, dim, radius=radius).double()
    labels = torch.arange(k)
    lowest = math.log(1 + (k - 1) * math.exp(-k * radius * length / (k - 1)))
    at_vertices = loss(loss.weight * (length / radius), labels).item()
    # Rounding the weights moves the exponent by about 1e-7 of ρr, and a small value relatively by as much.
    assert at_vertices == pytest.approx(lowest, rel=1e-6 * radius * length)
    if dim > 1:
        for seed in range(5):
            assert loss(length * unit(loss.weight + 0.3 * radius * rows(k, dim, seed=seed)), labels) > at_vertices


def test_two_classes_on_a_line_by_hand() -> None:
    # ζ = ±1, so a point at t has logits ±t: log(1 + e^{−2t}) for the class it is on the side of.
    loss = SimplexCrossEntropyLoss(2, 1, reduction="none").double()
    sign = loss.weight[0].item()
    assert loss.weight.flatten().tolist() == [sign, -sign]
    assert abs(sign) == pytest.approx(1.0, **SINGLE)
    t = 0.7
    expected = [math.log(1 + math.exp(-2 * t)), math.log(1 + math.exp(2 * t))]
    assert loss(points([t * sign], [t * sign]), [0, 1]).tolist() == pytest.approx(expected, **SINGLE)


@pytest.mark.parametrize(("k", "dim"), [(4, 2), (10, 8), (100, 64)])
def test_without_room_for_the_simplex_it_says_what_is_needed(k: int, dim: int) -> None:
    message = rf"{k} vertices of a regular simplex need dim ≥ {k - 1} \(num_classes − 1\), got dim={dim}: use a wider"
    with pytest.raises(ValueError, match=message):
        SimplexCrossEntropyLoss(k, dim)


# --------------------------------------------------------------------------------------------- seed and radius


def test_the_seed_turns_the_simplex() -> None:
    first, again, other = (SimplexCrossEntropyLoss(5, 16, seed=s).weight for s in (3, 3, 4))
    assert torch.equal(first, again)
    assert (first - other).abs().max() > 0.1
    torch.testing.assert_close(first @ first.T, other @ other.T, rtol=0, atol=1e-6)


def test_making_it_draws_nothing_from_the_global_generator() -> None:
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    SimplexCrossEntropyLoss(5, 16)
    assert torch.equal(torch.rand(3), expected)


def test_features_that_cannot_be_negative_can_point_at_every_vertex() -> None:
    """Turned, each vertex has positive coordinates; the plain closed form has a vertex with none."""
    assert (SimplexCrossEntropyLoss(10, 64).weight > 0).sum(1).min() >= 10


def test_the_radius_is_a_factor() -> None:
    one, three = (SimplexCrossEntropyLoss(5, 16, radius=r).weight for r in (1.0, 3.0))
    torch.testing.assert_close(three, 3 * one, rtol=1e-6, atol=1e-7)
    with pytest.raises(ValueError, match=r"radius=0\.0: must be a finite number above 0"):
        SimplexCrossEntropyLoss(5, 16, radius=0.0)


def test_it_is_cross_entropy_whose_weights_stand_there() -> None:
    fixed = SimplexCrossEntropyLoss(4, D, radius=2.0, reduction="none").double()
    learned = CrossEntropyLoss(4, D, reduction="none").double()
    with torch.no_grad():
        learned.weight.copy_(fixed.weight)
    inputs = {"embeddings": rows(N, D, seed=2), "labels": LABELS}
    assert_same(
        value_and_gradients(fixed, inputs, "embeddings"), value_and_gradients(learned, inputs, "embeddings"), **EXACT
    )


@pytest.mark.parametrize(("wrong", "seen"), [(-1, "-1 to 3"), (4, "0 to 4")])
def test_labels_out_of_range_are_a_value_error(wrong: int, seen: str) -> None:
    labels = LABELS.clone()
    labels[4] = wrong
    with pytest.raises(ValueError, match=f"labels run from {seen}; with num_classes=4 they must be in 0 … 3"):
        SimplexCrossEntropyLoss(4, D)(torch.ones(N, D), labels)
