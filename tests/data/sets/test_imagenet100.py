"""ImageNet-100 out of a folder with more classes than that."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from kontrast.data.image_files import Folder
from kontrast.data.loading import load
from kontrast.data.sets.imagenet100 import IDS
from tests.data.pictures import write


def test_the_list_is_sorted_and_a_hundred() -> None:
    assert len(IDS) == len(set(IDS)) == 100
    assert sorted(IDS) == IDS
    assert (IDS[0], IDS[40], IDS[99]) == ("n01558993", "n02326432", "n13040303")  # Table 3 of wang-liu's supplement


def official(folder: Path) -> Path:
    for part in ("train", "val"):
        for c, name in enumerate([*IDS, "n00000000", "n99999999"]):
            write(folder / part / name / f"{name}_1.JPEG", (10 + c % 3, 12), seed=c)
    return folder


@pytest.mark.parametrize("place", ["imagenet", "ILSVRC2012", "."])
def test_other_classes_are_left_out(tmp_path: Path, place: str) -> None:
    official(tmp_path / place)
    data = load("imagenet100", root=tmp_path)
    assert isinstance(data.train.inputs, Folder)
    assert data.train.inputs.shape is None
    assert data.test is not None
    assert (
        data.train.require_labels("a test").tolist() == data.test.require_labels("a test").tolist() == list(range(100))
    )
    assert data.class_names == IDS
    assert f"/{IDS[7]}/" in data.train.inputs.paths[7]
    assert (data.mean, data.std) == ((0.5,) * 3, (0.25,) * 3)


def test_a_cache_at_one_size(tmp_path: Path) -> None:
    official(tmp_path / "imagenet")
    data = load("imagenet100", root=tmp_path, size=8, cache=True)
    assert data.train.inputs.shape == (3, 8, 8)
    files = load("imagenet100", root=tmp_path, size=8, memory=0)
    assert torch.equal(data.train.inputs.read(torch.arange(100)), files.train.inputs.read(torch.arange(100)))


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no ImageNet in .*train/<id>.*image-net.org"):
        load("imagenet100", root=tmp_path)
    (tmp_path / "imagenet" / "train").mkdir(parents=True)
    with pytest.raises(ValueError, match=r"lacks 200 class folders \(train/n01558993"):
        load("imagenet100", root=tmp_path)
    for name in IDS:
        write(tmp_path / "imagenet" / "train" / name / "1.png")
    write(tmp_path / "imagenet" / "val" / "ILSVRC2012_val_00000001.JPEG")
    with pytest.raises(ValueError, match=r"lacks 100 class folders .*Validation images must lie in class folders"):
        load("imagenet100", root=tmp_path)
