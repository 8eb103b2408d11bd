"""Neural collapse: NC1–NC4 of `kontrast.geometry.neural_collapse` against their definitions in numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from sklearn.neighbors import NearestCentroid
from torch import Tensor

from kontrast import geometry
from kontrast.geometry import neural_collapse
from kontrast.simplex import vertices
from tests.geometry.samples import average, clusters, deviation, dot, rms, rows, sphere, unit


def definition(x: Tensor, labels: Tensor, w: Tensor) -> dict[str, float]:
    """Covariances as matrices and the pseudo-inverse as numpy has it; cosines in loops."""
    a, names = x.numpy(), labels.numpy()
    k = len(np.unique(names))
    means = np.stack([a[names == c].mean(0) for c in range(k)])
    centred = means - means.mean(0)
    within = np.cov((a - means[names]).T, bias=True)
    between = centred.T @ centred / k
    norms = [math.hypot(*row) for row in centred.tolist()]
    lengths = [math.hypot(*row) for row in w.tolist()]
    m, u = unit(torch.from_numpy(centred)).tolist(), unit(w).tolist()
    pairs = [(i, j) for i in range(k) for j in range(i)]
    distances = ((a[:, None] - means[None]) ** 2).sum(2)
    return {
        "nc1": float(np.trace(np.atleast_2d(within) @ np.linalg.pinv(between, rcond=1e-10, hermitian=True)) / k),
        "nc2_norm": deviation(norms) / average(norms),
        "nc2_angle": average([abs(dot(m[i], m[j]) + 1 / (k - 1)) for i, j in pairs]),
        "nc2_norm_weights": deviation(lengths) / average(lengths),
        "nc2_angle_weights": average([abs(dot(u[i], u[j]) + 1 / (k - 1)) for i, j in pairs]),
        "nc3": float(((w.numpy() / np.linalg.norm(w) - centred / np.linalg.norm(centred)) ** 2).sum()),
        "nc4": float((distances.argmin(1) != (a @ w.numpy().T).argmax(1)).mean()),
    }


@pytest.mark.parametrize(("dim", "k"), [(5, 4), (5, 2), (2, 4), (3, 9), (30, 3)])
@pytest.mark.parametrize("normalize", [True, False])
def test_definitions(dim: int, k: int, normalize: bool) -> None:
    """Also with more classes than dimensions and two classes alone. Classes are of unequal sizes: the mean of the class
    means is not that of the samples."""
    x, labels = clusters(150, dim, k)
    w = rows(k, dim, seed=4)
    found = neural_collapse(x, labels, w, normalize=normalize).scalars()
    assert found == pytest.approx(definition(unit(x) if normalize else x, labels, w), rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("k", [2, 3, 10])
def test_complete_collapse_has_zeros(k: int) -> None:
    v = vertices(k, 12, seed=0, dtype=torch.float64)
    labels = torch.arange(20 * k) % k
    found = neural_collapse(2 * v[labels], labels, 5 * v, normalize=False).scalars()
    assert found == pytest.approx(dict.fromkeys(found, 0.0), abs=1e-12)
    assert len(found) == 7


def test_nc1_is_the_ratio_of_variances() -> None:
    """Two classes at ±2 along an axis, each spread by ±0.5 along it: Σ_W = 0.25, Σ_B = 4, over K = 2."""
    x = torch.tensor([[2.5, 0], [1.5, 0], [-2.5, 0], [-1.5, 0]], dtype=torch.float64).repeat(10, 1)
    found = neural_collapse(x, torch.tensor([0, 0, 1, 1]).repeat(10), normalize=False)
    assert found.nc1 == pytest.approx(0.25 / 4 / 2, rel=1e-12)


def test_nc1_ignores_directions_in_which_the_means_agree() -> None:
    x = torch.tensor([[2.0, 9], [2.0, -9], [-2.0, 9], [-2.0, -9]], dtype=torch.float64).repeat(10, 1)
    assert neural_collapse(x, torch.tensor([0, 0, 1, 1]).repeat(10), normalize=False).nc1 == pytest.approx(0, abs=1e-14)


def test_nc1_of_classes_at_one_point_is_infinite() -> None:
    x = torch.tensor([[1.0, 0], [-1.0, 0]], dtype=torch.float64).repeat(20, 1)
    assert neural_collapse(x, torch.arange(40) // 20, normalize=False).nc1 == math.inf


def test_nc3_at_its_ends() -> None:
    """Opposite weights: ‖2M/‖M‖‖² = 4."""
    v = vertices(4, dtype=torch.float64)
    labels = torch.arange(40) % 4
    assert neural_collapse(v[labels], labels, -3 * v).nc3 == pytest.approx(4.0, rel=1e-12)
    assert neural_collapse(v[labels], labels, 3 * v).nc3 == pytest.approx(0.0, abs=1e-14)


def test_nc4_counts_disagreement_with_the_nearest_mean() -> None:
    """scikit-learn's nearest centroid against a random classifier."""
    x, labels = clusters(200, 4, 5, spread=1.5)
    w = rows(5, 4, seed=8)
    nearest = NearestCentroid().fit(x.numpy(), labels.numpy()).predict(x.numpy())
    expected = float((nearest != (x @ w.T).argmax(1).numpy()).mean())
    assert neural_collapse(x, labels, w, normalize=False).nc4 == pytest.approx(expected, abs=1e-12)
    assert 0 < expected < 1


