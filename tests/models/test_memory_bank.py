from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from kontrast import models
from kontrast.losses import InfoNCELoss


def features(n: int, seed: int = 0, dim: int = 4) -> torch.Tensor:
    return torch.randn(n, dim, generator=torch.Generator().manual_seed(seed))


def test_update_is_eq_1() -> None:
    bank = models.MemoryBank(9, dim=4, momentum=0.3)
    before, f = bank.rows.clone(), features(3)
    bank.update(torch.tensor([4, 0, 7]), f)
    for row, i in enumerate((4, 0, 7)):
        unit = f[row] / f[row].norm()
        moved = 0.3 * before[i] + 0.7 * unit
        torch.testing.assert_close(bank.rows[i], moved / moved.norm())  # (1)
    untouched = [1, 2, 3, 5, 6, 8]
    assert torch.equal(bank.rows[untouched], before[untouched])


def test_starts_as_eq_2() -> None:
    """Bounds are exact; the mean square of n = 1.28e6 uniform draws is a²/3 within 0.9/√n of itself: 5 times, 0.4 %."""
    bank = models.MemoryBank(10_000)
    a = 1 / math.sqrt(128 / 3)
    assert bank.rows.shape == (10_000, 128)
    assert float(bank.rows.abs().max()) <= a
    assert float(bank.rows.square().sum(1).mean()) == pytest.approx(1, rel=0.004)
    assert float(bank.rows.mean()) == pytest.approx(0, abs=5 * a / math.sqrt(3 * 1.28e6))
    assert torch.equal(bank.rows, models.MemoryBank(10_000).rows)


def test_an_index_that_comes_twice_takes_the_mean_whatever_the_order() -> None:
    f, indices = features(4), torch.tensor([2, 5, 2, 2])
    bank, turned = models.MemoryBank(6, dim=4), models.MemoryBank(6, dim=4)
    before = bank.rows.clone()
    bank.update(indices, f)
    turned.update(indices.flip(0), f.flip(0))
    torch.testing.assert_close(bank.rows, turned.rows)  # sums in another order: float32's rounding
    mean = F.normalize(f, dim=1)[[0, 2, 3]].mean(0)
    torch.testing.assert_close(bank.rows[2], F.normalize(0.5 * before[2] + 0.5 * mean, dim=0))


def test_it_serves_a_loss_as_negatives_with_the_own_slot_left_out() -> None:
    """Against a literal softmax over the whole bank, of which the own slot is the positive."""
    bank, query, indices = models.MemoryBank(6, dim=4), features(3, 1).requires_grad_(), torch.tensor([1, 5, 0])
    value = InfoNCELoss(temperature=0.2)(query, bank.keys(indices), bank.rows, own_index=indices)
    logits = F.normalize(query, dim=1) @ F.normalize(bank.rows, dim=1).T / 0.2
    torch.testing.assert_close(value, F.cross_entropy(logits, indices))
    value.backward()
    bank.update(indices, query)
    assert not bank.rows.requires_grad


@pytest.mark.parametrize("scale", [1e25, 1e-25])
def test_features_of_any_length_count_alike(scale: float) -> None:
    bank, other, indices = models.MemoryBank(3, dim=4), models.MemoryBank(3, dim=4), torch.arange(3)
    bank.update(indices, features(3))
    other.update(indices, features(3) * scale)
    torch.testing.assert_close(other.rows, bank.rows)


def test_saved_and_read_again() -> None:
    bank, other = models.MemoryBank(6, dim=4), models.MemoryBank(6, dim=4, generator=torch.Generator().manual_seed(1))
    assert not torch.equal(bank.rows, other.rows)
    other.load_state_dict(bank.state_dict())
    assert torch.equal(bank.rows, other.rows)
    assert len(bank) == 6


def test_errors_speak() -> None:
    bank = models.MemoryBank(6, dim=4)
    with pytest.raises(ValueError, match="indices=0 … 6: must be within the slots 0 … 5"):
        bank.keys(torch.tensor([0, 6]))
    with pytest.raises(ValueError, match="indices=-1 … 2: must be"):
        bank.update(torch.tensor([-1, 2]), features(2))
    with pytest.raises(ValueError, match=r"features has shape \[3, 4\]: must be \[2, 4\]"):
        bank.update(torch.tensor([1, 2]), features(3))
    with pytest.raises(ValueError, match=r"indices has shape \[2\] and torch.float32: must be whole numbers \[N\]"):
        bank.keys(torch.zeros(2))
    with pytest.raises(ValueError, match=r"momentum=-1.*: must be a finite number of at least 0"):
        models.MemoryBank(6, momentum=-1)
