"""Tests of kontrast.data.image_files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from kontrast.data import Folder, Memory, load
from kontrast.data.dataset import Options
from kontrast.data.folder import from_folder, parse_paths
from tests.data.pictures import classes, noise, write


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
    with pytest.raises(ValueError, match="must have one subfolder per class"):
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
    with pytest.raises(ValueError, match="classes that the training folder lacks: fox"):
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
    with pytest.raises(ValueError, match="must be a folder"):
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


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Six images of several sizes in two folders."""
    found = []
    for i in range(6):
        path = tmp_path / ("a" if i % 2 else "b") / f"{i}.png"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(noise(8 + i, 9, seed=i)).save(path)
        found.append(path)
    return found


LABELS = ["cat", "dog", "cat", "owl", "dog", "owl"]


def test_paths_alone_keep_their_order_and_names(files: list[Path]) -> None:
    for given in (files, [str(path) for path in files], tuple(files), np.array([str(path) for path in files])):
        found = load(given, size=8)
        assert isinstance(found.train.inputs, Memory)
        assert found.train.labels is None
        assert found.train.names == [path.relative_to(path.parents[1]).as_posix() for path in files]
        assert torch.equal(
            found.train.inputs.values[3], load([files[3]], size=8).train.inputs.read(torch.tensor([0]))[0]
        )
    several = load(files)
    assert isinstance(several.train.inputs, Folder)
    assert several.train.inputs.shape is None


def test_labels_in_either_form(files: list[Path]) -> None:
    for given in ((files, LABELS), list(zip(files, LABELS, strict=True)), (files, np.array(LABELS))):
        found = load(given, size=8)
        assert found.class_names == ["cat", "dog", "owl"]
        assert found.train.labels is not None
        assert found.train.labels.tolist() == [0, 1, 0, 2, 1, 2]
    assert load((files, LABELS), size=8, labelled=False).train.labels is None
    tested = load((files, LABELS), test=(files[:2], LABELS[:2]), size=8)
    assert tested.test is not None
    assert tested.test.labels is not None
    assert tested.test.labels.tolist() == [0, 1]
    assert load(files, test=files[:2], size=8).test is not None


def test_an_unreadable_file_takes_its_label_with_it(files: list[Path]) -> None:
    files[1].write_bytes(b"no image")
    with pytest.warns(UserWarning, match="skipped 1 of 6 image files"):
        found = load((files, LABELS), size=8)
    assert found.train.labels is not None
    assert found.train.labels.tolist() == [0, 0, 2, 1, 2]
    assert found.train.names is not None
    assert len(found.train.names) == 5
    with pytest.raises(ValueError, match="cannot be read"):
        load((files, LABELS), size=8, max_bad=0)


def test_one_image(files: list[Path]) -> None:
    assert len(load(files[0]).train) == 1
    assert repr(load(str(files[0]), size=8)) == "DataSet 'files': 1 images (3, 8, 8) without labels"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda f: [*f, "nowhere.png"], "1 of 7 paths are not files: nowhere.png. They must be image files"),
        (lambda f: [*f, f[0].parent], "1 of 7 paths are not files"),
        (lambda f: (f, LABELS[:-1]), "y_train: must have 6 labels, one for each file; got 5"),
        (lambda f: [*f, Image.new("RGB", (4, 4))], "item 6 of the list is .* and others are paths"),
        (lambda f: [*zip(f, LABELS, strict=True), f[0]], "all items must be paths, or all .path, label."),
    ],
)
def test_errors(files: list[Path], change: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        load(change(files), size=8)
    with pytest.raises(ValueError, match="it must be paths too"):
        load(files, test=torch.zeros(2, 3, 8, 8))


def test_what_is_no_list_of_paths() -> None:
    for other in (
        [("a.png", [[1], [1, 2]])],
        [],
        "photos",
        [torch.zeros(3, 4, 4)],
        (torch.zeros(2, 3), [0, 1]),
        [[1.0, 2.0]],
        [Image.new("L", (1, 1))],
    ):
        assert parse_paths(other) is None


def test_names_of_a_folder_begin_below_it(tmp_path: Path) -> None:
    for name in ("train/cat/1.png", "train/dog/2.png", "val/cat/3.png", "val/dog/4.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(noise(8, 8)).save(tmp_path / name)
    found = load(tmp_path, size=8)
    assert found.train.names == ["train/cat/1.png", "train/dog/2.png"]
    assert found.test is not None
    assert found.test.subset(torch.tensor([1])).names == ["val/dog/4.png"]
    assert found.limit(1).train.names is not None
    assert len(found.limit(1).train.names or ()) == 1
