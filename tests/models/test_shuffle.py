"""In one process; test_across_ranks.py has several."""

from __future__ import annotations

import pytest
import torch

from kontrast import models


def test_unshuffle_undoes_and_the_seed_decides() -> None:
    rows = torch.randn(9, 2, 3)
    shuffled, order = models.shuffle_keys(rows, seed=1)
    assert not torch.equal(shuffled, rows)
    assert torch.equal(models.unshuffle(shuffled, order), rows)
    again, _ = models.shuffle_keys(rows, seed=1)
    other, _ = models.shuffle_keys(rows, seed=2)
    assert torch.equal(again, shuffled)
    assert not torch.equal(other, shuffled)


def test_keys_may_have_another_shape() -> None:
    rows = torch.randn(6, 3, 4, 4)
    shuffled, order = models.shuffle_keys(rows, seed=0)
    assert torch.equal(models.unshuffle(shuffled.mean((2, 3)), order), rows.mean((2, 3)))


def test_it_changes_who_shares_a_part_of_split_batch_norm() -> None:
    norm = models.split_batch_norm(torch.nn.BatchNorm1d(2), parts=2)
    x = torch.randn(8, 2, generator=torch.Generator().manual_seed(0))
    shuffled, order = models.shuffle_keys(x, seed=3)
    assert not torch.allclose(models.unshuffle(norm(shuffled), order), norm(x))


def test_keys_of_another_number_are_refused() -> None:
    shuffled, order = models.shuffle_keys(torch.randn(6, 3), seed=0)
    with pytest.raises(ValueError, match=r"keys of shape \[4, 3\]: the shuffled rows of this rank were 6"):
        models.unshuffle(shuffled[:4], order)
