"""A record has everything at once, and its lists are plain."""

from __future__ import annotations

import json

import torch

from kontrast.explore import Catalogue, collect
from tests.explore.made import blobs


def test_everything_is_found_at_once() -> None:
    x, labels = blobs(240, 3, apart=6.0)
    labels = labels.clone()
    labels[10] = (labels[10] + 1) % 3
    labels[200:] = -1
    x[191] = x[20]
    x[230] = 6 * torch.eye(16)[9]
    splits = ["train"] * 150 + ["test"] * 50 + ["unlabelled"] * 40
    calls: list[str] = []
    catalogue = Catalogue(x, splits, labels=labels, class_names=["cat", "dog", "owl"])
    found = collect(catalogue, progress=lambda what, done, of: calls.append(what))
    assert list(dict.fromkeys(calls)) == ["neighbours", "near-duplicates", "labels", "map"]
    assert [(row["name"], row["leak"]) for row in found.near_duplicates] == [("train 20", "yes"), ("test 41", "yes")]
    (error,) = found.label_errors
    assert (error["name"], error["label"], error["suggested"]) == ("train 10", "owl", "dog")
    assert error["probability"] > 0.9
    assert found.far_rows[0]["name"] == "unlabelled 30"
    assert found.overlaps == []
    assert len(found.images) == 240
    assert found.images[20]["nearest"] == "test 41"
    assert found.images[20]["duplicate_group"] == found.images[191]["duplicate_group"] == 1
    assert found.images[10]["suggested"] == "dog"
    assert (found.images[210]["label"], found.images[210]["label_error"]) == ("", 0.0)
    summary = json.loads(json.dumps(found.summary()))
    assert summary["splits"] == {"train": 150, "test": 50, "unlabelled": 40}
    assert (summary["leaks"], summary["label_errors"], summary["judged_labels"]) == (1, 1, 200)
    assert list(found.tables) == ["duplicates", "outliers", "label-errors", "overlaps"]


def test_without_labels_there_are_no_errors_and_no_overlaps() -> None:
    x, _ = blobs(60, 3)
    found = collect(Catalogue(x, ["train"] * 60))
    assert list(found.tables) == ["duplicates", "outliers"]
    assert found.errors is None
    assert found.summary()["label_errors"] is None
    assert "label" not in found.images[0]


def test_three_rows() -> None:
    found = collect(Catalogue(torch.eye(3), ["train"] * 3, labels=torch.tensor([0, 1, 0])))
    assert found.neighbours.shape == (3, 2)
    assert found.label_errors == []
