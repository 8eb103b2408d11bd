"""What holds for every named set: found by its file, and loaded if it needs no files."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from kontrast.data import sets
from kontrast.data.dataset import DataSet, Split
from kontrast.data.loading import SETS, load, names


@pytest.fixture(scope="module")
def loaded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> DataSet:
    try:
        return load(request.param, root=tmp_path_factory.mktemp("nothing"), download=False)
    except ValueError as error:
        if "Expected" not in str(error) and "expected" not in str(error):
            raise
        pytest.skip(f"{request.param} needs files")


def splits(data: DataSet) -> list[Split]:
    return [split for split in (data.train, data.test, data.unlabelled) if split is not None]


@pytest.mark.parametrize("name", names())
def test_the_class_says_what_it_is(name: str) -> None:
    kind = SETS[name]
    assert kind.name == name
    assert kind.note
    assert len(kind.mean) == len(kind.std) in (1, 3)
    assert all(0 < value < 1 for value in (*kind.mean, *kind.std)), "of pixels in 0…1"


@pytest.mark.parametrize("loaded", names(), indirect=True)
def test_images_labels_and_classes_fit_together(loaded: DataSet) -> None:
    assert loaded.train.labels is not None
    assert loaded.class_names is not None
    assert loaded.train.labels.unique().tolist() == list(range(loaded.num_classes))
    for split in splits(loaded):
        images = split.inputs.read(torch.arange(min(8, len(split))))
        assert images.dtype == torch.uint8
        assert images.shape[1] == len(loaded.mean)


@pytest.mark.parametrize("loaded", names(), indirect=True)
def test_mean_and_std_are_those_of_pixels(loaded: DataSet) -> None:
    """Those of the pixels to the rounding of four digits; a paper's own are named so in the docstring of the file."""
    if "Mean and std are tcl's" in str(sys.modules[SETS[loaded.name].__module__].__doc__):
        pytest.skip("a paper's own")
    images = loaded.train.inputs.read(torch.arange(min(len(loaded.train), 10_000))) / 255
    assert images.mean((0, 2, 3)).tolist() == pytest.approx(loaded.mean, abs=5e-3)
    assert images.std((0, 2, 3)).tolist() == pytest.approx(loaded.std, abs=5e-3)


@pytest.mark.parametrize("loaded", names(), indirect=True)
def test_it_is_the_same_again(loaded: DataSet, tmp_path: Path) -> None:
    again = load(loaded.name, root=tmp_path, download=False)
    rows = torch.arange(min(8, len(loaded.train)))
    assert torch.equal(again.train.inputs.read(rows), loaded.train.inputs.read(rows))


SET = """import numpy as np
from kontrast.data.sets._base import NamedSet

class Mine(NamedSet):
    name = "mine"
    mean = (0.5, 0.5, 0.5)
    std = (0.2, 0.2, 0.2)
    note = "made"

    def load(self):
        labels = np.arange(9) % 3
        images = np.zeros((9, 3, 16, 16), np.uint8)
        return self.assemble(self.split(images, labels), self.split(images, labels), ["a", "b", "c"])
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose files are sets."""
    monkeypatch.setattr(sets, "__path__", [*sets.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, f"{sets.__name__}.mine", raising=False)
    return tmp_path


def test_a_new_file_is_a_set(folder: Path) -> None:
    (folder / "mine.py").write_text(SET)
    assert load("mine").num_classes == 3


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "mine"', 'name = "digits"', r"data set 'mine': name='digits': must be 'mine', as its file"),
        ('    name = "mine"\n', "", r"data set 'mine': Mine must set name: 'mine', as its file"),
        ("    mean = (0.5, 0.5, 0.5)\n", "", r"data set 'mine': Mine must set mean: that of the training pixels"),
        ('    note = "made"\n', "", r"data set 'mine': Mine must set note"),
        (
            "mean = (0.5, 0.5, 0.5)",
            "mean = (0.5,)",
            r"mean has length 1: must have 3, one for each channel of \[3, 16, 16\]",
        ),
        ("std = (0.2, 0.2, 0.2)", "std = (0.2,)", "std has length 1: must have 3"),
        ("(9, 3, 16, 16)", "(9, 16, 16, 3)", r"images \[9, 16, 16, 3\]: must be \[N, C, H, W\], channels first"),
        ('["a", "b", "c"]', '["a", "b"]', "train: labels go to 2: must be 3 class_names or more, and there are 2"),
        ("np.arange(9) % 3", "np.arange(9) % 3 + 1", r"train: labels must be 0…2; they begin at 1\. Use labels - 1"),
        (
            "np.arange(9) % 3",
            "np.arange(8) % 3",
            r"data set 'mine': labels of torch\.int64 \[8\]: must be torch\.int64 \[9\]",
        ),
        (
            "np.uint8",
            "np.float32",
            r"'mine': images of float32 \[9, 3, 16, 16\]: must be uint8.* Use \(x \* 255\)\.astype\(np\.uint8\)",
        ),
        ("return self.assemble", "return print", "load must return a DataSet .* got NoneType"),
    ],
)
def test_a_mistake_in_a_set_names_it(folder: Path, old: str, new: str, message: str) -> None:
    assert old in SET
    (folder / "mine.py").write_text(SET.replace(old, new))
    with pytest.raises(ValueError, match=message):
        load("mine")
