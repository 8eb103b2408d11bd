"""Files that are whole or not there, reading that says which file is damaged, and JSON as the standard has it.

A file is written beside its place, flushed to the disk, and renamed: what a kill or a full disk cuts short is never the
file, and what was there before stays until the new one is complete. What a killed writer leaves beside it (nobody holds
its lock any more) goes when the file is next written, so it does not pile up.

What is read is checked as far as the format allows: JSON must be an object, every array of an .npz archive is read to
its end, where its CRC-32 stands, and `digest` tells a file that has changed from one that has not. A pipe or a device
in a file's place, which may never say anything or never end, is not read at all.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import glob
import hashlib
import io
import json
import math
import os
import secrets
import shutil
import stat
import struct
import tempfile
import tokenize
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from kontrast.registry import one_line, quoted

if TYPE_CHECKING:
    import numpy as np

CURES = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "Make room there, and call again"),
    errno.EFBIG: "Choose a folder on another disk",
    **dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), "Choose a folder that may be written to"),
}
DAMAGE = (  # what zipfile and numpy raise on archives with flipped bits
    ValueError, OSError, EOFError, KeyError, IndexError, NotImplementedError, RuntimeError, SyntaxError, TypeError,
    MemoryError, OverflowError, struct.error, tokenize.TokenError, zlib.error, zipfile.BadZipFile,
)  # fmt: skip
RUN_AGAIN = "run its recipe again, which makes it anew from the last checkpoint, or put back a copy"
KINDS = {stat.S_IFDIR: "folder", stat.S_IFIFO: "pipe"}
ARCHIVE_END = 22  # bytes of the record at the end of a zip archive, which says how many files there are


class NotWritten(OSError):
    """A file that could not be written: which, why, and what to do."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(error.errno, error.strerror, str(path))

    def __str__(self) -> str:
        cure = CURES.get(self.errno or 0, "See to the disk, and call again")
        return f"{self.filename} cannot be written: {self.strerror}. {cure}; what was there before is as it was"


class NoFile(ValueError):
    """A folder, a pipe or a device where a file is expected."""


@contextmanager
def whole_file(path: Path, *, previous: Path | None = None) -> Iterator[BinaryIO]:
    """A file to write to, which takes the place of the one at ``path`` when all is written.

    That one is gone then, or stays as ``previous``. If it cannot be written, that is `NotWritten`, a kind of OSError.
    """
    try:
        with _whole(path, previous) as file:
            yield file
    except OSError as error:
        if error.filename is not None and not str(error.filename).endswith(".part"):
            raise  # of another file, which was to be read for this one
        raise NotWritten(path, error) from error


@contextmanager
def _whole(path: Path, previous: Path | None) -> Iterator[BinaryIO]:
    clear_leftovers(path)
    beside, opened = _beside(path)
    with opened as file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if previous is not None and path.exists():
                path.replace(previous)
            beside.replace(path)  # before it is closed, which lets go of its lock
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the renaming itself
    finally:
        os.close(folder)


