"""Files of images are joined: the first rows of each class, in order."""

from __future__ import annotations

import doctest
from pathlib import Path

import numpy as np
import pytest

import join_data


def test_examples_in_docstrings() -> None:
    assert doctest.testmod(join_data).failed == 0


def test_parts_are_joined(tmp_path: Path) -> None:
    images = np.arange(8, dtype=np.uint8).reshape(8, 1, 1, 1)
    labels = np.array([0, 0, 1, 0, 1, 1, 0, 1])
    np.savez(tmp_path / "a.npz", x_train=images, y_train=labels, x_test=images[:2], y_test=np.array([0, 1]))
    np.savez(tmp_path / "b.npz", x_test=images[2:4], y_test=np.array([1, 0]))
    found = join_data.join([tmp_path / "a.npz", tmp_path / "b.npz"], {"train": 4, "test": 4})
    assert found["x_train"].ravel().tolist() == [0, 1, 2, 4]
    assert found["y_train"].tolist() == [0, 0, 1, 1]
    assert found["x_test"].ravel().tolist() == [0, 1, 2, 3]
    assert found["y_test"].tolist() == [0, 1, 1, 0]
    with pytest.raises(ValueError, match=r"3 rows: must be a multiple of the number of classes \(2\)"):
        join_data.join([tmp_path / "a.npz"], {"train": 3})
    with pytest.raises(ValueError, match="x_train: is in none of"):
        join_data.join([tmp_path / "b.npz"], {"train": 4})
