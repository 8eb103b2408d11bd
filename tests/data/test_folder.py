"""Files are decoded when read, cropped there, and replaced if they have gone."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
import torch
from torch import Tensor

from kontrast.data.folder import Folder
from kontrast.data.images import CentreCrop, decode
from tests.data.pictures import write


def files(folder: Path, count: int = 6) -> list[str]:
    return [str(write(folder / f"{i}.png", (20 + i, 30), seed=i)) for i in range(count)]


def corner(image: Tensor, seed: int) -> Tensor:
    return image[:, seed : seed + 4, :5]


def test_reads_what_is_in_the_files_in_the_order_asked(tmp_path: Path) -> None:
    paths = files(tmp_path)
    folder = Folder(paths)
    assert folder.shape is None
    assert len(folder) == 6
    found = folder.read(torch.tensor([4, 0, 4]), corner, [1, 2, 3])
    expected = torch.stack([corner(decode(paths[i]), s) for i, s in ((4, 1), (0, 2), (4, 3))])
    assert torch.equal(found, expected)
    assert torch.equal(pickle.loads(pickle.dumps(folder)).read(torch.tensor([4, 0, 4]), corner, [1, 2, 3]), expected)


def test_a_crop_of_its_own_gives_it_a_shape(tmp_path: Path) -> None:
    folder = Folder(files(tmp_path), crop=CentreCrop(10))
    assert folder.shape == (3, 10, 10)
    assert folder.read(torch.arange(6)).shape == (6, 3, 10, 10)
    assert folder.read(torch.arange(2), corner, [0, 1]).shape == (2, 3, 4, 5), "a crop that is given comes first"
    grey = Folder(files(tmp_path), crop=CentreCrop(10), channels=1)
    assert grey.read(torch.arange(2)).shape == (2, 1, 10, 10)


def test_different_sizes_need_a_crop_and_a_crop_needs_seeds(tmp_path: Path) -> None:
    folder = Folder(files(tmp_path))
    with pytest.raises(ValueError, match="differ in size; read them with a crop"):
        folder.read(torch.tensor([0]))
    with pytest.raises(ValueError, match="needs as many seeds, one each; seen none"):
        folder.read(torch.tensor([0]), corner)
    with pytest.raises(ValueError, match="changed since they were listed"):
        Folder(files(tmp_path), shape=(3, 20, 30)).read(torch.arange(2))
    with pytest.raises(ValueError, match="at least one path"):
        Folder([])


def test_a_file_gone_bad_is_replaced_by_the_next_of_its_label(tmp_path: Path) -> None:
    paths = files(tmp_path)
    folder = Folder(paths, crop=CentreCrop(8), labels=torch.tensor([0, 1, 0, 1, 0, 1]))
    expected = folder.read(torch.tensor([5, 1, 3]))
    Path(paths[3]).write_bytes(b"")
    with pytest.warns(UserWarning, match=r"3\.png can no longer be read .* the next image with its label stands in"):
        found = folder.read(torch.tensor([5, 1, 3]))
    assert torch.equal(found[:2], expected[:2])
    assert torch.equal(found[2], expected[0]), "5 follows 3 among the odd ones"
    Path(paths[5]).unlink()
    with pytest.warns(UserWarning, match=r"5\.png can no longer"):
        assert torch.equal(folder.read(torch.tensor([3]))[0], expected[1]), "round the end to 1"
    other = Folder(paths, crop=CentreCrop(8), labels=folder.labels)  # a worker that has seen nothing yet
    with pytest.warns(UserWarning, match="can no longer"):
        assert torch.equal(other.read(torch.tensor([3])), folder.read(torch.tensor([3])))


def test_too_many_gone_bad_stop_it(tmp_path: Path) -> None:
    paths = files(tmp_path)
    folder = Folder(paths, crop=CentreCrop(8), max_bad=1)
    for path in paths[:2]:
        Path(path).write_bytes(b"")
    with pytest.warns(UserWarning), pytest.raises(ValueError, match="with it 2 files, more than the 1 allowed"):  # noqa: PT030
        folder.read(torch.tensor([0, 1]))
    alone = Folder(paths[:1], crop=CentreCrop(8))
    with pytest.warns(UserWarning), pytest.raises(ValueError, match="nor any other file of its label"):  # noqa: PT030
        alone.read(torch.tensor([0]))
