"""Subfolders are classes, splits are found, and a flat folder has no labels."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from kontrast.data.folder import Folder
from kontrast.data.options import Options
from kontrast.data.tree import from_folder
from tests.data.pictures import classes, write


def test_class_folders(tmp_path: Path) -> None:
    data = from_folder(classes(tmp_path / "pets"), Options())
    assert repr(data) == "DataSet 'pets': 6 images (3, 8, 8) in 2 classes"
    assert data.class_names == ["cat", "dog"]
    assert data.train.labels is not None
    assert data.train.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert data.test is None


@pytest.mark.parametrize("name", ["test", "val", "valid", "validation", "Test"])
def test_splits(tmp_path: Path, name: str) -> None:
    classes(tmp_path / "train")
    classes(tmp_path / name, per_class=1)
    classes(tmp_path / "unlabelled", per_class=2)
    data = from_folder(tmp_path, Options())
    assert data.test is not None
    assert data.test.labels is not None
    assert data.unlabelled is not None
    assert (len(data.train), data.test.labels.tolist(), len(data.unlabelled)) == (6, [0, 1], 4)
    assert data.unlabelled.labels is None


def test_a_flat_test_folder_is_passed_over_for_one_with_labels(tmp_path: Path) -> None:
    classes(tmp_path / "train")
    write(tmp_path / "test" / "1.png")
    classes(tmp_path / "val", per_class=2)
    data = from_folder(tmp_path, Options())
    assert data.test is not None
    assert len(data.test) == 4


def test_a_class_may_be_called_train(tmp_path: Path) -> None:
    data = from_folder(classes(tmp_path, names=("bus", "train")), Options())
    assert data.class_names == ["bus", "train"]


def test_flat_is_unlabelled(tmp_path: Path) -> None:
    for i in range(4):
        write(tmp_path / f"{i}.png")
    data = from_folder(tmp_path, Options())
    assert data.train.labels is None
    assert data.class_names is None
    with pytest.raises(ValueError, match="SupCon needs labels and these 4 rows have none"):
        data.train.require_labels("SupCon")
    with pytest.raises(ValueError, match="no subfolders with images; expected one a class"):
        from_folder(tmp_path, Options(labelled=True))


def test_one_subfolder_is_no_division(tmp_path: Path) -> None:
    classes(tmp_path, names=("2021",))
    assert from_folder(tmp_path, Options()).train.labels is None
    insisted = from_folder(tmp_path, Options(labelled=True))
    assert insisted.num_classes == 1
    assert from_folder(classes(tmp_path), Options(labelled=False)).train.labels is None


def test_unlabelled_training_with_labelled_testing(tmp_path: Path) -> None:
    write(tmp_path / "train" / "1.png")
    classes(tmp_path / "test")
    data = from_folder(tmp_path, Options())
    assert data.train.labels is None
    assert data.test is not None
    assert data.test.labels is not None
    assert data.class_names == ["cat", "dog"]


def test_images_beside_the_classes_are_skipped_or_refused(tmp_path: Path) -> None:
    classes(tmp_path)
    write(tmp_path / "preview.png")
    with pytest.warns(UserWarning, match="skipped 1 of 7 image files .*preview.png .beside the class folders"):
        data = from_folder(tmp_path, Options())
    assert len(data.train) == 6
    assert data.skipped == (("train: preview.png", "beside the class folders, in none"),)
    with pytest.raises(ValueError, match=r"1 images lie in .* itself, beside 2 class folders"):
        from_folder(tmp_path, Options(max_bad=0))


def test_damaged_files_are_skipped_and_their_labels_too(tmp_path: Path) -> None:
    classes(tmp_path)
    (tmp_path / "cat" / "1.png").write_bytes(b"no image")
    for options in (Options(), Options(size=4), Options(memory=0), Options(size=4, cache=tmp_path.parent / "cache")):
        with pytest.warns(UserWarning, match="skipped 1 of 6 image files"):
            data = from_folder(tmp_path, options)
        assert data.train.labels is not None
        assert data.train.labels.tolist() == [0, 0, 1, 1, 1]
        assert len(data.train.inputs) == 5
        assert data.skipped == (("train: cat/1.png", "not an image that PIL knows"),)


def test_files_of_other_kinds_are_listed_and_counted_but_need_no_limit(tmp_path: Path) -> None:
    classes(tmp_path)
    (tmp_path / "cat" / "1.txt").write_text("a cat")
    (tmp_path / "notes.md").write_text("pets")
    data = from_folder(tmp_path, Options(max_bad=0))
    assert len(data.train) == 6
    assert data.skipped == tuple((f"train: {name}", "no image by its suffix") for name in ("cat/1.txt", "notes.md"))
    assert data.note.endswith("2 files of other kinds beside them")


def test_classes_that_training_has_not(tmp_path: Path) -> None:
    classes(tmp_path / "train")
    classes(tmp_path / "test", names=("cat", "fox"))
    with pytest.raises(ValueError, match="classes that training has not: fox"):
        from_folder(tmp_path, Options())


def test_large_folders_stay_files_with_a_crop_at_decode(tmp_path: Path) -> None:
    for i in range(4):
        write(tmp_path / "ab"[i % 2] / f"{i}.jpg", (30 + i, 40))
    data = from_folder(tmp_path, Options())
    assert isinstance(data.train.inputs, Folder)
    assert data.train.inputs.shape is None
    assert repr(data).startswith(f"DataSet {tmp_path.name!r}: 4 images of several sizes")
    rows = data.train.inputs.read(torch.tensor([3, 0]), lambda image, seed: image[:, :5, :6], [1, 2])
    assert rows.shape == (2, 3, 5, 6)
    assert torch.equal(data.train.inputs.labels, data.train.labels)
    part = data.limit(2).train
    assert part.inputs.read(torch.tensor([1]), lambda image, seed: image[:, :5, :6], [1]).shape == (1, 3, 5, 6)
    with pytest.raises(ValueError, match="is no folder"):
        from_folder(tmp_path / "absent", Options())


def test_classes_without_a_readable_image_are_named(tmp_path: Path) -> None:
    classes(tmp_path, names=("ant", "bee", "cat"))
    for i in range(3):
        (tmp_path / "bee" / f"{i}.png").write_bytes(b"no image")
    with (
        pytest.warns(UserWarning, match=r"1 of 3 classes have no image in .* that can be read.*: bee$"),
        pytest.warns(UserWarning, match="skipped 3 of 9"),
    ):
        data = from_folder(tmp_path, Options())
    assert data.class_names == ["ant", "bee", "cat"]
    assert data.train.require_labels("a test").tolist() == [0, 0, 0, 2, 2, 2]


def test_classes_that_testing_lacks_are_no_matter(tmp_path: Path) -> None:
    classes(tmp_path / "train", names=("ant", "bee", "cat"))
    classes(tmp_path / "test", names=("ant", "cat"))
    assert from_folder(tmp_path, Options()).num_classes == 3  # and no warning, which would be an error here