def test_without_weights_there_is_nothing_about_them() -> None:
    x, labels = clusters(60, 5, 4)
    found = neural_collapse(x, labels)
    assert found.scalars().keys() == {"nc1", "nc2_norm", "nc2_angle"}
    assert found.nc3 is found.nc4 is None
    full = neural_collapse(x, labels, rows(4, 5))
    assert (full.nc1, full.nc2_norm, full.nc2_angle) == (found.nc1, found.nc2_norm, found.nc2_angle)


def test_more_rows_than_a_part() -> None:
    x, labels = clusters(20_000, 4, 3)
    w = rows(3, 4, seed=1)
    assert neural_collapse(x, labels, w, normalize=False).scalars() == pytest.approx(definition(x, labels, w), rel=1e-8)


def test_nc2_and_nc3_do_not_move_with_the_origin() -> None:
    """NC4 is left out: the classifier has no bias."""
    x, labels = clusters(60, 5, 4)
    w = rows(4, 5)
    here, there = (neural_collapse(x + shift, labels, w, normalize=False).scalars() for shift in (0.0, 7.0))
    assert {k: v for k, v in there.items() if k != "nc4"} == pytest.approx(
        {k: v for k, v in here.items() if k != "nc4"}, rel=1e-9
    )


def test_errors_are_those_of_every_number() -> None:
    x, labels = clusters(60, 5, 4)
    found = neural_collapse(x, labels, rows(4, 5), with_error=True)
    assert found.errors.keys() == found.scalars().keys()
    assert found.scalars() == neural_collapse(x, labels, rows(4, 5)).scalars()
    assert found.errors["nc1"] > 0
    assert found.errors["nc2_norm_weights"] == found.errors["nc2_angle_weights"] == 0


def test_errors_are_the_spread_over_samples() -> None:
    """60 samples of 160: σ is known to 9 %; NC1 is a ratio whose bias is of order 1/n. So 30 % would be real."""
    centres, labels, w = sphere(4, 5) * 3, torch.arange(160) % 4, rows(4, 5)
    found = [neural_collapse(centres[labels] + rows(160, 5, seed=s), labels, w, with_error=True) for s in range(60)]
    for name in ("nc1", "nc2_norm", "nc3"):
        spread = float(np.std([getattr(f, name) for f in found]))
        assert rms([f.errors[name] for f in found]) / spread == pytest.approx(1.0, abs=0.3), name


@pytest.mark.parametrize("classifier", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
def test_errors_with_a_class_of_one_sample(classifier: bool, classes: int) -> None:
    """Left out, it takes its class with it; the errors of the others are still there."""
    labels = torch.cat([torch.arange(40) % (classes - 1), torch.tensor([classes - 1])])
    w = rows(classes, 5, seed=1) if classifier else None
    with pytest.warns(geometry.TooFewSamples):
        found = neural_collapse(rows(41, 5), labels, w, with_error=True)
    assert found.errors.keys() == found.scalars().keys()
    assert found.errors["nc1"] > 0
