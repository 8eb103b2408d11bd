"""Tolerance: equation numbers are those of `kontrast.geometry.tolerance`."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from sklearn.metrics.pairwise import cosine_similarity
from torch import Tensor

from kontrast import geometry
from kontrast.geometry import tolerance, tolerance_per_class
from kontrast.simplex import vertices
from tests.geometry.samples import average, clusters, dot, leave_one_out, rms, rows, sphere, unit


def same_class(x: Tensor, labels: list[int], left_out: int = -1) -> list[float]:
    """⟨x_i, x_j⟩ over distinct pairs of one class."""
    points = x.tolist()
    kept = [i for i in range(len(points)) if i != left_out]
    return [dot(points[i], points[j]) for i in kept for j in kept if i != j and labels[i] == labels[j]]


@pytest.mark.parametrize("normalize", [True, False])
def test_eq_1_over_distinct_pairs_of_one_class(normalize: bool) -> None:
    x, labels = clusters(40, 4, 5)
    expected = average(same_class(unit(x) if normalize else x, labels.tolist()))
    assert tolerance(x, labels, normalize=normalize) == pytest.approx(expected, rel=1e-12)


def test_eq_1_from_scikit_learns_cosines() -> None:
    x, labels = clusters(200, 7, 4)
    same = (labels[:, None] == labels[None, :]).numpy() & ~np.eye(200, dtype=bool)
    assert tolerance(x, labels) == pytest.approx(cosine_similarity(x.numpy())[same].mean(), rel=1e-12)


def test_collapsed_classes_have_one() -> None:
    x = sphere(4, 6)[torch.arange(40) % 4]
    assert tolerance(x, torch.arange(40) % 4) == pytest.approx(1.0, abs=1e-14)


def test_orthogonal_rows_have_zero() -> None:
    assert tolerance(torch.eye(40), torch.arange(40) % 4) == 0.0


def test_lowest_value_is_that_of_a_class_that_sums_to_zero() -> None:
    """n_c rows whose sum is zero: −1/(n_c − 1), and no unit rows have less."""
    assert tolerance(vertices(40, dtype=torch.float64), [0] * 40) == pytest.approx(-1 / 39, rel=1e-12)
    assert tolerance(sphere(40, 39), [0] * 40) > -1 / 39


def test_classes_with_one_sample_are_left_out() -> None:
    x, labels = clusters(40, 4, 3)
    more, single = torch.cat([x, rows(2, 4, seed=9)]), torch.cat([labels, torch.tensor([77, 78])])
    assert tolerance(more, single) == pytest.approx(tolerance(x, labels), rel=1e-14)


def test_one_class_alone_is_enough() -> None:
    x = rows(40, 4)
    assert tolerance(x, [3] * 40) == pytest.approx(average(same_class(unit(x), [3] * 40)), rel=1e-12)


def test_large_numbers_of_rows_in_float32() -> None:
    """30,000 rows, more than a part of 8,192: sums in float64, so the only error is the rows' own, 6e-8."""
    x, labels = clusters(30_000, 5, 3)
    sums = torch.zeros(3, 5, dtype=torch.float64).index_add(0, labels, x / x.norm(dim=1, keepdim=True))
    counts = labels.bincount().double()
    expected = float((sums.square().sum() - 30_000) / (counts * (counts - 1)).sum())
    assert tolerance(x.float(), labels) == pytest.approx(expected, rel=1e-7)


# --------------------------------------------------------------------------------------------------- the error


def test_eq_2_is_the_jackknife() -> None:
    x, labels = clusters(35, 3, 4)
    names = labels.tolist()
    left_out = [average(same_class(unit(x), names, i)) for i in range(len(names))]
    assert tolerance(x, labels, with_error=True).error == pytest.approx(leave_one_out(left_out), rel=1e-10)


def test_eq_2_with_samples_that_have_no_partner() -> None:
    """Without such a sample the value stays, and it is one of the n."""
    x, labels = clusters(35, 3, 4)
    x, labels = torch.cat([x, rows(2, 3, seed=9)]), torch.cat([labels, torch.tensor([8, 9])])
    left_out = [average(same_class(unit(x), labels.tolist(), i)) for i in range(37)]
    assert tolerance(x, labels, with_error=True).error == pytest.approx(leave_one_out(left_out), rel=1e-10)


def test_value_is_the_same_with_and_without_its_error() -> None:
    x, labels = clusters(50, 3, 4)
    assert tolerance(x, labels, with_error=True).value == tolerance(x, labels)


@pytest.mark.parametrize("labels", [[0, 0], [0, 0, 1]])
def test_error_of_a_single_pair_is_not_known(labels: list[int]) -> None:
    """Without either of the two there is no value left to compare."""
    with pytest.warns(geometry.TooFewSamples):
        found = tolerance(rows(len(labels), 3), labels, with_error=True)
    assert found.value == pytest.approx(average(same_class(unit(rows(len(labels), 3)), labels)), rel=1e-12)
    assert math.isnan(found.error)


def test_error_is_the_spread_over_samples() -> None:
    """500 samples of 60 from three clusters: σ is known to 3 %, the jackknife's bias is of order 1/n."""
    centres, labels = 1.5 * sphere(3, 3), torch.arange(60) % 3
    found = [tolerance(centres[labels] + rows(60, 3, seed=s), labels, with_error=True) for s in range(500)]
    assert rms([f.error for f in found]) / float(np.std([f.value for f in found])) == pytest.approx(1.0, abs=0.15)


# --------------------------------------------------------------------------------------------------- per class


def test_per_class_is_eq_1_within_each() -> None:
    x, labels = clusters(40, 4, 3)
    labels = torch.tensor([-2, 9, 40])[labels]
    found = tolerance_per_class(x, labels)
    assert list(found) == [-2, 9, 40]
    for name, estimate in found.items():
        mine = unit(x[labels == name])
        pairs = same_class(mine, [0] * len(mine))
        left_out = [average(same_class(mine, [0] * len(mine), i)) for i in range(len(mine))]
        assert estimate.value == pytest.approx(average(pairs), rel=1e-12)
        assert estimate.error == pytest.approx(leave_one_out(left_out), rel=1e-10)


def test_per_class_weighted_by_pairs_is_the_whole() -> None:
    x, labels = clusters(40, 4, 3)
    pairs = {c: n * (n - 1) for c, n in enumerate(labels.bincount().tolist())}
    total = sum(estimate.value * pairs[c] for c, estimate in tolerance_per_class(x, labels).items())
    assert total / sum(pairs.values()) == pytest.approx(tolerance(x, labels), rel=1e-12)


def test_per_class_of_small_classes() -> None:
    """One sample: nothing; two: a value without an error."""
    with pytest.warns(geometry.TooFewSamples, match="smallest class"):
        found = tolerance_per_class(torch.eye(3, dtype=torch.float64), [0, 1, 1])
    assert math.isnan(found[0].value)
    assert math.isnan(found[0].error)
    assert found[1].value == 0.0
    assert math.isnan(found[1].error)
