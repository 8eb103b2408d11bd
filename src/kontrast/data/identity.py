"""What inputs hold, in a few bytes: inputs of the same identity have the same rows.

| inputs | what is looked at |
|---|---|
| in memory | every byte |
| a cache file | the checksum of its images |
| image files | names and sizes, and with ``times`` when they were written: they are not read |
| others | 64 rows |

With ``whole`` image files are read, and of others every row is.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import torch
from torch import Tensor

from kontrast.data.cache import CachedImages
from kontrast.data.folder import Folder
from kontrast.data.images import CentreCrop
from kontrast.data.records import Inputs, Memory, Rows, Split

ROWS = 64


def identity(split: Split, *, times: bool = False, whole: bool = False) -> str:
    """Of a split's inputs and labels.

    Args:
        split: whose rows.
        times: two copies of a folder are not the same.
        whole: everything is read, so that rows that differ anywhere have another identity; files' names do not count.

    Returns:
        32 hexadecimal digits.

    >>> a, b = Split(Memory(torch.eye(100))), Split(Memory(torch.eye(100).flip(0).flip(1)))
    >>> identity(a) == identity(b)
    True
    >>> b.inputs.values[50, 1] = 0.5
    >>> identity(a) == identity(b)
    False
    """
    seen = hashlib.blake2b(f"{len(split)} {split.inputs.shape}".encode(), digest_size=16)
    if split.labels is not None:
        seen.update(raw(split.labels))
    seen.update(_content(split.inputs, times, whole))
    return seen.hexdigest()


def _content(inputs: Inputs, times: bool, whole: bool) -> bytes:
    seen = hashlib.blake2b(digest_size=16)
    if whole and not isinstance(inputs, Memory):
        for i in range(len(inputs)):
            seen.update(_row(inputs, i))
    elif isinstance(inputs, Rows):
        seen.update(_content(inputs.inputs, times, whole) + raw(inputs.rows))
    elif isinstance(inputs, Memory):
        seen.update(raw(inputs.values))
    elif isinstance(inputs, CachedImages):
        seen.update(inputs.header["checksum"].encode())
    elif isinstance(inputs, Folder):
        for path in inputs.paths:
            seen.update(os.fsencode(os.path.basename(path)) + b"\0" + _about(path, times))
    else:
        count = min(ROWS, len(inputs))
        crop = CentreCrop(32) if inputs.shape is None else None
        rows = torch.arange(count) * len(inputs) // max(count, 1)
        seen.update(raw(inputs.read(rows, crop, [0] * count if crop else None)))
    return seen.digest()


def _row(inputs: Inputs, index: int) -> bytes:
    """One row's content: the bytes of its file, or its values."""
    if isinstance(inputs, Rows):
        return _row(inputs.inputs, int(inputs.rows[index]))
    if isinstance(inputs, Folder):
        about = f"{inputs.channels} {inputs.crop!r}"
        return hashlib.blake2b(Path(inputs.paths[index]).read_bytes() + about.encode(), digest_size=16).digest()
    images = inputs.shape is None or len(inputs.shape) == 3
    row = inputs.read(torch.tensor([index]), *((_as_it_is, [0]) if images else ()))
    return f"{row.dtype} {list(row.shape)}".encode() + bytes(raw(row))


def _as_it_is(image: Tensor, seed: int) -> Tensor:
    """A crop that keeps all of an image, whatever its size."""
    return image


def _about(path: str, times: bool) -> bytes:
    try:
        stat = os.stat(path)
    except OSError:  # said when it is read
        return b"gone"
    return f"{stat.st_size} {stat.st_mtime_ns if times else ''}".encode()


def raw(tensor: Tensor) -> memoryview | bytes:
    """A tensor's bytes, in the order of its values."""
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().data if flat.numel() else b""
