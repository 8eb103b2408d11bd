"""Features on disk: one .npz that knows what it was made from, and is made anew when that has changed."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from kontrast.data import DataSet
from kontrast.data.identity import identity, raw
from kontrast.files import read_npz, whole_file


def key_of(encoder: nn.Module, data: DataSet, *about: object) -> str:
    """A hash of the encoder's form and weights, of the data (name, statistics, rows and labels), and of what else
    decides the features."""
    found = hashlib.blake2b(digest_size=16)
    found.update(repr((repr(encoder), data.name, data.mean, data.std, about)).encode())
    for name, tensor in encoder.state_dict().items():
        if isinstance(tensor, Tensor):
            found.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
            found.update(raw(tensor))
    for split in (data.train, data.test):
        if split is not None:
            found.update(identity(split, times=True).encode())
    return found.hexdigest()


def read(path: Path, key: str) -> tuple[Tensor, Tensor] | None:
    """Train and test features, if the file is there, whole, and of this key."""
    try:
        found = read_npz(path, "it is made anew")
        if str(found["key"]) != key:
            return None
        return torch.from_numpy(found["train"]), torch.from_numpy(found["test"])
    except (OSError, ValueError, KeyError):
        return None


def write(path: Path, key: str, train: Tensor, test: Tensor) -> None:
    """A file that is there is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        np.savez(file, key=np.array(key), train=train.numpy(), test=test.numpy())
