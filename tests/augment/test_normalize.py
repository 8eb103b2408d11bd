"""Normalisation is torchvision's."""

from __future__ import annotations

import torch
from torchvision.transforms.v2 import functional as T

from kontrast.augment import Normalize
from tests.augment.samples import floats, levels


def test_equals_torchvision() -> None:
    """Exactly: the same subtraction and division."""
    mean, std = [0.4914, 0.4822, 0.4465], [0.2023, 0.1994, 0.2010]
    assert torch.equal(Normalize(mean, std)(floats()), T.normalize(floats(), mean, std))
    assert torch.equal(Normalize(tuple(mean), std)(levels()), T.normalize(floats(), mean, std))


def test_one_number_for_all_channels() -> None:
    assert torch.equal(Normalize(0.5, 0.25)(floats()), Normalize([0.5] * 3, [0.25] * 3)(floats()))


def test_tensors_are_taken() -> None:
    assert Normalize(torch.tensor([0.5, 0.25]), torch.tensor(1.0)).mean == (0.5, 0.25)