@contextmanager
def staging(path: Path) -> Iterator[Path]:
    """An empty folder beside ``path`` to prepare in what is to be moved there when it is whole; gone at the end.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with staging(Path(folder, "model")) as staged:
    ...         _ = (staged / "weights").write_bytes(b"1")
    ...         _ = staged.rename(Path(folder, "model"))
    ...     os.listdir(folder)
    ['model']
    """
    clear_leftovers(path)
    staged = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent))
    lock = os.open(staged, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield staged
    finally:
        shutil.rmtree(staged, ignore_errors=True)
        os.close(lock)


def clear_leftovers(path: Path) -> None:
    """Removes what writers of ``path`` left that are no more (links, not their ends); who writes holds its lock."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        with contextlib.suppress(OSError):  # held, or gone meanwhile
            if left.is_symlink():
                left.unlink()
            lock = os.open(left, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)  # a pipe would wait for its other end
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left) if left.is_dir() else left.unlink()
            finally:
                os.close(lock)


def _beside(path: Path) -> tuple[Path, BinaryIO]:
    """A new file in the same folder, locked while it is open."""
    while True:
        beside = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.part")
        file = beside.open("xb")
        with contextlib.suppress(OSError):  # a file system without locks: then nobody clears anything there
            fcntl.flock(file, fcntl.LOCK_EX)
        if beside.exists():
            return beside, file
        file.close()  # taken for a leftover before it was locked, and cleared


def write_atomically(path: Path, content: bytes) -> None:
    """The file at ``path`` is the old one or the new one, never a part of it."""
    with whole_file(path) as file:
        file.write(content)


def write_json(path: Path, record: Mapping[str, Any]) -> None:
    """A JSON file, atomically."""
    write_atomically(path, (dump(record) + "\n").encode())


def dump(record: Any) -> str:
    """JSON as the standard has it: NaN and infinity become null; bytes of a file's name that are no text are escaped.

    >>> dump(["ü", "\\udcff"]).split()
    ['[', '"ü",', '"\\\\udcff"', ']']
    """
    text = json.dumps(finite(record), indent=2, ensure_ascii=False, allow_nan=False)
    return text.encode(errors="backslashreplace").decode()


def finite(x: Any) -> Any:
    """The same record with None for what JSON cannot say.

    >>> finite({"loss": float("nan"), "of": [1.0, float("inf")]})
    {'loss': None, 'of': [1.0, None]}
    """
    if isinstance(x, Mapping):
        return {str(key): finite(value) for key, value in x.items()}
    if isinstance(x, list | tuple):
        return [finite(value) for value in x]
    return None if isinstance(x, float) and not math.isfinite(x) else x


def expanded(path: str | os.PathLike[str], what: str = "the path") -> Path:
    """``path`` with the ``~`` before it replaced; an error that says ``what`` it is for if there is no such user."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise ValueError(f"{what} is {quoted(os.fspath(path))}, but there is no such user; expected a path") from None


def open_regular(path: Path) -> io.BufferedReader:
    """A file to read; what is none, but a folder, a pipe or a device, is `NoFile`, a kind of ValueError.

    >>> open_regular(Path("/dev/zero"))
    Traceback (most recent call last):
        ...
    kontrast.files.NoFile: /dev/zero is a device, no file
    """
    return open(path, "rb", opener=_regular)


def _regular(path: str, flags: int) -> int:
    try:
        handle = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        raise (NoFile(f"{one_line(path)} is a socket, no file") if error.errno == errno.ENXIO else error) from None
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return handle
    os.close(handle)
    raise NoFile(f"{one_line(path)} is a {KINDS.get(stat.S_IFMT(mode), 'device')}, no file")


def read_regular(path: Path) -> bytes:
    """The content of a file that is one (see `open_regular`)."""
    with open_regular(path) as file:
        return file.read()


def digest(path: Path) -> str:
    """SHA-256 of a file's content, in hexadecimal."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def changed(folder: Path, digests: Mapping[str, str]) -> list[str]:
    """Which of the files in a folder are gone, or no longer have the digests they had, by their names.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomically(Path(folder) / "a", b"1")
    ...     was = digest(Path(folder) / "a")
    ...     write_atomically(Path(folder) / "a", b"2")
    ...     changed(Path(folder), {"a": was, "b": was}), changed(Path(folder), {"a": digest(Path(folder) / "a")})
    (['a', 'b'], [])
    """
    return [name for name, was in digests.items() if not (folder / name).is_file() or digest(folder / name) != was]


def read_json(path: Path, cure: str) -> dict[str, Any]:
    """The object in a JSON file; if it is damaged, an error that names it and says what to do."""
    content = read_regular(path)
    try:
        found = json.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged ({error}); {cure}") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path} is damaged (it holds {type(found).__name__}, expected an object); {cure}")
    return found


def npz_names(path: Path, cure: str) -> list[str]:
    """The names of the arrays in an .npz file."""
    with _archive(path, cure) as archive:
        return [member.removesuffix(".npy") for member in archive.namelist()]


def read_npz(path: Path, cure: str, *, names: Iterable[str] | None = None) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of an .npz file, or those of the ``names`` that it has; if it is damaged, an error that names it.

    Each is read to its end: numpy alone stops where the array's head says, and where a bit has flipped there, never
    comes to the checksum. And they are counted: a flipped length in the directory can hide those that follow.
    """
    import numpy as np

    wanted = None if names is None else set(names)
    found = {}
    with _archive(path, cure) as archive:
        for member in archive.namelist():
            name = member.removesuffix(".npy")
            if wanted is None or name in wanted:
                with archive.open(member) as part:
                    found[name] = np.lib.format.read_array(part, allow_pickle=False)  # type: ignore[arg-type]
                    if part.read():
                        raise ValueError(f"{name} has more bytes than its head says")
    return found


@contextmanager
def _archive(path: Path, cure: str) -> Iterator[zipfile.ZipFile]:
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            file.seek(-ARCHIVE_END - len(archive.comment), os.SEEK_END)
            (count,) = struct.unpack("<H", file.read(ARCHIVE_END)[10:12])
            if count not in (len(archive.namelist()), 0xFFFF):  # that many: more than the field can say
                raise ValueError(f"it should hold {count} arrays, and {len(archive.namelist())} are found")
            yield archive
    except (FileNotFoundError, NoFile):
        raise
    except DAMAGE as error:
        said = one_line(str(error)[:200]) or type(error).__name__  # zipfile quotes a damaged name, kilobytes of it
        raise ValueError(f"{path} is damaged ({said}); {cure}") from error
