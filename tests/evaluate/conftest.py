"""Features and a small encoder that the tests of this stage share."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from kontrast import data
from kontrast.data import DataSet
from kontrast.evaluate import Subject


def clouds(rows: int, classes: int, dim: int, spread: float, seed: int) -> tuple[Tensor, Tensor]:
    """Noisy rows about a centre a class; classes overlap, so that no accuracy is 1."""
    centres = torch.randn(classes, dim, generator=torch.Generator().manual_seed(99))
    draw = torch.Generator().manual_seed(seed)
    labels = torch.arange(rows) % classes
    return centres[labels] + spread * torch.randn(rows, dim, generator=draw) + 0.5, labels


@pytest.fixture
def subject() -> Subject:
    """700 + 350 rows of 12 numbers in 7 classes, not easily told apart."""
    return Subject.from_features(*clouds(700, 7, 12, 1.8, 0), *clouds(350, 7, 12, 1.8, 1))


@pytest.fixture
def pictures() -> DataSet:
    """300 + 100 grey pictures of fashion-mini."""
    return data.load("fashion-mini", limit=300, test_limit=100)


@pytest.fixture
def encoder() -> nn.Module:
    """A small encoder with batch norm whose statistics are not those of the data."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made = nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(4),
            nn.Flatten(),
        )
    return made
