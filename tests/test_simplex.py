from __future__ import annotations

import pytest
import torch

from kontrast.simplex import vertices


@pytest.mark.parametrize(("k", "dim"), [(2, 1), (2, 5), (3, 2), (4, 3), (10, 9), (10, 512), (100, 99), (100, 128)])
@pytest.mark.parametrize("radius", [1.0, 2.5])
@pytest.mark.parametrize("seed", [None, 3])
def test_conditions_s1_to_s3(k: int, dim: int, radius: float, seed: int | None) -> None:
    z = vertices(k, dim, radius=radius, seed=seed, dtype=torch.float64)
    assert z.shape == (k, dim)
    exact = {"rtol": 1e-12, "atol": 1e-12}
    torch.testing.assert_close(z.sum(0), torch.zeros(dim, dtype=torch.float64), **exact)  # S1
    torch.testing.assert_close(z.norm(dim=1), torch.full((k,), radius, dtype=torch.float64), **exact)  # S2
    gram = z @ z.T
    off = gram[~torch.eye(k, dtype=torch.bool)]
    torch.testing.assert_close(off, torch.full_like(off, -(radius**2) / (k - 1)), **exact)  # S3


def test_smallest_dimension_is_the_default() -> None:
    assert vertices(7).shape == (7, 6)
    assert vertices(7).dtype == torch.float32


def test_seed_turns_it_and_is_reproducible() -> None:
    assert torch.equal(vertices(4, 8, seed=1), vertices(4, 8, seed=1))
    assert not torch.allclose(vertices(4, 8, seed=1), vertices(4, 8, seed=2))
    assert (vertices(4, 8)[:, 3:] == 0).all()
    assert (vertices(4, 8, seed=1)[:, 3:] != 0).any()


def test_no_room_and_too_few_points_are_errors() -> None:
    with pytest.raises(ValueError, match="10 vertices of a regular simplex need dim ≥ 9"):
        vertices(10, 8)
    with pytest.raises(ValueError, match="at least 2 vertices"):
        vertices(1)
