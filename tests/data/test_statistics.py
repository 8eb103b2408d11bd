"""Mean and deviation, held to numpy's on all pixels at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from kontrast.data.folder import Folder
from kontrast.data.records import Memory, Rows
from kontrast.data.statistics import CHUNK, SAMPLE, channel_statistics
from tests.data.pictures import write


def test_images_match_numpy_over_several_chunks() -> None:
    images = torch.randint(256, (CHUNK // 30 + 7, 3, 5, 4), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    mean, std = channel_statistics(Memory(images))
    x = images.numpy().astype(np.float64) / 255
    # Sums of integers are exact; a few roundings of the last division remain.
    np.testing.assert_allclose(mean, x.mean((0, 2, 3)), rtol=1e-12)
    np.testing.assert_allclose(std, x.std((0, 2, 3)), rtol=1e-10)


def test_vectors_with_a_large_offset_match_numpy() -> None:
    x = torch.randn(2000, 3, generator=torch.Generator().manual_seed(0)) + torch.tensor([0.0, 1e4, -1e6])
    mean, std = channel_statistics(Memory(x))
    np.testing.assert_allclose(mean, x.double().mean(0), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(std, x.double().std(0, correction=0), rtol=1e-9)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e6])
def test_a_constant_channel_has_deviation_1(value: float) -> None:
    x = torch.full((3000, 2), value)
    x[:, 1] = torch.arange(3000)
    assert channel_statistics(Memory(x))[1][0] == 1
    assert channel_statistics(Memory(torch.full((4, 1, 2, 2), 200, dtype=torch.uint8)))[1] == (1.0,)


def test_what_is_not_in_memory_is_sampled_evenly() -> None:
    values = torch.zeros(10 * SAMPLE, 1)
    values[::10] = 1.0
    assert channel_statistics(Memory(values))[0] == pytest.approx((0.1,), rel=1e-12)
    assert channel_statistics(Rows(Memory(values), torch.arange(len(values))))[0] == (1.0,), "each tenth"


def test_files_of_different_sizes_are_sampled(tmp_path: Path) -> None:
    paths = [str(write(tmp_path / f"{i}.png", (20 + i, 30), seed=i)) for i in range(5)]
    mean, std = channel_statistics(Folder(paths), size=20)
    assert len(mean) == len(std) == 3
    assert all(0 < m < 1 and 0 < s < 0.5 for m, s in zip(mean, std, strict=True))
    with pytest.raises(ValueError, match="no rows"):
        channel_statistics(Memory(torch.zeros(0, 2)))
