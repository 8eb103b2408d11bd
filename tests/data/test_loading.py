"""One call finds out what it was given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from kontrast.data.loading import SETS, load, names
from kontrast.data.records import DataSet
from tests.data.pictures import classes, noise


def test_names_with_dashes_or_underscores() -> None:
    assert "tiny-imagenet" in names()
    assert SETS["tiny-imagenet"] is SETS["tiny_imagenet"]
    assert load("fashion_mini").name == load("fashion-mini").name == "fashion-mini"


def test_folders_and_files(tmp_path: Path) -> None:
    assert len(load(classes(tmp_path / "a")).train) == 6
    assert len(load(str(tmp_path / "a"), size=4).train) == 6
    np.savez(tmp_path / "b.npz", x_train=np.eye(3), y_train=[0, 1, 2])
    assert load(tmp_path / "b.npz").kind == "vector"
    (tmp_path / "c.txt").write_text("x")
    with pytest.raises(ValueError, match="a file of another kind"):
        load(tmp_path / "c.txt")


X = np.stack([noise(6, 5, seed=i) for i in range(4)])


@pytest.mark.parametrize(
    ("source", "test", "labelled"),
    [
        (X, None, False),
        (torch.from_numpy(X), X, False),
        ((X, [0, 1, 0, 1]), (X, [0, 0, 0, 1]), True),
        ({"x_train": X, "y_train": [0, 1, 0, 1]}, None, True),
        ([(x, i % 2) for i, x in enumerate(X)], [(X[0], 1)], True),
    ],
)
def test_objects(source: Any, test: Any, labelled: bool) -> None:
    data = load(source, test=test)
    assert data.labelled == labelled
    assert data.train.inputs.shape == (3, 6, 5)
    assert (data.test is None) == (test is None)
    assert load(data) is data


def test_limits_are_even_and_seeded() -> None:
    data = load("fashion-mini", limit=100, test_limit=50, seed=1)
    assert data.train.labels is not None
    assert data.train.labels.bincount().tolist() == [10] * 10
    assert data.test is not None
    assert len(data.test) == 50
    first, second = (load("fashion-mini", limit=100, seed=s).train.inputs.read(torch.arange(100)) for s in (1, 2))
    assert torch.equal(first, data.train.inputs.read(torch.arange(100)))
    assert not torch.equal(first, second)


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("cifar", {}, "'cifar' is neither a set nor a path that exists; did you mean 'cifar10'"),
        ("/no/such/place", {}, "neither a set nor a path"),
        ("digits", {"test": X}, "brings its own test split"),
        ({"x_train": X}, {"test": X}, "give x_test and y_test in it"),
        ("digits", {"sice": 3}, "unexpected keyword argument 'sice'"),
        ("digits", {"size": -1}, "size is -1"),
        (7, {}, "a int cannot be indexed"),
    ],
)
def test_errors_speak(source: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load(source, **options)


def test_every_set_says_what_it_is() -> None:
    for name in names():
        found = SETS[name]
        assert found.name == name
        assert len(found.mean) == len(found.std) > 0
        assert found.note
    assert isinstance(load("digits"), DataSet)
