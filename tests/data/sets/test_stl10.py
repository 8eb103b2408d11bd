"""STL-10 from files in the official layout: images lie column by column, labels count from 1."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from kontrast.data.dataset import Memory
from kontrast.data.loading import load
from tests.data.sets.unreachable import trust_files, unplug


def images(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, 3, 96, 96), dtype=np.uint8)


def test_the_official_layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trust_files(monkeypatch, "stl10")
    folder = tmp_path / "stl10_binary"
    folder.mkdir()
    for name, count, seed in (("train", 3, 0), ("test", 2, 1), ("unlabeled", 1030, 2)):
        images(count, seed).transpose(0, 1, 3, 2).tofile(folder / f"{name}_X.bin")
        if name != "unlabeled":
            np.arange(1, count + 1, dtype=np.uint8).tofile(folder / f"{name}_y.bin")
    names = [f"c{i}" for i in range(10)]
    (folder / "class_names.txt").write_text("\n".join(names))
    data = load("stl10", root=tmp_path)
    assert repr(data) == "DataSet 'stl10': 3 images (3, 96, 96), 2 for testing, 1,030 unlabelled in 10 classes"
    for split, count, seed in ((data.train, 3, 0), (data.test, 2, 1), (data.unlabelled, 1030, 2)):
        assert split is not None
        assert isinstance(split.inputs, Memory)
        assert torch.equal(split.inputs.values, torch.from_numpy(images(count, seed)))
    assert data.train.labels is not None
    assert data.train.labels.tolist() == [0, 1, 2]
    assert data.class_names == names
    small = load("stl10", root=tmp_path, size=32)
    assert small.unlabelled is not None
    assert small.unlabelled.inputs.shape == small.train.inputs.shape == (3, 32, 32)


def test_without_network_the_files_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unplug(monkeypatch)
    with pytest.raises(ValueError, match=r"stl10_binary: train_X.bin, .*unlabeled_X.bin.*missing"):
        load("stl10", root=tmp_path)
