"""What is evaluated: arrays, tensors, encoders; the cache follows weights and data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from kontrast import data
from kontrast.data import DataSet
from kontrast.evaluate import Subject, hold_out


class Counted(nn.Module):
    """An encoder that counts its calls."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner, self.calls = inner, 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += len(x) > 1  # one row goes through for its memory to be measured
        return self.inner(x)


def test_arrays_and_tensors_and_labels_of_any_kind() -> None:
    x = np.random.default_rng(0).normal(size=(6, 3))
    x.flags.writeable = False
    made = Subject.from_features(x, ["b", "a", "b", "a", "b", "a"], torch.tensor(x[:2]), np.array(["a", "b"]))
    assert made.train.dtype == torch.float32
    assert made.train_labels.tolist() == [1, 0, 1, 0, 1, 0]
    assert made.class_names == ["a", "b"]
    assert made.num_classes == 2
    numbered = Subject.from_features(x, [3, 7, 3, 7, 3, 7], x, [7, 7, 7, 3, 3, 3])
    assert numbered.test_labels.tolist() == [1, 1, 1, 0, 0, 0]
    assert numbered.class_names == ["3", "7"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"train": torch.zeros(4)}, r"train has shape \[4\]"),
        ({"test": torch.zeros(2, 5)}, r"expected one length"),
        ({"train_labels": None}, "train_labels=None: must be a label"),
        ({"test_labels": [0]}, "test_labels has 1 labels for 2 rows"),
        ({"train": torch.full((4, 3), torch.nan)}, "NaN or infinity in 4 of 4 rows"),
        ({"test_labels": [0, 5]}, "in the test labels only"),
        ({"train": np.array([["a"] * 3] * 4)}, "expected numbers"),
    ],
)
def test_errors_of_features(change: dict, says: str) -> None:
    given = {"train": torch.zeros(4, 3), "train_labels": [0, 1, 0, 1], "test": torch.zeros(2, 3), "test_labels": [0, 1]}
    with pytest.raises(ValueError, match=says):
        Subject.from_features(**{**given, **change})


def test_features_are_extracted_once_and_each_part_by_itself(encoder: nn.Module, pictures: DataSet) -> None:
    counted = Counted(encoder)
    made = Subject.from_encoder(counted, pictures)
    assert counted.calls == 0
    assert made.test.shape == (100, 128)
    assert counted.calls == 1
    assert made.train is made.train
    assert counted.calls == 2


def test_unlabelled_and_untested_data_say_what_is_missing(encoder: nn.Module, pictures: DataSet) -> None:
    bare = replace(pictures, train=pictures.train.with_labels(None), class_names=None)
    with pytest.raises(ValueError, match="needs labels and these 300 rows have none: without them there are no accur"):
        Subject.from_encoder(encoder, bare)
    with pytest.raises(ValueError, match="has no test rows"):
        Subject.from_encoder(encoder, replace(pictures, test=None))
    with pytest.raises(ValueError, match="test rows needs labels"):
        Subject.from_encoder(encoder, replace(pictures, test=pictures.test.with_labels(None)))


def test_the_cache_is_read_while_weights_and_data_are_the_same(
    encoder: nn.Module, pictures: DataSet, tmp_path: Path
) -> None:
    path = tmp_path / "deep" / "features.npz"
    counted = Counted(encoder)
    first = Subject.from_encoder(counted, pictures, cache=path).train
    assert counted.calls == 2
    again = Subject.from_encoder(counted, pictures, cache=path)
    assert torch.equal(again.train, first)
    assert again.test.shape == (100, 128)
    assert counted.calls == 2, "nothing is computed twice"
    with torch.no_grad():
        encoder[0].weight[0, 0, 0, 0] += 1e-3
    changed = Subject.from_encoder(counted, pictures, cache=path).train
    assert counted.calls == 4, "other weights"
    assert not torch.equal(changed, first)
    labels = pictures.train.labels.roll(1)
    Subject.from_encoder(counted, replace(pictures, train=pictures.train.with_labels(labels)), cache=path).features()
    assert counted.calls == 6, "other labels"
    other = data.load("fashion-mini", limit=300, test_limit=100, seed=1)
    Subject.from_encoder(counted, other, cache=path).features()
    assert counted.calls == 8, "other rows"
    path.write_bytes(b"junk")
    Subject.from_encoder(counted, other, cache=path).features()
    assert counted.calls == 10, "a damaged file"
    assert [p.name for p in path.parent.iterdir()] == ["features.npz"], "nothing is left beside it"


def test_a_subject_shows_what_it_is(encoder: nn.Module, pictures: DataSet) -> None:
    assert repr(Subject.from_encoder(encoder, pictures)) == "Subject: 300 + 100 rows of Sequential in 10 classes"


@pytest.mark.parametrize("place", range(4))
def test_masked_arrays_hide_something(place: int) -> None:
    given: list[Any] = [np.eye(4, dtype=np.float32), np.arange(4) % 2] * 2
    given[place] = np.ma.masked_array(given[place], mask=given[place] > 0)
    with pytest.raises(ValueError, match=r"has \d masked entries; expected none. Leave those rows out, or fill them"):
        Subject.from_features(*given)


# ------------------------------------------------------------------------------------------------ hold_out


def test_every_class_gives_its_share() -> None:
    labels = torch.tensor([0] * 50 + [1] * 20 + [2] * 3 + [3])
    kept, held = hold_out(labels, 0.1, seed=4)
    assert torch.equal(torch.cat([kept, held]).sort().values, torch.arange(74))
    assert labels[held].bincount(minlength=4).tolist() == [5, 2, 1, 0]
    assert kept.tolist() == sorted(kept.tolist())


def test_the_seed_decides() -> None:
    labels = torch.arange(100) % 4
    first, again, other = (hold_out(labels, 0.2, seed=s)[1].tolist() for s in (0, 0, 1))
    assert first == again != other


def test_errors() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        hold_out(torch.zeros(5, dtype=torch.int64), 1.0)
    with pytest.raises(ValueError, match="none can be held out"):
        hold_out(torch.arange(5), 0.2)
