"""Held-out rows: of every class its share, by the seed."""

from __future__ import annotations

import pytest
import torch

from kontrast.evaluate import hold_out


def test_every_class_gives_its_share() -> None:
    labels = torch.tensor([0] * 50 + [1] * 20 + [2] * 3 + [3])
    kept, held = hold_out(labels, 0.1, seed=4)
    assert torch.equal(torch.cat([kept, held]).sort().values, torch.arange(74))
    assert labels[held].bincount(minlength=4).tolist() == [5, 2, 1, 0]
    assert kept.tolist() == sorted(kept.tolist())


def test_the_seed_decides() -> None:
    labels = torch.arange(100) % 4
    first, again, other = (hold_out(labels, 0.2, seed=s)[1].tolist() for s in (0, 0, 1))
    assert first == again != other


def test_errors() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        hold_out(torch.zeros(5, dtype=torch.int64), 1.0)
    with pytest.raises(ValueError, match="none can be held out"):
        hold_out(torch.arange(5), 0.2)
