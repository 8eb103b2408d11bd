"""SVHN from files in the official layout: digit 0 is stored as 10."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.io
import torch

from kontrast.data.dataset import Memory
from kontrast.data.loading import load
from tests.data.sets.unreachable import trust_files, unplug

PIXELS = np.random.default_rng(0).integers(0, 256, (32, 32, 3, 5), dtype=np.uint8)


def test_the_official_layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trust_files(monkeypatch, "svhn")
    trust_files(monkeypatch, "utils")
    for name in ("train", "test"):
        scipy.io.savemat(tmp_path / f"{name}_32x32.mat", {"X": PIXELS, "y": np.array([[10], [1], [9], [10], [4]])})
    data = load("svhn", root=tmp_path)
    assert data.train.labels is not None
    assert data.train.labels.tolist() == [0, 1, 9, 0, 4]
    assert isinstance(data.train.inputs, Memory)
    assert torch.equal(data.train.inputs.values, torch.from_numpy(PIXELS.transpose(3, 2, 0, 1).copy()))
    assert data.num_classes == 10


def test_without_network_the_files_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unplug(monkeypatch)
    with pytest.raises(
        ValueError, match=r"Expected in .*: train_32x32.mat, test_32x32.mat \(missing: .*ufldl.stanford.edu"
    ):
        load("svhn", root=tmp_path / "new")
