"""Real images, where the variable KONTRAST_TEST_DATA names a folder that has them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from kontrast.data.dataset import Memory
from kontrast.data.image_files import Folder
from kontrast.data.images import CentreCrop
from kontrast.data.loading import SETS, load

ROOT = os.environ.get("KONTRAST_TEST_DATA")
pytestmark = pytest.mark.skipif(not ROOT, reason="KONTRAST_TEST_DATA names no folder with real images")


def sample(name: str) -> Path:
    path = Path(ROOT or "") / name
    if not path.exists():
        pytest.skip(f"no {name} in KONTRAST_TEST_DATA")
    return path


@pytest.mark.parametrize("name", ["cifar10", "cifar100", "svhn"])
def test_samples_as_arrays(name: str) -> None:
    data = load(sample(f"{name}-12k.npz"))
    assert repr(data).endswith(
        f"10,000 images (3, 32, 32), 2,000 for testing in {100 if name == 'cifar100' else 10} classes"
    )
    with np.load(sample(f"{name}-12k.npz")) as arrays:
        assert isinstance(data.train.inputs, Memory)
        assert np.array_equal(data.train.inputs.values.permute(0, 2, 3, 1).numpy(), arrays["x_train"])


@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
def test_the_means_of_the_papers_are_those_of_the_pixels(name: str) -> None:
    data = load(sample(f"{name}-12k.npz"))
    # An image's own mean varies by about 0.12, so the mean over 10,000 of them by 0.0012; three of that.
    np.testing.assert_allclose(data.mean, SETS[name].mean, atol=0.004)


def test_the_std_that_papers_give_cifar10_is_that_within_images() -> None:
    data = load(sample("cifar10-12k.npz"))
    assert isinstance(data.train.inputs, Memory)
    within = data.train.inputs.values.double().div(255).std((2, 3)).mean(0)
    np.testing.assert_allclose(within, SETS["cifar10"].std, atol=0.004)
    np.testing.assert_allclose(data.std, (0.2470, 0.2435, 0.2616), atol=0.004)


def test_a_folder_of_photographs(tmp_path: Path) -> None:
    folder = sample("imagenette-sample")
    data = load(folder, memory=0)
    assert isinstance(data.train.inputs, Folder)
    assert data.train.inputs.shape == (3, 224, 224)
    assert data.num_classes == 10
    assert data.test is not None
    assert data.skipped == ()
    some = torch.arange(0, len(data.train), max(1, len(data.train) // 16))
    read = data.train.inputs.read(some, CentreCrop(64), [0] * len(some))
    cached = load(folder, size=64, cache=tmp_path)
    assert torch.equal(cached.train.inputs.read(some), read)
    assert torch.equal(load(folder, size=64, cache=tmp_path).train.inputs.read(some), read)


def test_tiny_imagenet_in_its_own_layout() -> None:
    data = load("tiny-imagenet", root=sample("tiny-imagenet-sample"), download=False)
    assert data.num_classes == 8
    assert data.test is not None
    assert data.test.require_labels("a test").bincount().tolist() == [15] * 8
    assert data.train.inputs.shape == (3, 64, 64)
