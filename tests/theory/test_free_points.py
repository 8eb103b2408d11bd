"""Free points: each step is the equations', and at the end the classes are a simplex."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from kontrast import losses, simplex
from kontrast.geometry import bounds
from kontrast.losses import cross_entropy, supcon
from kontrast.theory.free_points import (
    Deviation,
    FreePoints,
    WeightDeviation,
    class_means,
    deviation,
    free_points,
    weight_deviation,
)

EXACT = {"rtol": 1e-12, "atol": 1e-13}


def unit(x: Tensor) -> Tensor:
    return x / x.norm(dim=1, keepdim=True)


# ---------------------------------------------------------------------------------------------------- the end


@pytest.mark.parametrize(("num_classes", "per_class", "dim"), [(4, 5, 3), (3, 4, 2), (10, 3, 12)])
@pytest.mark.parametrize("name", ["sc", "tcl", "ce-l2", "ce-fix"])
def test_defaults_find_the_simplex(name: str, num_classes: int, per_class: int, dim: int) -> None:
    run = free_points(name, num_classes, per_class, dim)
    assert abs(run.excess) < 1e-9
    assert run.deviation.largest < 1e-6
    if run.weight_deviation is not None:
        assert run.weight_deviation.largest < 1e-6
    assert run.values[0] > run.loss + 0.1


def test_supcon_of_the_authors() -> None:
    """K = 4, 100 each on S², τ = 0.3, rate 7.5, 500 steps."""
    run = free_points("sc", 4, 100, 3, learning_rate=7.5, steps=500, temperature=0.3)
    assert run.points.shape == (400, 3)
    assert 0 < run.excess < 1e-5
    assert run.deviation.largest < 0.01


@pytest.mark.parametrize(
    ("rate", "steps", "penalty", "radius", "within"),
    [(7.5, 500, 0.05, 1.2281, 0.02), (10.0, 1000, 0.005, 2.6583, 1e-5)],
)
def test_cross_entropy_of_the_authors(rate: float, steps: int, penalty: float, radius: float, within: float) -> None:
    run = free_points("ce-l2", 4, 100, 3, learning_rate=rate, steps=steps, weight_penalty=penalty)
    assert 0 < run.excess < within / 100
    assert run.optimal_weight_radius == pytest.approx(radius, abs=5e-5)
    assert run.weight_radius == pytest.approx(radius, abs=1e-4)
    assert run.deviation.largest < within
    assert run.weight_deviation is not None
    assert run.weight_deviation.largest < within


@pytest.mark.slow
def test_all_defaults_on_the_authors_points() -> None:
    for name in ("sc", "tcl", "ce-l2", "ce-fix"):
        assert free_points(name, 4, 100, 3).deviation.largest < 1e-9


def test_without_a_penalty_the_bound_falls_beside_the_loss() -> None:
    run = free_points("ce", 4, 5, 3, radius=2.0, steps=500, record_every=50)
    assert run.weight_path is not None
    norms = run.weight_path.flatten(1).norm(dim=1)
    assert (norms.diff()[1:] > 0).all()
    expected = [bounds.cross_entropy(4, 2.0, float(norm)) for norm in norms]
    assert run.bounds.tolist() == pytest.approx(expected, rel=1e-12)
    assert (run.values > run.bounds).all()
    assert run.excess < 0.01
    assert run.optimal_weight_radius is None
    assert run.weight_radius == pytest.approx(float(norms[-1]) / 2)


def test_without_room_for_a_simplex_the_bound_is_not_reached() -> None:
    """Four classes on the circle go to a square: cosines 0 and −1 instead of −1/3."""
    run = free_points("sc", 4, 5, 2)
    assert run.excess > 0.01
    assert run.deviation.collapse < 1e-6
    assert run.deviation.cosine == pytest.approx(2 / 3, abs=1e-6)


@pytest.mark.parametrize("name", ["sc", "tcl", "ce", "ce-l2", "ce-fix"])
def test_points_stay_where_they_live(name: str) -> None:
    run = free_points(name, 3, 4, 2, radius=1.5, steps=20, record_every=1)
    norms = run.path.norm(dim=-1)
    if name in ("sc", "tcl"):
        torch.testing.assert_close(norms, torch.full_like(norms, 1.5), **EXACT)
    else:
        assert norms.max() <= 1.5 + 1e-12
        assert norms[0].max() < 1.5


# -------------------------------------------------------------------------------------------------- the steps


def gradients(value: Tensor, *of: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad(value, of)


def test_a_step_of_supcon_is_eq_1_and_2() -> None:
    run = free_points("sc", 3, 2, 4, radius=1.5, temperature=0.7, learning_rate=0.9, steps=3, record_every=1)
    for before, after, value in zip(run.path[:-1], run.path[1:], run.values, strict=False):
        z = before.clone().requires_grad_()
        loss = supcon.reference(z, run.labels, temperature=0.7).mean()
        torch.testing.assert_close(value, loss.detach(), **EXACT)
        torch.testing.assert_close(after, 1.5 * unit(before - 0.9 * gradients(loss, z)[0]), **EXACT)


@pytest.mark.parametrize("rate", [0.1, 60.0])
def test_a_step_of_cross_entropy_is_eq_1_and_3(rate: float) -> None:
    """The higher rate takes points out of the ball, and all are shrunk; the lower one leaves them in it."""
    run = free_points("ce-l2", 3, 4, 2, weight_penalty=0.01, learning_rate=rate, steps=1, record_every=1)
    assert run.weight_path is not None
    z, w = run.path[0].clone().requires_grad_(), run.weight_path[0].clone().requires_grad_()
    assert w.detach().norm(dim=1).tolist() == pytest.approx([1.5] * 3)
    loss = cross_entropy.reference(z, run.labels, weight=w).mean() + 0.01 * w.square().sum()
    torch.testing.assert_close(run.values[0], loss.detach(), **EXACT)
    by_z, by_w = gradients(loss, z, w)
    moved = (z - rate * by_z).detach()
    largest = float(moved.norm(dim=1).max())
    assert (largest > 1) == (rate > 1)
    torch.testing.assert_close(run.path[1], moved / max(largest, 1.0), **EXACT)
    torch.testing.assert_close(run.weight_path[1], (w - rate * by_w).detach(), **EXACT)


def test_the_rates_left_out_are_eq_5_and_6() -> None:
    def both(name: str, rate: float, **options: Any) -> tuple[FreePoints, FreePoints]:
        return (
            free_points(name, 4, 5, 3, steps=3, **options),
            free_points(name, 4, 5, 3, steps=3, learning_rate=rate, **options),
        )

    for rate, options in (
        (0.075 * 20, {"temperature": 0.5}),
        (0.075 * 20 / 9, {"temperature": 0.1}),
        (0.075 * 20 * 4 / 9, {"temperature": 0.4, "radius": 2.0}),
    ):
        chosen, given = both("sc", rate, **options)
        torch.testing.assert_close(chosen.path, given.path, **EXACT)
    chosen = free_points("ce-l2", 4, 5, 3, steps=1, weight_penalty=0.05)
    by_points = free_points("ce-l2", 4, 5, 3, steps=1, weight_penalty=0.05, learning_rate=0.075 * 20)
    by_weights = free_points("ce-l2", 4, 5, 3, steps=1, weight_penalty=0.05, learning_rate=1 / (0.1 + 1 / 6))
    torch.testing.assert_close(chosen.points, by_points.points, **EXACT)
    assert chosen.weights is not None
    torch.testing.assert_close(chosen.weights, by_weights.weights, **EXACT)


def test_a_radius_is_a_temperature() -> None:
    """ρ² = 1/τ: points of radius 2 at τ = 1.2 go the way of unit ones at τ = 0.3."""
    large, small = (free_points("sc", 3, 4, 2, radius=r, temperature=0.3 * r * r, steps=60) for r in (2.0, 1.0))
    torch.testing.assert_close(large.path, 2 * small.path, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(large.values, small.values, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(large.bounds, small.bounds, **EXACT)


# -------------------------------------------------------------------------------------------------- the losses


@pytest.mark.parametrize(
    ("loss", "name", "options"),
    [
        (losses.SupConLoss(0.4, normalize=False), "sc", {"temperature": 0.4}),
        (losses.TCLLoss(0.4, 7.0, 1.5, normalize=False), "tcl", {"temperature": 0.4, "k1": 7.0, "k2": 1.5}),
        (losses.CrossEntropyLoss(3, 4), "ce", {}),
        (losses.CrossEntropyLoss(3, 4, weight_penalty=0.02), "ce-l2", {"weight_penalty": 0.02}),
        (losses.SimplexCrossEntropyLoss(3, 4), "ce-fix", {}),
    ],
)
def test_a_loss_is_its_name(loss: losses.Loss, name: str, options: dict[str, float]) -> None:
    before = {key: value.clone() for key, value in loss.state_dict().items()}
    made, named = free_points(loss, 3, 2, 4, steps=5), free_points(name, 3, 2, 4, steps=5, **options)
    assert torch.equal(made.path, named.path)
    assert torch.equal(made.values, named.values)
    assert torch.equal(made.bounds, named.bounds)
    for key, value in loss.state_dict().items():
        assert torch.equal(value, before[key]), "the loss given stays as it is"


@pytest.mark.parametrize(
    "loss",
    [
        losses.SupConLoss(0.3),
        losses.SupConLoss(nn.Parameter(torch.tensor(0.3))),
        losses.TCLLoss(0.3, 5.0, 1.5),
        losses.CrossEntropyLoss(4, 3, weight_penalty=0.005, normalize=True),
        losses.SimplexCrossEntropyLoss(4, 3, radius=3.0, seed=5),
        losses.SimplexCrossEntropyLoss(4, 3, radius=3.0, normalize=True),
    ],
    ids=repr,
)
def test_any_supervised_loss_finds_the_simplex(loss: losses.Loss) -> None:
    run = free_points(loss, 4, 5, 3, radius=1.3)
    assert abs(run.excess) < 1e-8
    assert run.deviation.largest < 1e-4
    if isinstance(loss, losses.SimplexCrossEntropyLoss):
        assert run.weights is not None
        torch.testing.assert_close(run.weights.float(), loss.weight)
        assert run.weight_radius == pytest.approx(3.0)


def test_the_inner_form_has_the_same_bound_and_minima_above_it() -> None:
    """With the mean over positives inside the logarithm a point is drawn by near positives only, and of five points of
    a class three can stay opposite the other two: their mean has length 1/5."""
    split, whole = (free_points(losses.SupConLoss(0.5, form="in"), 4, 5, 3, seed=seed) for seed in (0, 2))
    assert split.bound == whole.bound == pytest.approx(bounds.supcon_batch(4, 5, 0.5), rel=1e-12)
    assert abs(whole.excess) < 1e-9
    assert split.excess > 0.1
    assert split.deviation.norm == pytest.approx(0.8, abs=1e-6)


def test_the_bounds_are_those_of_geometry() -> None:
    assert free_points("sc", 4, 5, 3, steps=0).bound == pytest.approx(bounds.supcon_batch(4, 5, 0.3), rel=1e-12)
    assert free_points("tcl", 4, 5, 3, steps=0).bound == pytest.approx(bounds.tcl_batch(4, 5, 0.3, 5.0, 1.0), rel=1e-12)
    penalised = bounds.regularised_cross_entropy(4, 2.0, 0.005)
    assert free_points("ce-l2", 4, 5, 3, radius=2.0, steps=0).bound == pytest.approx(penalised, rel=1e-12)
    assert free_points("ce-fix", 4, 5, 3, steps=0).bound == pytest.approx(bounds.cross_entropy(4, 1.0, 2.0), rel=1e-12)


# ------------------------------------------------------------------------------------------------- the record


def test_what_is_recorded() -> None:
    run = free_points("ce", 3, 2, 4, steps=7, record_every=3)
    assert run.steps.tolist() == [0, 3, 6, 7]
    assert run.path.shape == (4, 6, 4)
    assert run.weight_path is not None
    assert run.weight_path.shape == (4, 3, 4)
    assert run.values.shape == run.bounds.shape == (4,)
    assert torch.equal(run.points, run.path[-1])
    assert run.weights is not None
    assert torch.equal(run.weights, run.weight_path[-1])
    assert run.labels.tolist() == [0, 0, 1, 1, 2, 2]
    assert run.points.dtype == torch.float64
    assert not run.points.requires_grad
    assert (run.loss, run.bound, run.radius) == (float(run.values[-1]), float(run.bounds[-1]), 1.0)
    assert run.excess == run.loss - run.bound
    assert len(free_points("sc", 3, 2, 4, steps=1000, record_every=None).steps) == 51
    bare = free_points("sc", 3, 2, 4, steps=0)
    assert bare.steps.tolist() == [0]
    assert (bare.weights, bare.weight_path, bare.weight_radius, bare.weight_deviation) == (None,) * 4


def test_a_seed_is_a_start_and_nothing_else_is_touched() -> None:
    before, threads = torch.random.get_rng_state(), torch.get_num_threads()
    one, again, other = (free_points("ce", 3, 2, 4, steps=2, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(one.path, again.path)
    assert not torch.allclose(one.path[0], other.path[0])
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.get_num_threads() == threads


# -------------------------------------------------------------------------------------------------- the errors


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"loss": "supcon"}, "loss='supcon': must be one of 'sc', 'tcl', 'ce', 'ce-l2', 'ce-fix'"),
        ({"loss": "sc", "k1": 1.0}, "k1=1.0: must be left out for loss='sc', which has temperature"),
        (
            {"loss": "ce", "temperature": 1.0, "weight_penalty": 0.1},
            "temperature=1.0: must be left out for loss='ce', which has no options",
        ),
        (
            {"loss": losses.SupConLoss(0.1), "temperature": 0.2},
            r"temperature=0.2: must be left out with loss=SupConLoss\(...\)",
        ),
        ({"loss": losses.NTXentLoss(0.1)}, "loss=NTXentLoss: must be a loss over labels"),
        ({"loss": None}, "loss=NoneType: must be a loss over labels"),
        ({"loss": losses.SupConLoss(0.1, reduction="sum")}, "reduction='sum'\\): must have reduction='mean'"),
        (
            {"loss": losses.CrossEntropyLoss(5, 3)},
            r"num_classes=5, dim=3\): must have the sizes of the points, num_classes=4 and dim=3",
        ),
        ({"loss": "ce-fix", "dim": 2}, "need dim ≥ 3"),
        (
            {"per_class": 1},
            "per_class=1: must be at least 2, because SupConLoss compares a point with others of its class",
        ),
        ({"num_classes": 1}, "num_classes=1: must be a whole number of at least 2"),
        ({"per_class": 0}, "per_class=.*: must be"),
        ({"dim": 0}, "dim=.*: must be"),
        ({"radius": 0.0}, "radius=.*: must be"),
        ({"steps": -1}, "steps=.*: must be"),
        ({"learning_rate": 0.0}, "learning_rate=.*: must be"),
        ({"record_every": 0}, "record_every=.*: must be"),
        ({"temperature": -1.0}, "temperature=.*: must be"),
    ],
)
def test_errors_speak(changes: dict[str, Any], message: str) -> None:
    arguments = {"loss": "sc", "num_classes": 4, "per_class": 2, "dim": 3} | changes
    with pytest.raises(ValueError, match=message):
        free_points(**arguments)


# ------------------------------------------------------------------------------------- distances from a simplex


def test_deviations_by_hand() -> None:
    points = torch.tensor([[2.0, 0.0], [2.0, 2.0], [0.0, -2.0]], dtype=torch.float64)
    labels = torch.tensor([0, 0, 1])
    assert class_means(points, labels).tolist() == [[2, 1], [0, -2]]
    found = deviation(points, labels, radius=2.0)
    cosine = 1 - 1 / math.sqrt(5)
    expected = Deviation(math.hypot(1, 0.5) / 2, (math.sqrt(5) - 2) / 2, cosine, 0.5)
    assert vars(found) == pytest.approx(vars(expected))
    assert found.largest == pytest.approx(expected.origin if expected.origin > cosine else cosine)
    weights = torch.tensor([[0.0, 3.0], [0.0, -1.0]], dtype=torch.float64)
    against = weight_deviation(weights, torch.tensor([[0.0, 1.0], [1.0, 0.0]]).double(), radius=2.0)
    assert vars(against) == pytest.approx(vars(WeightDeviation(0.5, 0.5, 0.0, math.sqrt(2))))
    own = weight_deviation(weights, weights)
    assert own.norm == pytest.approx((math.sqrt(5) - 1) / math.sqrt(5))
    zeta = simplex.vertices(5, 7, radius=3.0, seed=1, dtype=torch.float64)
    assert deviation(zeta.repeat(2, 1), torch.arange(5).repeat(2), radius=3.0).largest < 1e-14
