"""Tiny ImageNet from files in the official layout, labels of the validation images from their list."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from kontrast.data.dataset import Memory, channel_statistics
from kontrast.data.image_files import Folder
from kontrast.data.images import decode
from kontrast.data.loading import load
from tests.data.pictures import write
from tests.data.sets.unreachable import unplug

IDS = ["n02", "n01", "n10"]  # as published, not sorted


def official(root: Path) -> Path:
    folder = root / "tiny-imagenet-200"
    for c, name in enumerate(IDS):
        for i in range(2):
            write(folder / "train" / name / "images" / f"{name}_{i}.JPEG", (64, 64), seed=10 * c + i)
        (folder / "train" / name / f"{name}_boxes.txt").write_text("a list, no image")
    for i in range(4):
        write(folder / "val" / "images" / f"val_{i}.JPEG", (64, 64), seed=50 + i)
    found = [f"val_{i}.JPEG\t{name}\t0\t0\t9\t9" for i, name in enumerate(["n10", "n01", "n02", "n10"])]
    (folder / "val" / "val_annotations.txt").write_text("\n".join(found))
    write(folder / "test" / "images" / "test_0.JPEG", (64, 64))
    (folder / "wnids.txt").write_text("\n".join(IDS))
    (folder / "words.txt").write_text("n01\tcrane, a bird\nn02\tcrane, a machine\nn99\tother")
    return root


def test_the_official_layout(tmp_path: Path) -> None:
    data = load("tiny-imagenet", root=official(tmp_path), download=False)
    assert repr(data) == "DataSet 'tiny-imagenet': 6 images (3, 64, 64), 4 for testing in 3 classes"
    assert data.class_names == ["n01 crane", "n02 crane", "n10"]
    assert data.train.require_labels("a test").tolist() == [0, 0, 1, 1, 2, 2]
    assert data.test is not None
    assert data.test.require_labels("a test").tolist() == [2, 0, 1, 2]
    assert isinstance(data.train.inputs, Memory)
    path = tmp_path / "tiny-imagenet-200" / "train" / "n02" / "images" / "n02_1.JPEG"
    assert torch.equal(data.train.inputs.values[3], decode(path))


def test_files_or_a_cache_where_memory_is_short(tmp_path: Path) -> None:
    expected = load("tiny-imagenet", root=official(tmp_path)).train.inputs.read(torch.arange(6))
    lazy = load("tiny-imagenet", root=tmp_path, memory=1000)
    assert isinstance(lazy.train.inputs, Folder)
    assert lazy.test is not None
    assert torch.equal(lazy.train.inputs.read(torch.arange(6)), expected)
    cached = load("tiny-imagenet", root=tmp_path, cache=True)
    assert torch.equal(cached.train.inputs.read(torch.arange(6)), expected)
    assert len(list((tmp_path / "images").iterdir())) == 2, "one file a split"


def test_missing_and_damaged_validation_images_are_skipped(tmp_path: Path) -> None:
    folder = official(tmp_path) / "tiny-imagenet-200" / "val"
    (folder / "images" / "val_0.JPEG").unlink()
    (folder / "images" / "val_1.JPEG").write_bytes(b"")
    write(folder / "images" / "val_9.JPEG")
    with pytest.warns(UserWarning, match="skipped 3 of"):
        data = load("tiny-imagenet", root=tmp_path)
    assert data.test is not None
    assert data.test.require_labels("a test").tolist() == [1, 2]
    assert {name for name, _ in data.skipped} == {"test: val_0.JPEG", "test: val_1.JPEG", "test: val_9.JPEG"}
    (folder / "val_annotations.txt").write_text("val_2.JPEG\tn77\t0")
    with pytest.raises(ValueError, match=r"gives val_2.JPEG the class 'n77', which wnids.txt has not"):
        load("tiny-imagenet", root=tmp_path)


def test_blank_and_wrong_lines_of_the_list(tmp_path: Path) -> None:
    path = official(tmp_path) / "tiny-imagenet-200" / "val" / "val_annotations.txt"
    path.write_text("\n" + path.read_text().replace("\n", "\n \n") + "\n\n")
    data = load("tiny-imagenet", root=tmp_path)
    assert data.test is not None
    assert data.test.require_labels("a test").tolist() == [2, 0, 1, 2]
    path.write_text("\nval_0.JPEG n01 0 0")
    with pytest.raises(ValueError, match=r"line 2 of val_annotations.txt is 'val_0.JPEG n01 0 0'; expected file, tab"):
        load("tiny-imagenet", root=tmp_path)


def test_grey_has_statistics_of_its_own(tmp_path: Path) -> None:
    data = load("tiny-imagenet", root=official(tmp_path), channels=1, labelled=False)
    assert data.train.inputs.shape == (1, 64, 64)
    assert (data.mean, data.std) == channel_statistics(data.train.inputs)
    assert data.train.labels is None
    assert len(load("tiny-imagenet", root=tmp_path, channels=3, labelled=True).mean) == 3


def test_without_network_the_files_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unplug(monkeypatch)
    with pytest.raises(ValueError, match=r"tiny-imagenet-200: wnids.txt, .*val_annotations.txt.*cs231n"):
        load("tiny-imagenet", root=tmp_path)
    with pytest.raises(ValueError, match="download=False"):
        load("tiny-imagenet", root=tmp_path, download=False)
