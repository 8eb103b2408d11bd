"""scikit-learn's digits, as images."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from kontrast.data.dataset import Memory, channel_statistics
from kontrast.data.loading import load


def test_images_and_labels_are_scikit_learns() -> None:
    data = load("digits")
    source = load_digits()
    assert isinstance(data.train.inputs, Memory)
    assert data.test is not None
    assert (len(data.train), len(data.test)) == (1437, 360)
    assert int(data.train.inputs.values.max()) == 255
    stored = torch.cat([data.train.inputs.read(torch.arange(1437)), data.test.inputs.read(torch.arange(360))])
    assert np.array_equal(np.rint(stored[:, 0].numpy() * (16 / 255)), source.images)
    assert torch.equal(data.test.require_labels("test"), torch.from_numpy(source.target[-360:]))
    assert data.class_names == [str(i) for i in range(10)]


def test_the_statistics_are_those_of_the_training_pixels() -> None:
    data = load("digits")
    mean, std = channel_statistics(data.train.inputs)
    assert (round(mean[0], 4), round(std[0], 4)) == (data.mean[0], data.std[0])


def test_without_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(ValueError, match="pip install scikit-learn"):
        load("digits")
