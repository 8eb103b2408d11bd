"""CIFAR-10 from files in the official layout."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from kontrast.data.dataset import Memory
from kontrast.data.loading import load
from tests.data.sets.unreachable import trust_files, unplug

NAMES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


def rows(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, 3072), dtype=np.uint8)


def official(root: Path) -> Path:
    """Batches of four images each, as the publishers pickle them."""
    folder = root / "cifar-10-batches-py"
    folder.mkdir(parents=True)
    for i in range(1, 6):
        (folder / f"data_batch_{i}").write_bytes(pickle.dumps({"data": rows(4, i), "labels": [i, 0, 9, 3]}))
    (folder / "test_batch").write_bytes(pickle.dumps({"data": rows(4, 9), "labels": [1, 2, 3, 4]}))
    (folder / "batches.meta").write_bytes(pickle.dumps({"label_names": NAMES}))
    return root


def test_the_official_layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trust_files(monkeypatch, "cifar")
    data = load("cifar10", root=official(tmp_path))
    assert isinstance(data.train.inputs, Memory)
    assert torch.equal(data.train.inputs.values[4:8], torch.from_numpy(rows(4, 2)).reshape(4, 3, 32, 32))
    assert data.train.labels is not None
    assert data.train.labels[:8].tolist() == [1, 0, 9, 3, 2, 0, 9, 3]
    assert data.test is not None
    assert data.test.labels is not None
    assert data.test.labels.tolist() == [1, 2, 3, 4]
    assert data.class_names == NAMES
    assert (data.mean, data.std) == ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010))
    assert load("cifar10", root=tmp_path, size=16).train.inputs.shape == (3, 16, 16)


def test_without_network_the_files_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unplug(monkeypatch)
    with pytest.raises(
        ValueError, match=r"could not be downloaded .*no route.*cifar-10-batches-py: data_batch_1, .*KONTRAST_DATA"
    ):
        load("cifar10", root=tmp_path)
    with pytest.raises(ValueError, match=r"are not there \(download=False\).*missing: data_batch_1"):
        load("cifar10", root=tmp_path, download=False)


def test_damaged_files_are_noticed_by_their_checksum(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there, but damaged"):
        load("cifar10", root=official(tmp_path), download=False)
