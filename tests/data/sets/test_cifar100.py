"""CIFAR-100 from files in the official layout, with the fine labels."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from kontrast.data.loading import load
from tests.data.sets.unreachable import trust_files


def test_the_official_layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trust_files(monkeypatch, "cifar")
    folder = tmp_path / "cifar-100-python"
    folder.mkdir()
    for name, count in (("train", 6), ("test", 2)):
        data = np.zeros((count, 3072), dtype=np.uint8)
        labels = {"fine_labels": [99] * count, "coarse_labels": [3] * count}
        (folder / name).write_bytes(pickle.dumps({"data": data, **labels}))
    (folder / "meta").write_bytes(pickle.dumps({"fine_label_names": [f"c{i}" for i in range(100)]}))
    found = load("cifar100", root=tmp_path)
    assert repr(found) == "DataSet 'cifar100': 6 images (3, 32, 32), 2 for testing in 100 classes"
    assert found.train.labels is not None
    assert found.train.labels.tolist() == [99] * 6
    assert found.mean == (0.5071, 0.4867, 0.4408)
    (folder / "test").unlink()
    with pytest.raises(ValueError, match=r"cifar-100-python: train, test, meta \(missing: test\)"):
        load("cifar100", root=tmp_path, download=False)
