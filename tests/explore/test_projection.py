"""The map: its forces are those of t-SNE, and neighbours stay neighbours."""

from __future__ import annotations

import pytest
import torch
from sklearn.manifold import trustworthiness as reference

from kontrast.evaluate import nearest_others
from kontrast.explore import project, projection, trustworthiness
from tests.explore.made import blobs


def dense(y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Σ_j w_ij² (y_i − y_j) and Z, term by term."""
    y = y.double()
    difference = y[:, None] - y
    w = 1 / (1 + difference.square().sum(2))
    return (w.square()[:, :, None] * difference).sum(1), w.sum() - len(y)


@pytest.mark.parametrize("span", [1e-3, 3.0, 60.0])
def test_the_repulsion_is_that_of_all_pairs(span: float) -> None:
    y = span * (torch.rand(700, 2, generator=torch.Generator().manual_seed(0)) - 0.5)
    exact, whole = dense(y)
    force, z = projection._by_pairs(y)
    # Single precision, and the difference of two sums of coordinates up to 30.
    assert torch.allclose(force.double(), exact, rtol=1e-3, atol=3e-4 * float(exact.abs().max()))
    assert float(z / whole) == pytest.approx(1, abs=1e-5)
    force, z = projection._by_grid(y)
    # What cubic interpolation leaves of the kernel at this spacing; most where points are few and far between.
    assert float((force - exact).norm() / exact.norm()) < 0.02
    assert float(z / whole) == pytest.approx(1, abs=0.02)


def test_the_attraction_is_equation_3() -> None:
    draw = torch.Generator().manual_seed(0)
    x, y = torch.randn(60, 5, generator=draw), torch.randn(60, 2, generator=draw)
    near = nearest_others(x, 4)[1]
    p = torch.zeros(60, 60).scatter_(1, near, 1 / 4)
    p = (p + p.T) / (2 * 60)
    difference = y[:, None] - y
    exact = (p / (1 + difference.square().sum(2)))[:, :, None].mul(difference).sum(1)
    rows, columns, values = projection.affinities(near)
    assert float(values.sum()) == pytest.approx(1)
    assert torch.allclose(projection._attraction(y, rows, columns, values), exact, atol=1e-7)


def test_neighbours_stay_together_and_the_map_is_the_same_again() -> None:
    x, labels = blobs(400, 5)
    near = nearest_others(x, 15)[1]
    y = project(x, near, steps=160)
    assert torch.equal(y, project(x, near, steps=160))
    assert float((labels[nearest_others(y - y.mean(0), 5)[1]] == labels[:, None]).float().mean()) > 0.8
    assert trustworthiness(x, y) > trustworthiness(x, projection.pca(x)) + 0.05


def test_trustworthiness_is_scikit_learns() -> None:
    x, _ = blobs(150, 3)
    unit = torch.nn.functional.normalize(x)
    for y in (projection.pca(x), x[:, :2]):
        assert trustworthiness(x, y, k=10) == pytest.approx(
            reference(unit.numpy(), y.numpy(), n_neighbors=10), abs=1e-6
        )


@pytest.mark.parametrize("rows", [3, 4, 20])
def test_rows_that_are_all_the_same(rows: int) -> None:
    x = torch.ones(rows, 4)
    y = project(x, nearest_others(x, min(15, rows - 1))[1], steps=50)
    assert y.shape == (rows, 2)
    assert bool(y.isfinite().all())
