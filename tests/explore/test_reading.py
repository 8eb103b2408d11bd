"""Encoder and data become one catalogue of all splits, with labels, names and pictures that belong together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from kontrast import models
from kontrast.explore import collect, reading
from kontrast.train.embedding import embed, features


def test_all_splits_of_a_folder(folder: Path, encoder: models.Encoder) -> None:
    rows = reading.read(encoder, folder)
    assert rows.counts == {"train": 37, "test": 19}
    assert rows.class_names == ["cat", "dog", "owl"]
    names = list(rows.names or ())
    assert names[0].startswith("train/cat/")
    assert all(name.startswith(split) for name, split in zip(names, rows.splits, strict=True))
    assert all(rows.class_name(rows.label(i)) in rows.name(i) for i in range(56))
    assert rows.thumbnails is not None
    assert rows.thumbnails.shapes[names.index("train/cat/again.jpg")].tolist() == [48, 64]
    alone = features(encoder, str(folder), split="test")
    assert torch.allclose(rows.features[37:], alone.features, atol=1e-6)
    found = collect(rows)
    pairs = {tuple(sorted(rows.name(row) for row in group.rows)): group.leak for group in found.groups}
    assert pairs == {
        ("train/cat/3.png", "train/cat/again.jpg"): False,
        ("test/dog/leak.jpg", "train/dog/2.png"): True,
    }


def test_one_split_and_a_limit(folder: Path, encoder: models.Encoder) -> None:
    assert reading.read(encoder, folder, split="test").counts == {"test": 19}
    some = reading.read(encoder, folder, limit=30)
    assert some.counts == {"train": 19, "test": 10}
    assert all(some.class_name(some.label(i)) in some.name(i) for i in range(len(some)))
    assert some.thumbnails is not None
    assert len(some.thumbnails) == 29
    with pytest.raises(ValueError, match="split='unlabelled': must be one of the data's: train, test"):
        reading.read(encoder, folder, split="unlabelled")


def test_a_file_of_features(folder: Path, encoder: models.Encoder, tmp_path: Path) -> None:
    file = tmp_path / "test.npz"
    embed(encoder, str(folder), file, split="test")
    whole = reading.read(encoder, folder, split="test")
    rows = reading.read(file, folder)  # found by the names
    assert rows.names == whole.names
    assert rows.splits == ["test"] * 19
    assert torch.allclose(rows.features, whole.features, atol=1e-6)
    bare = reading.read(file)
    assert bare.thumbnails is None
    assert bare.labels is not None
    assert whole.labels is not None
    assert torch.equal(bare.labels, whole.labels)
    np.savez(tmp_path / "bare.npz", features=rows.features.numpy())
    assert reading.read(tmp_path / "bare.npz", folder, split="test").names == whole.names  # by their order
    with pytest.raises(ValueError, match=r"has 19 rows and no files' names, and the data have train 37, test 19"):
        reading.read(tmp_path / "bare.npz", folder)
    assert len(reading.read(file, folder, limit=9)) == 9
    assert len(reading.read(file, limit=9)) == 9
    with pytest.raises(ValueError, match="data: must be given with an encoder"):
        reading.read(encoder)


def test_vectors(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    x = draw.normal(size=(40, 6)).astype(np.float32)
    np.savez(tmp_path / "rows.npz", x_train=x, y_train=np.arange(40) % 2)
    net = models.encoder("mlp", in_features=6, seed=0)
    rows = reading.read(net, tmp_path / "rows.npz")
    assert rows.thumbnails is None
    assert rows.counts == {"train": 40}
    assert rows.name(7) == "train 7"
