"""The cache: the images of a folder, decoded once at one size, in one file.

    magic 8 bytes | header's place 8, length 8, CRC-32 8 | zeros to 4096 | uint8 [N, C, H, W]
                  | CRC-32 of each image, uint32 [N] | header (JSON)

The header (written last) holds the version, the shape, a fingerprint of the folder (name, size and modification time of
every file, and how the images were made), the skipped files, a checksum of the data, and the time of writing. It is
checked on every opening, and each image is checked against its CRC-32 whenever it is read, so that damage by a failing
disk never reaches training. All data are checked on request, and when the file's modification time is not the recorded
one (it was copied or touched, or an image was damaged). A damaged cache is written again, never trusted. It is written
under a temporary name and renamed, so a reader sees a complete file or none, and two writers do no harm.

Images are read by system calls and not through a memory map: if the file is truncated while in use, a read raises an
error that names it, where a memory map would end the process by a signal.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import struct
import time
import warnings
import weakref
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kontrast.data.dataset import crop_each
from kontrast.data.images import Crop
from kontrast.files import clear_leftovers, whole_file

MAGIC = b"KONTRIMG"
VERSION = 2
PAGE = 4096
CHUNK = 1 << 24


class CacheError(ValueError):
    """A cache file that is damaged, of another version, or of another folder."""


class OutOfDate(CacheError):
    """A cache file that is intact, but of another version or of another folder."""


class CachedImages:
    """Images ``[N, C, H, W]`` in a cache file, each checked when it is read; processes share the system's page cache.

    Args:
        path: the file.
        fingerprint: the `fingerprint` that the file must have; None accepts any.
        verify: whether all data are read and checked when the file is opened.

    Raises:
        CacheError: the file is damaged.
        OutOfDate: the file has another fingerprint or version.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rows = torch.arange(24, dtype=torch.uint8).reshape(2, 3, 2, 2)
    ...     write_cache(Path(folder) / "two.kimg", iter([rows]), shape=(3, 2, 2), fingerprint="abc")
    ...     images = CachedImages(Path(folder) / "two.kimg", fingerprint="abc")
    ...     images.read(torch.tensor([1]))[0, 0]
    tensor([[12, 13],
            [14, 15]], dtype=torch.uint8)
    """

    def __init__(self, path: str | os.PathLike[str], *, fingerprint: str | None = None, verify: bool = False) -> None:
        self.path = Path(path)
        self.header = read_header(self.path)
        if fingerprint is not None and self.header["fingerprint"] != fingerprint:
            raise OutOfDate(f"{path} was made from other files, or at another size: the folder has changed since")
        modified = os.stat(self.path).st_mtime_ns
        if verify or modified // 1000 != self.header["written"] // 1000:  # some file systems keep microseconds
            self.verify()
        self._open()

    def _open(self) -> None:
        self.shape: tuple[int, int, int] = tuple(self.header["shape"])
        self._file = self.path.open("rb", buffering=0)
        weakref.finalize(self, self._file.close)
        self._bytes = math.prod(self.shape)
        table = os.pread(self._file.fileno(), 4 * len(self), PAGE + len(self) * self._bytes)
        if len(table) != 4 * len(self) or zlib.crc32(table) != self.header["sums"]:
            raise CacheError(f"the checksums of {self.path} are damaged. Remove the file, and it is written again")
        self._sums = np.frombuffer(table, "<u4")

    def __getstate__(self) -> dict[str, Any]:  # a worker opens the file itself
        return {"path": self.path, "header": self.header}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()

    def __len__(self) -> int:
        return int(self.header["count"])

    def __repr__(self) -> str:
        return f"CachedImages({self.path.name!r}, {len(self)} × {self.shape})"

    @property
    def skipped(self) -> list[tuple[str, str]]:
        """The files that could not be read when the cache was written, with the reasons."""
        return [(os.fsdecode(bytes.fromhex(name)), reason) for name, reason in self.header["skipped"]]

    def read(self, indices: Tensor, crop: Crop | None = None, seeds: Sequence[int] | None = None) -> Tensor:
        """Read rows by number (see `Inputs.read`); raises a `CacheError` if an image is damaged."""
        numbers = indices.tolist()
        rows = torch.empty(len(numbers), *self.shape, dtype=torch.uint8)
        to, size, handle = rows.view(-1).numpy().data, self._bytes, self._file.fileno()
        for place, i in enumerate(numbers):
            i = range(len(self))[i]  # negative ones from the end; others are an IndexError
            part = to[place * size : (place + 1) * size]
            if os.preadv(handle, [part], PAGE + i * size) != size or zlib.crc32(part) != self._sums[i]:
                with contextlib.suppress(OSError):  # so that the next opening checks all of it
                    os.utime(self.path)
                raise CacheError(
                    f"image {i} in the cache {self.path} is damaged. Run again: the cache is checked "
                    "and written again (or remove the file)"
                )
        return rows if crop is None else crop_each(rows, crop, seeds)

    def verify(self) -> None:
        """Read all data and compare their checksum; raises a `CacheError` if they are damaged."""
        digest = hashlib.blake2b(digest_size=16)
        with self.path.open("rb") as file:
            file.seek(PAGE)
            remaining = len(self) * math.prod(self.header["shape"])
            while part := file.read(min(CHUNK, remaining)):
                digest.update(part)
                remaining -= len(part)
        if digest.hexdigest() != self.header["checksum"]:
            raise CacheError(f"the data of {self.path} are damaged. Remove the file, and it is written again")
        with contextlib.suppress(OSError):  # so that the next opening need not read all of it, if we may touch it
            os.utime(self.path, ns=(self.header["written"], self.header["written"]))


def open_or_write(path: Path, fingerprint: str, write: Callable[[], None], *, verify: bool = False) -> CachedImages:
    """Open the cache at ``path`` if it is intact and has this fingerprint; else call ``write()`` and open it.

    A damaged file gives a warning; one that is only out of date is replaced silently.
    """
    clear_leftovers(path)  # left by a killed writer; they can be large
    try:
        return CachedImages(path, fingerprint=fingerprint, verify=verify)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        raise ValueError(
            f"the cache {path} cannot be opened ({error.strerror or error}): must be a readable file. "
            "Remove it, or set another folder by cache=…"
        ) from error
    except CacheError as error:
        if not isinstance(error, OutOfDate):
            warnings.warn(f"{error} (it is written again now)", UserWarning, stacklevel=2)
    write()
    return CachedImages(path, fingerprint=fingerprint)


def fingerprint(folder: Path, names: Iterable[str], **settings: Any) -> str:
    """Hash the name, size and modification time of each file below ``folder``, and how images are made (``settings``).

    >>> fingerprint(Path("."), [], size=64) == fingerprint(Path("."), [], size=32)
    False
    """
    digest = hashlib.blake2b(json.dumps([VERSION, settings], sort_keys=True).encode(), digest_size=16)
    for name in names:
        try:
            status = os.stat(folder / name)
            state = f"{status.st_size} {status.st_mtime_ns}"
        except OSError:
            state = "gone"
        digest.update(os.fsencode(name) + b"\0" + state.encode() + b"\n")
    return digest.hexdigest()


def write_cache(
    path: Path,
    chunks: Iterable[Tensor],
    *,
    shape: tuple[int, int, int],
    fingerprint: str,
    skipped: Callable[[], Sequence[tuple[str, str]]] = list,
) -> None:
    """Write chunks of images ``[n, C, H, W]``. ``skipped()`` is called at the end, when all chunks were read."""
    sums: list[int] = []
    count, digest, now = 0, hashlib.blake2b(digest_size=16), time.time_ns()
    with contextlib.ExitStack() as stack:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = stack.enter_context(whole_file(path))
        except OSError as error:
            raise ValueError(
                f"no cache file can be written in {path.parent} ({error.strerror or error}): must be a writable "
                "folder. Set another by cache=…"
            ) from error
        file.seek(PAGE)
        for chunk in chunks:
            if chunk.dtype != torch.uint8 or tuple(chunk.shape[1:]) != shape:
                raise ValueError(f"chunk of {chunk.dtype} {list(chunk.shape)}: must be uint8 [n, *{shape}]")
            rows = chunk.contiguous().numpy()
            file.write(rows.data)
            digest.update(rows.data)
            sums += (zlib.crc32(row.data) for row in rows)
            count += len(chunk)
        table = np.array(sums, "<u4").tobytes()
        file.write(table)
        record = {"version": VERSION, "count": count, "shape": shape, "fingerprint": fingerprint}
        record |= {"checksum": digest.hexdigest(), "sums": zlib.crc32(table), "written": now}
        # Names need not be text; hexadecimal carries any.
        record["skipped"] = [(os.fsencode(name).hex(), reason) for name, reason in skipped()]
        header = json.dumps(record).encode()
        place = file.tell()
        file.write(header)
        file.seek(0)
        file.write(MAGIC + struct.pack("<QQQ", place, len(header), zlib.crc32(header)))
        file.flush()
        os.utime(file.fileno(), ns=(now, now))


def read_header(path: Path) -> dict[str, Any]:
    """Read the header of a cache file; raises a `CacheError` if it is damaged or the file has another length."""
    with path.open("rb") as file:
        start = file.read(len(MAGIC) + 24)
        if len(start) < len(MAGIC) + 24 or not start.startswith(MAGIC):
            raise CacheError(f"{path} is not a cache of images. Remove it, or set another folder by cache=…")
        place, length, crc = struct.unpack("<QQQ", start[len(MAGIC) :])
        file.seek(place)
        header = file.read(length)
        is_at_end = file.read(1) == b""
    if len(header) != length or zlib.crc32(header) != crc or not is_at_end:
        raise CacheError(f"{path} is damaged or incomplete. Remove it, and it is written again")
    record: dict[str, Any] = json.loads(header)
    if record["version"] != VERSION:
        raise OutOfDate(
            f"{path} has version {record['version']}, must be {VERSION}. Remove it, and it is written again"
        )
    if place != PAGE + record["count"] * (math.prod(record["shape"]) + 4):
        raise CacheError(f"{path} is shorter or longer than its header says. Remove it, and it is written again")
    return record
