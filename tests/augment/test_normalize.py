"""Normalisation is torchvision's."""

from __future__ import annotations

import numpy as np
import pytest
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


@pytest.mark.parametrize(
    "kind", [tuple, list, torch.tensor, np.array, np.float32, lambda v: [np.float64(x) for x in v]]
)
def test_numbers_of_any_kind_are_taken(kind) -> None:
    values = kind([0.5, 0.25])
    if isinstance(values, np.ndarray):
        values.flags.writeable = False
    assert Normalize(values, values).mean == (0.5, 0.25)
    assert Normalize(values, values).std == (0.5, 0.25)


@pytest.mark.parametrize("value", [1, 1.0, np.float32(1.0), np.int64(1), torch.tensor(1.0), np.array(1.0)])
def test_a_number_of_any_kind_is_taken(value) -> None:
    assert Normalize(0.0, value).std == (1.0,)


@pytest.mark.parametrize("value", ["0.5", None, [], [[0.5], [0.5, 0.5]], float("nan"), np.array([np.inf])])
def test_other_things_are_not(value) -> None:
    with pytest.raises(ValueError, match="mean must be a finite number, or one each of the channels or features, got"):
        Normalize(value, 1.0)


def test_vectors_feature_by_feature() -> None:
    """Exactly: the same subtraction and division; one number stands for all features."""
    x = torch.randn(7, 3, generator=torch.Generator().manual_seed(0))
    mean, std = torch.tensor([1.0, -2.0, 0.5]), torch.tensor([2.0, 0.1, 3.0])
    assert torch.equal(Normalize(mean, std)(x), (x - mean) / std)
    assert torch.equal(Normalize(0.5, 2.0)(x), (x - 0.5) / 2)
    with pytest.raises(ValueError, match=r"mean has 2 numbers for vectors of shape \[7, 3\]: one a feature, or one"):
        Normalize((1.0, 2.0), 1.0)(x)


@pytest.mark.parametrize("value", [0.1, 7.0, -1e6])
def test_a_constant_feature_is_divided_by_one(value: float) -> None:
    """Its std is 0, or what rounding makes of that; 1e-3 of its mean is a true one."""
    x = torch.tensor([[value, value, value], [value, value + 1, value]])
    out = Normalize(mean=[value] * 3, std=[0.0, abs(value) * 5e-8, abs(value) * 1e-3])(x)
    assert out.isfinite().all()
    assert float(out[1, 1]) == pytest.approx(1.0, abs=1e-6)
    assert not out[:, [0, 2]].any()
    changed = Normalize(mean=[value] * 3, std=[abs(value) * 1e-3] * 3)(x * 1.01)
    torch.testing.assert_close(changed[0].abs(), torch.full((3,), 10.0), rtol=1e-3, atol=0)


def test_a_constant_channel_of_images_is_refused() -> None:
    normalize = Normalize(0.5, (0.2, 0.0, 0.2))
    with pytest.raises(ValueError, match=r"std must be above 0 in every channel of images, got \(0.2, 0.0, 0.2\)"):
        normalize(floats())
    with pytest.raises(ValueError, match="std must be above 0"):
        Normalize(0.5, (0.2, -0.1, 0.2))
