"""Lists of image files, with labels and without."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from kontrast.data import Folder, Memory, load
from kontrast.data.paths import listed_paths
from tests.data.pictures import noise


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
        (lambda f: [*f, "nowhere.png"], "1 of 7 paths are no files: nowhere.png; expected image files"),
        (lambda f: [*f, f[0].parent], "1 of 7 paths are no files"),
        (lambda f: (f, LABELS[:-1]), "y_train has 5 labels for 6 files"),
        (lambda f: [*f, Image.new("RGB", (4, 4))], "item 6 of the list is .* and others are paths"),
        (lambda f: [*zip(f, LABELS, strict=True), f[0]], "expected paths, or .path, label., for every item"),
    ],
)
def test_errors(files: list[Path], change: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        load(change(files), size=8)
    with pytest.raises(ValueError, match="expected paths there too"):
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
        assert listed_paths(other) is None


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
