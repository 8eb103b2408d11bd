"""Values with errors: equation (1) of `kontrast.geometry.estimate`."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError, dataclass

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from kontrast import geometry
from kontrast.geometry import Estimate, Record, anchor_mean, jackknife, mean
from kontrast.geometry.estimate import jackknife_error
from tests.geometry.samples import clusters, leave_one_out, rows


@dataclass(frozen=True, kw_only=True)
class Moments(Record):
    average: float
    square: float
    count: int
    good: bool
    values: Tensor
    missing: float | None = None


def moments(x: Tensor) -> Moments:
    return Moments(average=float(x.mean()), square=float(x.mean()) ** 2, count=len(x), good=True, values=x)


def test_estimate_is_a_pair_that_prints_itself() -> None:
    value, error = Estimate(1.23456, 0.045678)
    assert (value, error) == (1.23456, 0.045678)
    assert str(Estimate(1.23456, 0.045678)) == "1.2346 ± 0.0457"


def test_mean_is_that_of_scipy() -> None:
    x = rows(50, 3)
    found = mean(x)
    assert found.value == pytest.approx(float(x.mean()), rel=1e-14)
    assert found.error == pytest.approx(stats.sem(x.flatten().numpy()), rel=1e-12)


def test_mean_of_one_value_has_no_error() -> None:
    assert mean(torch.tensor([2.0])).value == 2.0
    assert math.isnan(mean(torch.tensor([2.0])).error)


def test_mean_of_many_float32_values_is_taken_in_float64() -> None:
    """A million times 0.1 as float32 has it."""
    assert mean(torch.full((10**6,), 0.1)).value == pytest.approx(float(torch.tensor(0.1)), rel=1e-12)


def test_eq_1_one_column_at_a_time() -> None:
    left_out = rows(9, 4)
    expected = [leave_one_out(column) for column in left_out.T.tolist()]
    assert jackknife_error(left_out).tolist() == pytest.approx(expected, rel=1e-12)


def test_record_names_its_single_numbers() -> None:
    record = moments(torch.tensor([1.0, 3.0]))
    assert record.scalars() == {"average": 2.0, "square": 4.0, "count": 2.0}
    assert math.isnan(record.estimates()["average"].error)
    assert record.estimates()["average"].value == 2.0


def test_record_with_errors() -> None:
    record = Moments(average=2.0, square=4.0, count=2, good=False, values=torch.ones(2), errors={"average": 0.5})
    assert record.estimates()["average"] == Estimate(2.0, 0.5)
    assert math.isnan(record.estimates()["square"].error)
    with pytest.raises(FrozenInstanceError):
        record.average = 3.0  # type: ignore[misc]


@pytest.mark.parametrize("n", [20, 100])
def test_jackknife_of_a_mean_is_its_standard_error(n: int) -> None:
    """As many groups as samples: σ/√n exactly, and for its square the leave-one-out values squared."""
    x = rows(n, 1)
    found = jackknife(moments, x, groups=n)
    total = float(x.sum())
    left_out = [(total - v) / (n - 1) for v in x.flatten().tolist()]
    assert found["average"] == pytest.approx(stats.sem(x.flatten().numpy()), rel=1e-10)
    assert found["square"] == pytest.approx(leave_one_out([v * v for v in left_out]), rel=1e-10)
    assert found["count"] == 0.0
    assert found.keys() == {"average", "square", "count"}


def test_jackknife_with_fewer_samples_than_groups() -> None:
    x = rows(7, 1)
    assert jackknife(moments, x, groups=20)["average"] == pytest.approx(stats.sem(x.flatten().numpy()), rel=1e-10)


def test_jackknife_leaves_out_every_sample_once_and_each_class_alike() -> None:
    x, labels = torch.arange(213.0)[:, None], clusters(213, 2, 4)[1]
    kept: list[tuple[Tensor, Tensor]] = []

    def seen(part: Tensor, classes: Tensor) -> Moments:
        kept.append((part, classes))
        return moments(part)

    jackknife(seen, x, labels)
    assert len(kept) == 20
    left_out = [sorted(set(range(213)) - set(part.flatten().long().tolist())) for part, _ in kept]
    assert sorted(i for gone in left_out for i in gone) == list(range(213))
    share = labels.bincount().double() / 20
    for (part, classes), gone in zip(kept, left_out, strict=True):
        assert torch.equal(labels[part.flatten().long()], classes)
        assert bool(((labels[gone].bincount(minlength=4) - share).abs() < 1).all())


def test_jackknife_is_the_same_every_time_and_follows_its_seed() -> None:
    x = rows(105, 1)
    assert jackknife(moments, x) == jackknife(moments, x)
    assert jackknife(moments, x, seed=1) != jackknife(moments, x)


def test_anchor_mean_counts_what_anchors_share() -> None:
    """Against the spread over independent sets; the plain mean's error misses that anchors see the same negatives."""
    found, plain, values = [], [], []
    for seed in range(80):
        x = rows(150, 4, seed=seed) + 1
        entropy = geometry.penalty_entropy(x, x, temperature=0.3)
        (estimate,) = anchor_mean(entropy, lambda r, x=x: geometry.penalty_entropy(x[r], x[r], temperature=0.3), 150)
        found.append(estimate.error)
        plain.append(mean(entropy).error)
        values.append(estimate.value)
    spread = float(np.std(values))
    assert np.mean(found) / spread == pytest.approx(1.0, abs=0.25)  # the spread of 80 values is known to 8 %
    assert np.mean(plain) / spread < 0.7


def test_anchor_mean_of_some_rows_and_some_anchors() -> None:
    """Half of the rows for the jackknife, a fifth as anchors: still the spread over independent sets."""
    found, values = [], []
    for seed in range(80):
        x = rows(200, 4, seed=seed) + 1
        some = torch.arange(0, 200, 5)
        entropy = geometry.penalty_entropy(x[some], x[some], x, some, temperature=0.3)
        (estimate,) = anchor_mean(
            entropy, lambda r, x=x: geometry.penalty_entropy(x[r], x[r], temperature=0.3), 200, most=100
        )
        found.append(estimate.error)
        values.append(estimate.value)
    assert np.mean(found) / float(np.std(values)) == pytest.approx(1.0, abs=0.3)
