"""Distance from a regular simplex: equation numbers are those of `kontrast.geometry.simplex`."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from sklearn.metrics.pairwise import cosine_similarity
from torch import Tensor

from kontrast import geometry
from kontrast.geometry import angular, deviations, optimum, pairwise_cosines, simplex
from kontrast.simplex import vertices
from tests.geometry.samples import EXACT, average, clusters, deviation, distance, dot, rms, rows, sphere, unit


def loops(points: Tensor) -> tuple[float, float, float]:
    """S1, S2, S3 in plain floats."""
    z = points.tolist()
    k = len(z)
    norms = [math.hypot(*p) for p in z]
    total = [math.fsum(column) for column in zip(*z, strict=True)]
    distances = [distance(z[i], z[j]) for i in range(k) for j in range(i)]
    return (
        math.hypot(*total) / (k * average(norms)),
        deviation(norms) / average(norms),
        deviation(distances) / average(distances),
    )


def class_means(x: Tensor, labels: Tensor) -> Tensor:
    return torch.stack([x[labels == c].mean(0) for c in labels.unique().tolist()])


@pytest.mark.parametrize("k", [2, 3, 7])
@pytest.mark.parametrize("seed", [0, 1])
def test_s1_to_s3(k: int, seed: int) -> None:
    points = rows(k, 4, seed=seed)
    assert deviations(points) == pytest.approx(loops(points), rel=1e-10, abs=1e-14)


@pytest.mark.parametrize("k", [2, 3, 10, 100])
def test_a_regular_simplex_has_none_of_them(k: int) -> None:
    """Distances are roots of differences of products that are known to 1e-16, hence 1e-8 only where they vanish."""
    assert deviations(vertices(k, k + 3, seed=0, radius=2.5, dtype=torch.float64)) == pytest.approx(
        (0, 0, 0), abs=1e-13
    )


def test_each_deviation_alone() -> None:
    """Shifted; one vertex stretched, the origin kept by the opposite one; two pairs of points on the circle."""
    v = vertices(3, dtype=torch.float64)
    s1, s2, s3 = deviations(v + 10 * torch.tensor([1.0, 0.0]))
    assert s1 > 0.99
    assert s3 == pytest.approx(0.0, abs=1e-12)
    cross = torch.tensor([[2.0, 0], [-2, 0], [0, 1], [0, -1]], dtype=torch.float64)
    s1, s2, s3 = deviations(cross)
    assert s1 == 0.0
    assert s2 == pytest.approx(1 / 3, rel=1e-14)
    narrow = torch.tensor([[0.8, 0.6], [0.8, -0.6], [-0.8, 0.6], [-0.8, -0.6]], dtype=torch.float64)
    s1, s2, s3 = deviations(narrow)
    assert (s1, s2) == (0.0, 0.0)
    assert s3 == pytest.approx(deviation([1.2, 1.2, 1.6, 1.6, 2.0, 2.0]) / 1.6, rel=1e-12)


@pytest.mark.parametrize("dim", [3, 7, 50])
def test_equal_points_are_at_one_distance(dim: int) -> None:
    """All at distance 0: S3 is 0 and not what rounding leaves of it."""
    for seed in range(5):
        s1, s2, s3 = deviations(rows(1, dim, seed=seed).repeat(9, 1))
        assert (s1, s2, s3) == pytest.approx((1.0, 0.0, 0.0), abs=1e-12)


def test_points_at_the_origin_have_no_deviations() -> None:
    assert all(math.isnan(s) for s in deviations(torch.zeros(3, 2)))


def test_deviations_do_not_depend_on_scale_or_precision() -> None:
    points = rows(5, 4)
    assert deviations(1e-3 * points) == pytest.approx(deviations(points), rel=1e-10)
    assert deviations(points.float()) == pytest.approx(deviations(points.float().double()), rel=1e-12)


# ------------------------------------------------------------------------------------------------- the cosines


def test_eq_1_is_scikit_learns() -> None:
    points = rows(6, 4)
    expected = cosine_similarity(points.numpy())[np.triu_indices(6, 1)]
    torch.testing.assert_close(pairwise_cosines(points), torch.from_numpy(expected), **EXACT)


def test_eq_3() -> None:
    cosines = torch.linspace(-1, 1, 11, dtype=torch.float64)
    expected = [1 - math.acos(c) / math.pi for c in cosines.tolist()]
    assert angular(cosines).tolist() == pytest.approx(expected, rel=1e-12, abs=1e-15)
    assert angular(torch.tensor([1 + 1e-7, -1 - 1e-7], dtype=torch.float64)).tolist() == [1.0, 0.0]


@pytest.mark.parametrize("k", [2, 3, 4, 10, 100])
def test_optimum_is_what_the_vertices_have(k: int) -> None:
    cosines = pairwise_cosines(vertices(k, dtype=torch.float64))
    torch.testing.assert_close(cosines, torch.full_like(cosines, optimum(k)), **EXACT)
    # arccos near −1 knows half the digits (K = 2).
    assert optimum(k, angular=True) == pytest.approx(float(angular(cosines).mean()), abs=1e-7)


def test_known_angular_optima() -> None:
    assert [round(optimum(k, angular=True), 4) for k in (4, 10, 100)] == [0.3918, 0.4646, 0.4968]


@pytest.mark.parametrize("bad", [1, 0, -3, 2.5, "3"])
def test_wrong_number_of_classes(bad: object) -> None:
    with pytest.raises(ValueError, match=r"num_classes=.*: must be a whole number of at least 2"):
        optimum(bad)  # type: ignore[arg-type]


# -------------------------------------------------------------------------------------------------- the record


@pytest.mark.parametrize("normalize", [True, False])
def test_record_of_random_clusters(normalize: bool) -> None:
    x, labels = clusters(50, 5, 4)
    weights = rows(4, 5, seed=3)
    found = simplex(x, labels, weights, normalize=normalize)
    z = unit(x) if normalize else x
    means = class_means(z, labels)
    assert (found.origin, found.norm, found.distance) == pytest.approx(loops(means), rel=1e-10)
    assert (found.weight_origin, found.weight_norm, found.weight_distance) == pytest.approx(loops(weights), rel=1e-10)
    u, m, w = unit(x).tolist(), unit(means).tolist(), unit(weights).tolist()
    names = labels.tolist()
    across = [dot(m[i], m[j]) for i in range(4) for j in range(i + 1, 4)]
    within = [dot(u[i], m[names[i]]) for i in range(50)]
    to_weight = [dot(u[i], w[names[i]]) for i in range(50)]
    between = [dot(w[i], w[j]) for i in range(4) for j in range(i + 1, 4)]
    assert found.cosines_means.tolist() == pytest.approx(across, rel=1e-10)
    assert found.cosines_within.tolist() == pytest.approx(within, rel=1e-10)
    assert found.cosines_weights is not None
    assert found.cosines_weights.tolist() == pytest.approx(between, rel=1e-10)
    assert found.cosines_to_weight is not None
    assert found.cosines_to_weight.tolist() == pytest.approx(to_weight, rel=1e-10)
    assert found.across_means == pytest.approx(average(across), rel=1e-10)
    assert found.spread_across_means == pytest.approx(deviation(across), rel=1e-10)
    assert found.within == pytest.approx(average(within), rel=1e-10)
    assert found.across_weights == pytest.approx(average(between), rel=1e-10)
    assert found.to_weight == pytest.approx(average(to_weight), rel=1e-10)
    assert (found.num_classes, found.optimum, found.reachable) == (4, -1 / 3, True)
    assert found.errors == {}


def test_classes_collapsed_to_a_simplex() -> None:
    k = 6
    v = vertices(k, 8, seed=1, dtype=torch.float64)
    labels = torch.arange(60) % k
    found = simplex(3 * v[labels], labels, 0.2 * v)
    zero = (found.origin, found.norm, found.distance, found.weight_origin, found.weight_norm, found.weight_distance)
    assert zero == pytest.approx((0.0,) * 6, abs=1e-13)
    assert (found.across_means, found.across_weights) == pytest.approx((-1 / 5, -1 / 5), rel=1e-12)
    assert (found.within, found.to_weight, found.spread_across_means) == pytest.approx((1.0, 1.0, 0.0), abs=1e-12)
    assert found.optimum_angular == optimum(k, angular=True)


def test_two_classes_opposite_and_equal() -> None:
    x = torch.tensor([[1.0, 0.0], [-1.0, 0.0]], dtype=torch.float64).repeat(10, 1)
    found = simplex(x, torch.arange(20) % 2)
    assert (found.origin, found.norm, found.distance, found.across_means) == (0.0, 0.0, 0.0, -1.0)
    same = simplex(x[:1].repeat(20, 1), torch.arange(20) % 2)
    assert (same.origin, same.norm, same.across_means, same.within) == (1.0, 0.0, 1.0, 1.0)


def test_without_weights_there_is_nothing_about_them() -> None:
    found = simplex(*clusters(50, 5, 4))
    assert found.weight_origin is found.across_weights is found.to_weight is found.cosines_weights is None
    assert not any("weight" in name for name in found.scalars())


@pytest.mark.parametrize(("dim", "reachable"), [(1, False), (2, False), (3, True), (4, True)])
def test_room_for_the_simplex(dim: int, reachable: bool) -> None:
    assert simplex(*clusters(50, dim, 4)).reachable is reachable


@pytest.mark.parametrize("k", [2, 10])
def test_features_behind_a_relu_reach_no_simplex(k: int) -> None:
    """(5): a frame of orthogonal points has the least deviation of features >= 0; random ones have more."""
    labels = torch.arange(20 * k) % k
    frame = simplex(torch.eye(k, dtype=torch.float64)[labels], labels)
    assert (frame.nonnegative, frame.reachable) == (True, False)
    assert frame.least == pytest.approx(k**-0.5, rel=1e-12)
    assert frame.deviation == pytest.approx(k**-0.5, rel=1e-12)
    for seed in range(20):
        other = simplex(rows(20 * k, k + seed, seed=seed).relu(), labels)
        assert other.origin >= k**-0.5 - 1e-12
        assert other.least is not None
        assert other.deviation >= other.least - 1e-12
    assert simplex(rows(20 * k, k - 1).abs(), labels).least is None
    assert "features ≥ 0" in frame.obstacle


def test_eq_4_is_all_three() -> None:
    found = simplex(*clusters(50, 5, 4))
    assert found.deviation == pytest.approx(math.sqrt(found.origin**2 + found.norm**2 + found.distance**2), rel=1e-12)
    assert (found.least, found.obstacle) == (0.0, "")
    narrow = simplex(*clusters(50, 2, 4))
    assert (narrow.least, narrow.obstacle) == (None, "needs 3 dimensions")


def test_weights_follow_the_order_of_the_labels() -> None:
    """Row k of the weights is that of the k-th smallest label, whatever the labels are called."""
    v = vertices(3, dtype=torch.float64)
    order = torch.arange(30) % 3
    names = torch.tensor([50, -7, 8])  # −7 < 8 < 50: rows 2, 0, 1
    assert simplex(v[order], names[order], v[[1, 2, 0]]).to_weight == pytest.approx(1.0, abs=1e-12)
    assert simplex(v[order], names[order], v).to_weight == pytest.approx(-0.5, abs=1e-12)


# ---------------------------------------------------------------------------------------------------- the errors


def test_errors_are_those_of_every_number_that_varies() -> None:
    x, labels = clusters(50, 5, 4)
    found = simplex(x, labels, rows(4, 5), with_error=True)
    varies = {"origin", "norm", "distance", "across_means", "spread_across_means", "within", "to_weight"}
    fixed = {"weight_origin", "weight_norm", "weight_distance", "across_weights"}
    assert found.errors.keys() == varies | fixed
    assert all(found.errors[name] > 0 for name in varies)
    assert all(found.errors[name] == 0 for name in fixed)
    plain = simplex(x, labels, rows(4, 5))
    assert plain.scalars() == found.scalars()
    assert found.estimates()["within"] == geometry.Estimate(found.within, found.errors["within"])


def test_errors_are_the_spread_over_samples() -> None:
    """100 samples of 240: σ is known to 7 %, the rms of errors from 20 groups to 2 %; the bias of leaving out a
    twentieth is some 5 %. So 25 % would be a real difference. Classes are of different widths, so that no deviation is
    near its smallest possible value, 0, where it cannot vary freely."""
    centres, labels = sphere(4, 5) * 2, torch.arange(240) % 4
    width = torch.tensor([0.5, 1.0, 1.5, 2.0])[labels, None]
    found = [simplex(centres[labels] + width * rows(240, 5, seed=s), labels, with_error=True) for s in range(100)]
    for name in ("origin", "norm", "distance", "across_means", "spread_across_means", "within"):
        spread = float(np.std([getattr(f, name) for f in found]))
        assert rms([f.errors[name] for f in found]) / spread == pytest.approx(1.0, abs=0.25), name


@pytest.mark.parametrize("single", [0, 1, 2])
@pytest.mark.parametrize("classifier", [False, True])
def test_errors_with_a_class_of_one_sample(single: int, classifier: bool) -> None:
    """Left out, it takes its class with it, and the others must keep their weights: all samples stand at their class's
    weight, whichever are left out."""
    labels = torch.arange(41) % 2
    labels = torch.cat([labels + (labels >= single), torch.tensor([single])])
    v = vertices(3, dtype=torch.float64)
    with pytest.warns(geometry.TooFewSamples):
        found = simplex(v[labels], labels, v if classifier else None, with_error=True)
    assert found.errors["within"] == pytest.approx(0.0, abs=1e-12)
    if classifier:
        assert found.to_weight == pytest.approx(1.0, abs=1e-12)
        assert found.errors["to_weight"] == pytest.approx(0.0, abs=1e-12)


def test_errors_of_two_classes_one_of_which_has_one_sample() -> None:
    with pytest.warns(geometry.TooFewSamples):
        found = simplex(rows(31, 3), [0] * 30 + [1], with_error=True)
    assert found.errors["within"] > 0


def test_errors_are_not_known_where_every_class_has_one_sample() -> None:
    """Nothing can be left out, so nothing is known; 0 would say that all is."""
    with pytest.warns(geometry.TooFewSamples):
        found = simplex(rows(6, 3), range(6), with_error=True)
    assert all(math.isnan(error) for error in found.errors.values())
