"""Tests of kontrast.augment.corruption."""

from __future__ import annotations

import pytest
import torch

from kontrast.augment import MarginalCorruption
from tests.augment.samples import seeded


@pytest.mark.parametrize(("rate", "count"), [(0.0, 0), (0.6, 6), (0.7, 7), (0.75, 7), (1.0, 10)])
def test_corruption_takes_that_many_entries_from_their_own_column(rate: float, count: int) -> None:
    """Column j of the reference holds numbers between j + 1 and j + 2; the vectors hold zeros."""
    reference = torch.rand(100, 10, generator=seeded(1)) + torch.arange(1, 11)
    out = MarginalCorruption(reference, rate=rate)(torch.zeros(500, 10), seeded())
    assert (out != 0).sum(1).tolist() == [count] * 500
    for j in range(10):
        values = out[:, j][out[:, j] != 0]
        assert torch.isin(values, reference[:, j]).all()


def test_corruption_draws_rows_evenly_and_each_entry_apart() -> None:
    """50 rows, 20,000 entries: chi-square with 49 degrees of freedom is below 85.4 with probability 0.999."""
    corrupt = MarginalCorruption(torch.arange(50.0)[:, None].expand(50, 10), rate=1.0)
    out = corrupt(torch.zeros(2_000, 10), seeded())
    count = torch.bincount(out.long().flatten(), minlength=50).double()
    assert float((count - 400).square().sum() / 400) < 85.4
    assert float((out[:, 0] == out[:, 1]).float().mean()) < 0.05, "entries come from different rows"


def test_corruption_chooses_every_feature_as_often() -> None:
    params = MarginalCorruption(torch.randn(5, 10), rate=0.6).draw(5_000, 10, seeded())
    often = params["corrupted"].float().mean(0)
    assert (often - 0.6).abs().max() < 4.5 * (0.24 / 5_000) ** 0.5, "4.5 standard errors"


def test_errors() -> None:
    with pytest.raises(ValueError, match=r"vectors of length 4, but the reference has shape \[5, 3\]"):
        MarginalCorruption(torch.randn(5, 3))(torch.randn(2, 4))
