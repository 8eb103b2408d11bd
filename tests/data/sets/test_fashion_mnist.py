"""Fashion-MNIST from idx files, wherever they lie."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
import torch

from kontrast.data.loading import load
from kontrast.data.sets import fashion_mnist
from tests.data.sets.unreachable import unplug

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 28, 28), dtype=np.uint8)
LABELS = np.array([0, 9, 3, 3, 1, 2], dtype=np.uint8)


def official(folder: Path, *, packed: bool = True) -> Path:
    folder.mkdir(parents=True)
    for images, labels in fashion_mnist.FILES.values():
        for name, array in ((images, PIXELS), (labels, LABELS)):
            content = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()
            path = folder / (f"{name}.gz" if packed else name)
            path.write_bytes(gzip.compress(content) if packed else content)
    return folder


@pytest.fixture(autouse=True)
def _no_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(fashion_mnist, "DEBIAN", tmp_path / "debian")


@pytest.mark.parametrize("place", ["root/FashionMNIST/raw", "root/fashion-mnist", "debian"])
@pytest.mark.parametrize("packed", [True, False])
def test_found_in_every_place(tmp_path: Path, place: str, packed: bool) -> None:
    official(tmp_path / place, packed=packed)
    data = load("fashion-mnist", root=tmp_path / "root", download=False)
    assert torch.equal(data.train.inputs.read(torch.arange(6))[:, 0], torch.from_numpy(PIXELS))
    assert data.train.require_labels("a test").tolist() == LABELS.tolist()
    assert data.test is not None
    assert data.num_classes == 10
    assert (data.mean, data.std) == ((0.5,), (0.5,))


def test_debians_place_is_where_debian_puts_it() -> None:
    from importlib import reload

    assert str(reload(fashion_mnist).DEBIAN) == "/usr/share/datasets/fashion-mnist"


def test_without_network_the_files_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unplug(monkeypatch)
    with pytest.raises(ValueError, match=r"FashionMNIST/raw: train-images-idx3-ubyte.gz, .*missing"):
        load("fashion-mnist", root=tmp_path)
    with pytest.raises(ValueError, match="download=False"):
        load("fashion-mnist", root=tmp_path, download=False)


def test_damaged_files(tmp_path: Path) -> None:
    folder = official(tmp_path / "fashion-mnist")
    path = folder / "train-images-idx3-ubyte.gz"
    whole = path.read_bytes()
    path.write_bytes(whole[:-50])
    with pytest.raises(ValueError, match=r"train-images-idx3-ubyte.gz is damaged"):
        load("fashion-mnist", root=tmp_path)
    path.write_bytes(gzip.compress(gzip.decompress(whole)[:-1]))
    with pytest.raises(ValueError, match=r"4719 bytes for shape \[6, 28, 28\]; it is damaged"):
        load("fashion-mnist", root=tmp_path)


def test_a_small_file_does_not_unfold_without_end(tmp_path: Path) -> None:
    path = official(tmp_path / "fashion-mnist") / "train-images-idx3-ubyte.gz"
    path.write_bytes(gzip.compress(bytes(fashion_mnist.LARGEST + 1), 1))
    with pytest.raises(ValueError, match="unfolds to more than 47,040,016 bytes"):
        load("fashion-mnist", root=tmp_path)
