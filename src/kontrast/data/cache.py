"""Decoded once, mapped ever after: the images of a folder at one size, in one file.

    magic 8 bytes | header's place 8, length 8, CRC-32 8 | zeros to 4096 | uint8 [N, C, H, W] | header (JSON)

The header (written last, when all is known) holds the version, the shape, a fingerprint of the folder (every file's
name, size and time of change, and how the images were made), the files that were skipped, a checksum of the data, and
the time that the file was written.
It is checked on every opening. The data are checked when asked for, and when the file's own time of change is not the
one it was given when written (it was copied or touched); a cache that does not hold is made anew, never trusted. It is
written beside its place and renamed into it, so a reader sees the whole of it or nothing, and two writers do no harm.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import struct
import tempfile
import time
import warnings
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kontrast.data.records import Crop, each_cropped

MAGIC = b"KONTRIMG"
VERSION = 1
PAGE = 4096
CHUNK = 1 << 24


class CacheError(ValueError):
    """A cache file that is damaged, of another version, or of another folder."""


class CachedImages:
    """Images ``[N, C, H, W]`` in a cache file, memory-mapped: processes share its pages, and reading copies rows only.

    ``fingerprint`` is what the images were made from; None takes whatever the file holds.

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
            raise CacheError(f"{path} was made from other files, or at another size; the folder has changed since")
        self._shape = tuple(self.header["shape"])
        changed = os.stat(self.path).st_mtime_ns
        if verify or changed // 1000 != self.header["written"] // 1000:  # some file systems keep microseconds
            self.verify()
        self._rows = self._map()

    def _map(self) -> np.ndarray[Any, np.dtype[np.uint8]]:
        count = self.header["count"]
        return np.memmap(self.path, np.uint8, "r", PAGE, (count, *self._shape))

    def __getstate__(self) -> dict[str, Any]:  # a worker maps the file itself; the rows are not sent to it
        return {**self.__dict__, "_rows": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._rows = self._map()

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"CachedImages({self.path.name!r}, {len(self)} × {self.shape})"

    @property
    def shape(self) -> tuple[int, ...]:
        """(C, H, W)."""
        return self._shape

    @property
    def skipped(self) -> list[tuple[str, str]]:
        """The files that could not be read when it was made, with the reasons."""
        return [(os.fsdecode(bytes.fromhex(name)), reason) for name, reason in self.header["skipped"]]

    def read(self, indices: Tensor, crop: Crop | None = None, seeds: Sequence[int] | None = None) -> Tensor:
        """Rows by index, copied out of the file; each one cropped if a crop is given."""
        rows = torch.from_numpy(np.asarray(self._rows[indices.numpy()]))
        return rows if crop is None else each_cropped(rows, crop, seeds)

    def verify(self) -> None:
        """Reads all data and compares their checksum; a `CacheError` if they are not what was written."""
        digest = hashlib.blake2b(digest_size=16)
        with self.path.open("rb") as file:
            file.seek(PAGE)
            left = self.header["count"] * math.prod(self.shape)
            while part := file.read(min(CHUNK, left)):
                digest.update(part)
                left -= len(part)
        if digest.hexdigest() != self.header["checksum"]:
            raise CacheError(f"the data of {self.path} are not what was written; remove the file to make it anew")
        with contextlib.suppress(OSError):  # so that the next opening need not read all of it, if we may touch it
            os.utime(self.path, ns=(self.header["written"], self.header["written"]))


def open_or_write(path: Path, fingerprint: str, write: Callable[[], None], *, verify: bool = False) -> CachedImages:
    """The cache at ``path`` if it holds and was made from ``fingerprint``; else ``write()`` makes it, and it is opened.

    A damaged file is said to be so; one that is merely out of date is replaced without a word.
    """
    try:
        return CachedImages(path, fingerprint=fingerprint, verify=verify)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        raise ValueError(
            f"the cache {path} cannot be opened ({error.strerror or error}); expected a file that may be read. "
            "Remove it, or name another folder by cache=…"
        ) from error
    except CacheError as error:
        if "made from other files" not in str(error):
            warnings.warn(f"{error} (made anew now)", UserWarning, stacklevel=2)
    write()
    return CachedImages(path, fingerprint=fingerprint)


def fingerprint(folder: Path, names: Iterable[str], **made: Any) -> str:
    """A hash of each file's name, size and time of change below ``folder``, and of how the images are ``made``.

    >>> fingerprint(Path("."), [], size=64) == fingerprint(Path("."), [], size=32)
    False
    """
    digest = hashlib.blake2b(json.dumps([VERSION, made], sort_keys=True).encode(), digest_size=16)
    for name in names:
        try:
            status = os.stat(folder / name)
            seen = f"{status.st_size} {status.st_mtime_ns}"
        except OSError:
            seen = "gone"
        digest.update(os.fsencode(name) + b"\0" + seen.encode() + b"\n")
    return digest.hexdigest()


def write_cache(
    path: Path,
    chunks: Iterable[Tensor],
    *,
    shape: tuple[int, int, int],
    fingerprint: str,
    skipped: Callable[[], Sequence[tuple[str, str]]] = list,
) -> None:
    """Writes images ``[n, C, H, W]`` as they come. ``skipped()`` is asked at the end, when it is known."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise ValueError(
            f"no cache file can be written in {path.parent} ({error.strerror or error}); expected a folder that is "
            "there or can be made, and may be written to. Name another by cache=…"
        ) from error
    count, digest, written = 0, hashlib.blake2b(digest_size=16), time.time_ns()
    try:
        with os.fdopen(handle, "wb") as file:
            file.seek(PAGE)
            for chunk in chunks:
                if chunk.dtype != torch.uint8 or tuple(chunk.shape[1:]) != shape:
                    raise ValueError(f"a chunk is {chunk.dtype} {list(chunk.shape)}; expected uint8 [n, *{shape}]")
                rows = chunk.contiguous().numpy().tobytes()
                file.write(rows)
                digest.update(rows)
                count += len(chunk)
            record = {"version": VERSION, "count": count, "shape": shape, "fingerprint": fingerprint}
            record |= {"checksum": digest.hexdigest(), "written": written}
            # Names need not be text; hexadecimal carries any.
            record["skipped"] = [(os.fsencode(name).hex(), reason) for name, reason in skipped()]
            header = json.dumps(record).encode()
            place = file.tell()
            file.write(header)
            file.seek(0)
            file.write(MAGIC + struct.pack("<QQQ", place, len(header), zlib.crc32(header)))
            file.flush()
            os.fsync(file.fileno())
        os.utime(temporary, ns=(written, written))
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read_header(path: Path) -> dict[str, Any]:
    """The header of a cache file; a `CacheError` if it or the file's length is not as written."""
    with path.open("rb") as file:
        start = file.read(len(MAGIC) + 24)
        if len(start) < len(MAGIC) + 24 or not start.startswith(MAGIC):
            raise CacheError(f"{path} is no cache of images; remove it or name another folder for the cache")
        place, length, crc = struct.unpack("<QQQ", start[len(MAGIC) :])
        file.seek(place)
        header = file.read(length)
        ended = file.read(1) == b""
    if len(header) != length or zlib.crc32(header) != crc or not ended:
        raise CacheError(f"{path} is damaged or incomplete; remove it to make it anew")
    record: dict[str, Any] = json.loads(header)
    if record["version"] != VERSION:
        raise CacheError(
            f"{path} has version {record['version']}, this is version {VERSION}; remove it to make it anew"
        )
    if place != PAGE + record["count"] * math.prod(record["shape"]):
        raise CacheError(f"{path} does not hold as much as its header says; remove it to make it anew")
    return record
