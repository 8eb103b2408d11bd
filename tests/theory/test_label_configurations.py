"""Batches by their labels: the sums against literal loops, the minima against what is known of them."""

from __future__ import annotations

import importlib
import itertools
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from kontrast import simplex
from kontrast.losses import SupConLoss
from kontrast.theory.free_points import minimise_on_sphere, slope
from kontrast.theory.label_configurations import (
    LabelConfigurations,
    all_batches_loss,
    batch_loss,
    configuration_value,
    configurations,
    label_configurations,
    minimise_all_batches,
    minimise_configuration,
)

EXACT = {"rtol": 1e-12, "atol": 1e-12}


def rows(n: int, d: int, seed: int = 0) -> Tensor:
    return torch.randn(n, d, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def eq_1(z: list[list[float]], labels: list[int], batch: Sequence[int]) -> float:
    """Graf et al.'s term of a batch, as printed; ``batch`` may name a point twice."""
    total = 0.0
    for i in range(len(batch)):
        same = [j for j in range(len(batch)) if j != i and labels[batch[j]] == labels[batch[i]]]
        s = [math.fsum(x * y for x, y in zip(z[batch[i]], z[batch[j]], strict=True)) for j in range(len(batch))]
        below = math.fsum(math.exp(s[k]) for k in range(len(batch)) if k != i)
        for j in same:
            total -= math.log(math.exp(s[j]) / below) / len(same)
    return total


def eq_2(z: Tensor, labels: list[int], batch_size: int) -> float:
    each = itertools.combinations_with_replacement(range(len(z)), batch_size)
    return math.fsum(eq_1(z.tolist(), labels, batch) for batch in each)


# --------------------------------------------------------------------------------------------------- the sums


@pytest.mark.parametrize(
    "labels", [[0, 0, 1, 1, 2, 2, 2], [3, 1, 3, 3, 0, 2, 3], [5, 5, 5, 5, 5, 5, 5], [0, 1, 2, 3, 4, 5, 6]]
)
def test_batch_loss_is_eq_1(labels: list[int]) -> None:
    z = rows(7, 3)
    expected = eq_1(z.tolist(), labels, range(7))
    assert float(batch_loss(z, torch.tensor(labels))) == pytest.approx(expected, rel=1e-12, abs=1e-12)
    ours = SupConLoss(1.0, normalize=False, reduction="sum")(z, labels)
    assert float(ours) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("labels", [[0, 1, 0, 1], [0, 0, 0, 1], [2, 2, 2, 2], [0, 1, 2, 3]])
@pytest.mark.parametrize("batch_size", [2, 3, 5])
def test_all_batches_loss_is_eq_2(labels: list[int], batch_size: int) -> None:
    z = rows(4, 2, seed=1)
    found = all_batches_loss(z, torch.tensor(labels), batch_size)
    assert float(found) == pytest.approx(eq_2(z, labels, batch_size), rel=1e-12)


@pytest.mark.parametrize(
    ("num_classes", "per_class", "batch_size", "radius", "expected"),
    [
        (3, 3, 4, 1.0, 908.1147),
        (3, 2, 5, 1.0, 912.1781),
        (4, 2, 4, 1.3, 398.3715),
        (3, 3, 9, 1.0, 298599.830),
        (3, 2, 9, 1.0, 25205.689),
    ],
)
def test_all_batches_at_the_simplex(
    num_classes: int, per_class: int, batch_size: int, radius: float, expected: float
) -> None:
    zeta = simplex.vertices(num_classes, radius=radius, dtype=torch.float64)
    found = all_batches_loss(zeta.repeat(per_class, 1), torch.arange(num_classes).repeat(per_class), batch_size)
    assert float(found) == pytest.approx(expected, abs=6e-4 if expected > 1e4 else 6e-5)


def test_random_points_are_above_the_simplex() -> None:
    """K = 3, n = 2, b = 4: the simplex has 247.4."""
    labels = torch.arange(3).repeat(2)
    zeta = simplex.vertices(3, dtype=torch.float64)
    assert float(all_batches_loss(zeta[labels], labels, 4)) == pytest.approx(247.4, abs=0.05)
    z = rows(6, 2)
    assert float(all_batches_loss(z / z.norm(dim=1, keepdim=True), labels, 4)) > 247.5


def test_all_batches_has_the_gradient_of_its_value() -> None:
    z = rows(5, 3).requires_grad_()
    labels = torch.tensor([0, 1, 0, 1, 0])
    assert torch.autograd.gradcheck(lambda x: all_batches_loss(x, labels, 3), (z,))


def test_long_vectors_do_not_overflow() -> None:
    z = 40 * simplex.vertices(3, dtype=torch.float64).repeat(2, 1)
    assert math.isfinite(float(all_batches_loss(z, torch.arange(3).repeat(2), 3)))


# ----------------------------------------------------------------------------------------- the configurations


def test_the_twelve_of_the_authors() -> None:
    """The list in their notebook, in another order."""
    expected = "900 810 720 630 540 711 621 522 531 441 432 333"
    assert sorted(configurations(3, 9)) == sorted(tuple(map(int, each)) for each in expected.split())


@pytest.mark.parametrize(("k", "b"), [(1, 4), (2, 5), (4, 6), (5, 3)])
def test_configurations_are_all_label_counts(k: int, b: int) -> None:
    drawn = itertools.combinations_with_replacement(range(k), b)
    found = {tuple(sorted((batch.count(c) for c in range(k)), reverse=True)) for batch in drawn}
    assert len(configurations(k, b)) == len(found)
    assert set(configurations(k, b)) == found


def at_angles(counts: Sequence[int], angles: Sequence[float]) -> float:
    """A batch on the unit circle with each class at one angle."""
    z = torch.tensor([[math.cos(a), math.sin(a)] for a, m in zip(angles, counts, strict=True) for _ in range(m)])
    labels = torch.tensor([c for c, m in enumerate(counts) for _ in range(m)])
    return float(batch_loss(z.double(), labels))


@pytest.mark.parametrize(
    "counts", [(8, 1, 0), (7, 1, 1), (6, 2, 1), (5, 3, 1), (5, 2, 2), (4, 4, 1), (4, 3, 2), (3, 3, 3)]
)
def test_minima_against_a_grid_of_angles(counts: tuple[int, ...]) -> None:
    """The classes collapse, so two angles say it all: the grid comes close to the minimum and not below."""
    found = minimise_configuration(counts)
    assert found.collapse < 1e-6
    assert found.slope < 1e-9
    grid = [2 * math.pi * i / 60 for i in range(60)]
    values = {(a, b): at_angles(counts, (0.0, a, b)) for a in grid[:31] for b in (grid if counts[2] else [0.0])}
    assert found.value <= min(values.values()) + 1e-12
    assert found.value > min(values.values()) - 0.02


@pytest.mark.parametrize("counts", [(9, 0, 0), (8, 1, 0), (7, 1, 1), (5, 4, 0), (4, 4), (2, 2, 2), (3, 3, 3, 3)])
@pytest.mark.parametrize("radius", [1.0, 0.8])
def test_minima_that_are_known(counts: tuple[int, ...], radius: float) -> None:
    balanced = len(set(counts)) == 1
    k = len(counts)
    gap = (k / (k - 1) if balanced else 2.0) * radius**2
    found = minimise_configuration(counts, 3, radius=radius)
    assert found.value == pytest.approx(configuration_value(counts, gap), rel=1e-12)
    assert found.is_simplex == (balanced or counts == (9, 0, 0))
    assert found.points.norm(dim=1).tolist() == pytest.approx([radius] * sum(counts))


def test_other_starts_find_the_same() -> None:
    values = [minimise_configuration((4, 3, 2), starts=1, seed=seed).value for seed in range(6)]
    assert max(values) - min(values) < 1e-11


def test_configuration_value_by_hand() -> None:
    assert configuration_value((2, 1), math.log(4)) == pytest.approx(2 * math.log(1 + 1 / 4))
    assert configuration_value((1, 1), 1.0) == 0.0


def test_the_minimiser_of_all_batches_is_the_simplex() -> None:
    found = minimise_all_batches(4, 2, 4, 3, radius=1.3)
    assert found.is_simplex
    assert found.value == pytest.approx(398.3715, abs=6e-5)
    torch.testing.assert_close(found.cosines, torch.eye(4).double() * 4 / 3 - 1 / 3, **EXACT)
    assert found.collapse < 1e-12
    assert found.counts == (2, 2, 2, 2)


# -------------------------------------------------------------------------------------------------- the study


@pytest.fixture(scope="module")
def study() -> LabelConfigurations:
    return label_configurations()


def test_only_the_balanced_batch_has_the_simplex_and_so_has_the_sum(study: LabelConfigurations) -> None:
    assert [at.counts for at in study.configurations] == configurations(3, 9)
    assert [at.counts for at in study.configurations if at.is_simplex] == [(9, 0, 0), (3, 3, 3)]
    assert all(at.simplex_gap > 0.03 for at in study.configurations if not at.is_simplex)
    assert study.all_batches.is_simplex
    assert study.all_batches.value == pytest.approx(298599.830, abs=6e-4)


def test_the_more_of_a_class_the_further_it_is(study: LabelConfigurations) -> None:
    """(4, 3, 2): the pair of large classes is the furthest apart, the pair of small ones the nearest."""
    at = next(at for at in study.configurations if at.counts == (4, 3, 2))
    cosines = at.cosines
    assert cosines[0, 1] < cosines[0, 2] < cosines[1, 2]


def test_absent_classes_have_no_cosines(study: LabelConfigurations) -> None:
    first, second = study.configurations[:2]
    assert first.cosines.isnan().sum() == 8
    assert second.cosines[0, 1] == pytest.approx(-1)
    assert second.cosines[2].isnan().all()
    assert second.cosines[:, 2].isnan().all()


def test_batches_are_counted(study: LabelConfigurations) -> None:
    assert sum(study.batches) == math.comb(9 + 9 - 1, 9)
    small = label_configurations(3, batch_size=4, per_class=2)
    drawn = itertools.combinations_with_replacement([0, 0, 1, 1, 2, 2], 4)
    found = Counter(tuple(sorted((batch.count(c) for c in range(3)), reverse=True)) for batch in drawn)
    assert small.batches == tuple(found[at.counts] for at in small.configurations)


# -------------------------------------------------------------------------------------------------- the rest


def test_a_minimum_on_the_sphere_is_one() -> None:
    """‖z_1 − a‖² + ‖z_2 + a‖² over the sphere of radius 2."""
    a = torch.tensor([3.0, 4.0], dtype=torch.float64)

    def loss(z: Tensor) -> Tensor:
        return (z[0] - a).square().sum() + (z[1] + a).square().sum()

    points, steepness = minimise_on_sphere(loss, 2, 2, radius=2.0, starts=2, seed=0)
    torch.testing.assert_close(points, torch.stack([2 * a / 5, -2 * a / 5]), **EXACT)
    assert steepness < 1e-12
    assert slope(loss, torch.tensor([[0.0, 2.0], [-1.2, -1.6]]).double()) == pytest.approx(6.0)


def test_without_room_there_is_no_simplex_to_compare_with() -> None:
    found = minimise_configuration((2, 2, 2, 2), dim=2, starts=1)
    assert found.simplex_value is None
    assert math.isnan(found.simplex_gap)
    assert not found.is_simplex


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: configurations(0, 3), "num_classes=.*: must be"),
        (lambda: configurations(3, 0), "batch_size=.*: must be"),
        (lambda: minimise_configuration((3, -1)), "counts=-1: must be"),
        (lambda: minimise_configuration((1, 0)), r"sum\(counts\)=1: must be a whole number of at least 2"),
        (lambda: minimise_configuration((2, 2), dim=1), "dim=.*: must be"),
        (lambda: minimise_configuration((2, 2), radius=0.0), "radius=.*: must be"),
        (lambda: minimise_configuration((2, 2), starts=0), "starts=.*: must be"),
        (lambda: minimise_all_batches(1, 2, 2, 2), "num_classes=.*: must be"),
        (lambda: minimise_all_batches(2, 0, 2, 2), "per_class=.*: must be"),
        (lambda: all_batches_loss(rows(4, 2), torch.tensor([0, 1, 0]), 2), r"labels has shape \[3\]; expected \[4\]"),
        (lambda: all_batches_loss(rows(4, 2), torch.tensor([0, 1, 0, 1]), 1), "batch_size=.*: must be"),
        (
            lambda: all_batches_loss(rows(40, 2), torch.zeros(40).long(), 9),
            "batch_size=9: must be smaller, because there are .* from 40 points",
        ),
    ],
)
def test_errors_speak(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_too_many_is_a_matter_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("kontrast.theory.label_configurations")
    monkeypatch.setattr(module, "MOST_ENTRIES", 10 * 4)  # 10 batches of 2 from 4 points
    all_batches_loss(rows(4, 2), torch.zeros(4).long(), 2)
    monkeypatch.setattr(module, "MOST_ENTRIES", 10 * 4 - 1)
    with pytest.raises(ValueError, match="there are 10 batches of 2 from 4 points"):
        all_batches_loss(rows(4, 2), torch.zeros(4).long(), 2)
