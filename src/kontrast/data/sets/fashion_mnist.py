"""Fashion-MNIST: 60,000 + 10,000 grey images of 28×28 pixels in 10 classes (Xiao, Rasul & Vollgraf 2017, MIT).

Mean and std are tcl's, 0.5 and 0.5. Deviates: those of the training pixels are 0.2860 and 0.3530.
"""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kontrast.data.dataset import DataSet
from kontrast.data.downloads import download
from kontrast.data.sets._base import NamedSet

DEBIAN = Path("/usr/share/datasets/fashion-mnist")  # where Debian's package dataset-fashion-mnist puts the files
FILES = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}
LARGEST = 16 + 60_000 * 28 * 28  # bytes of the training images, the largest of the files
CLASSES = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")


class FashionMNIST(NamedSet):
    """``FashionMNIST/raw`` or ``fashion-mnist`` below the root, or Debian's package; else downloaded."""

    name = "fashion-mnist"
    mean = (0.5,)
    std = (0.5,)
    note = "Fashion-MNIST, Zalando SE 2017, github.com/zalandoresearch/fashion-mnist, MIT licence"

    def load(self) -> DataSet:
        """Both splits in memory."""
        folder = self._folder()
        first, second = (self.split(*(_read_idx(folder, name) for name in FILES[part])) for part in ("train", "test"))
        return self.assemble(first, second, CLASSES)

    def _folder(self) -> Path:
        """The folder with all four files, after a download if there is none."""
        import torchvision.datasets  # type: ignore[import-untyped]

        where = self.options.where
        names = [name for pair in FILES.values() for name in pair]
        raw = where / "FashionMNIST" / "raw"
        source: Any = torchvision.datasets.FashionMNIST
        address = source.mirrors[0]

        def find() -> Path:
            for folder in (raw, where / "fashion-mnist", DEBIAN):
                if all(_file(folder, name) for name in names):
                    return folder
            raise FileNotFoundError(str(raw))

        def fetch() -> None:
            for name, md5 in source.resources:
                download(f"{address}{name}", raw / name, checksum=f"md5:{md5}")

        return self.read_or_download(find, raw, [f"{name}.gz" for name in names], address, fetch)


def _file(folder: Path, name: str) -> Path | None:
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)


def _read_idx(folder: Path, name: str) -> Tensor:
    """An idx file: two zeros, the type (8, uint8), the number of dimensions, each of them as 4 bytes, the values."""
    path = _file(folder, name)
    assert path is not None
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            raw = file.read(LARGEST + 1)  # a small file can unfold to gigabytes
        if len(raw) > LARGEST:
            raise ValueError(f"{path} unfolds to more than {LARGEST:,} bytes; it is damaged, fetch it again")
        kind, rank = struct.unpack(">HBB", raw[:4])[1:]
        shape = struct.unpack(f">{rank}I", raw[4 : 4 + 4 * rank])
    except (OSError, EOFError, zlib.error, struct.error) as error:
        raise ValueError(f"{path} is damaged ({error}); remove it and fetch it again") from error
    if kind != 8 or len(raw) != 4 + 4 * rank + math.prod(shape):
        raise ValueError(f"{path} holds {len(raw)} bytes for shape {list(shape)}; it is damaged, fetch it again")
    values = torch.from_numpy(np.frombuffer(raw, np.uint8, offset=4 + 4 * rank).reshape(shape).copy())
    return values[:, None] if rank == 3 else values
