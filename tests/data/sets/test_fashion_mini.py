"""The bundled set: what it holds, that it is Fashion-MNIST's, and that it needs nothing."""

from __future__ import annotations

import zipfile
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
import torch

from kontrast.data.dataset import Memory
from kontrast.data.loading import load
from kontrast.data.sets import fashion_mnist


def test_it_is_balanced_and_complete(tmp_path: Path) -> None:
    data = load("fashion-mini", root=tmp_path / "nothing", download=False)
    assert repr(data) == "DataSet 'fashion-mini': 10,000 images (1, 28, 28), 2,000 for testing in 10 classes"
    assert data.test is not None
    assert data.train.require_labels("a test").bincount().tolist() == [1000] * 10
    assert data.test.require_labels("a test").bincount().tolist() == [200] * 10
    assert data.class_names is not None
    assert data.class_names[9] == "Ankle boot"
    assert not (tmp_path / "nothing").exists()


def test_it_is_small_plain_and_carries_its_licence() -> None:
    place = files("kontrast.data")
    assert "Zalando SE" in (place / "fashion_mini.LICENSE").read_text()
    assert len((place / "fashion_mini.npz").read_bytes()) < 6_000_000
    with (place / "fashion_mini.npz").open("rb") as file, zipfile.ZipFile(file) as archive:
        assert archive.testzip() is None
        for name in archive.namelist():
            with archive.open(name) as member:
                assert np.lib.format.read_array(member, allow_pickle=False).dtype == np.uint8


def test_every_image_is_one_of_fashion_mnists_with_its_label() -> None:
    if not fashion_mnist.DEBIAN.is_dir():
        pytest.skip("the official files are not installed (Debian: dataset-fashion-mnist)")
    mini, full = load("fashion-mini"), load("fashion-mnist", download=False)
    for part, whole in ((mini.train, full.train), (mini.test, full.test)):
        assert part is not None
        assert whole is not None
        assert isinstance(whole.inputs, Memory)
        again = whole.balanced(len(part) // 10, seed=0)
        assert torch.equal(again.inputs.read(torch.arange(len(part))), part.inputs.read(torch.arange(len(part))))
        assert torch.equal(again.require_labels("a test"), part.require_labels("a test"))
