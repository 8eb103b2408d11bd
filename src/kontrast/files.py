"""Atomic writing, reading that reports damaged files, and JSON by the standard.

A file is written under another name beside its place, flushed to the disk, and renamed. So a kill or a full disk never
leaves half a file, and the file before stays until the new one is complete. The part that a killed writer leaves
(nobody holds its lock any more) is removed when the file is next written.

Reading checks as far as the format allows: JSON must be an object, every array of an .npz archive is read to its end,
where its CRC-32 is, and `digest` shows whether a file has changed. Pipes and devices, which may block or never end, are
not read.
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

HINTS = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "Make room there, and try again"),
    errno.EFBIG: "Choose a folder on another disk",
    **dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), "Choose a folder that may be written to"),
}
DAMAGE = (  # exceptions of zipfile and numpy for archives with flipped bits
    ValueError, OSError, EOFError, KeyError, IndexError, NotImplementedError, RuntimeError, SyntaxError, TypeError,
    MemoryError, OverflowError, struct.error, tokenize.TokenError, zlib.error, zipfile.BadZipFile,
)  # fmt: skip
RUN_AGAIN = "run its recipe again, which makes it anew from the last checkpoint, or put back a copy"
KINDS = {stat.S_IFDIR: "folder", stat.S_IFIFO: "pipe"}
ARCHIVE_END = 22  # bytes of the record at the end of a zip archive, which says how many files there are


class NotWritten(OSError):
    """A file could not be written; the message says which, why, and what to do."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(error.errno, error.strerror, str(path))

    def __str__(self) -> str:
        hint = HINTS.get(self.errno or 0, "Check the disk, and try again")
        return f"{self.filename} cannot be written: {self.strerror}. {hint}; the file before is unchanged"


class NotRegularFile(ValueError):
    """A folder, a pipe or a device instead of a file."""


@contextmanager
def whole_file(path: Path, *, previous: Path | None = None) -> Iterator[BinaryIO]:
    """A file to write to; it replaces the one at ``path`` when everything is written.

    Args:
        path: The file.
        previous: Where to keep the replaced file; it is deleted if left out.

    Returns:
        A context that gives the open file.

    Raises:
        NotWritten: It cannot be written; the file before is unchanged.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with whole_file(Path(folder, "a")) as file:
    ...         _ = file.write(b"1")
    ...     os.listdir(folder)
    ['a']
    """
    try:
        with _whole(path, previous) as file:
            yield file
    except OSError as error:
        if error.filename is not None and not str(error.filename).endswith(".part"):
            raise  # another file, read while writing this one
        raise NotWritten(path, error) from error


@contextmanager
def _whole(path: Path, previous: Path | None) -> Iterator[BinaryIO]:
    clear_leftovers(path)
    beside, open_file = _beside(path)
    with open_file as file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if previous is not None and path.exists():
                path.replace(previous)
            beside.replace(path)  # before closing, which releases its lock
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the renaming
    finally:
        os.close(folder)


@contextmanager
def staging(path: Path) -> Iterator[Path]:
    """An empty temporary folder beside ``path``, to prepare content that is moved to ``path`` when it is complete.

    Args:
        path: Where the content will be.

    Returns:
        A context that gives the folder, which is removed at its end.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with staging(Path(folder, "model")) as part:
    ...         _ = (part / "weights").write_bytes(b"1")
    ...         _ = part.rename(Path(folder, "model"))
    ...     os.listdir(folder)
    ['model']
    """
    clear_leftovers(path)
    part = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent))
    lock = os.open(part, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield part
    finally:
        shutil.rmtree(part, ignore_errors=True)
        os.close(lock)


def clear_leftovers(path: Path) -> None:
    """Remove parts of ``path`` left by writers that no longer run (a running one holds its lock).

    Args:
        path: The file or folder whose writers left parts.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, ".a.123.part").write_bytes(b"1")
    ...     clear_leftovers(Path(folder, "a"))
    ...     os.listdir(folder)
    []
    """
    for part in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        with contextlib.suppress(OSError):  # locked, or removed meanwhile
            if part.is_symlink():
                part.unlink()
            lock = os.open(part, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)  # a pipe would wait for its other end
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(part) if part.is_dir() else part.unlink()
            finally:
                os.close(lock)


def _beside(path: Path) -> tuple[Path, BinaryIO]:
    """A new file in the same folder, locked while it is open."""
    while True:
        beside = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.part")
        file = beside.open("xb")
        with contextlib.suppress(OSError):  # a file system without locks: nothing is removed there
            fcntl.flock(file, fcntl.LOCK_EX)
        if beside.exists():
            return beside, file
        file.close()  # another process removed it before it was locked


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file: at any time ``path`` is the old or the new one, never a part.

    Args:
        path: The file.
        content: Its new content.

    Raises:
        NotWritten: It cannot be written; the file before is unchanged.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomically(Path(folder, "a"), b"1")
    ...     read_regular(Path(folder, "a"))
    b'1'
    """
    with whole_file(path) as file:
        file.write(content)


def write_json(path: Path, record: Mapping[str, Any]) -> None:
    """Write a JSON file atomically.

    Args:
        path: The file.
        record: Its content (see `dump`).

    Raises:
        NotWritten: It cannot be written; the file before is unchanged.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_json(Path(folder, "a.json"), {"loss": 0.5})
    ...     read_json(Path(folder, "a.json"), "write it again")
    {'loss': 0.5}
    """
    write_atomically(path, (dump(record) + "\n").encode())


def dump(record: Any) -> str:
    """JSON by the standard: NaN and infinity become null; bytes of a file's name that are not text are escaped.

    Args:
        record: Plain values, arrays and tensors.

    Returns:
        The text, with two spaces of indent.

    >>> dump(["ü", "\\udcff"]).split()
    ['[', '"ü",', '"\\\\udcff"', ']']
    """
    text = json.dumps(finite(record), indent=2, ensure_ascii=False, allow_nan=False)
    return text.encode(errors="backslashreplace").decode()


def finite(x: Any) -> Any:
    """The same record with None for NaN and infinity, which JSON lacks, and lists for arrays and tensors.

    Args:
        x: Plain values, arrays and tensors.

    Returns:
        Plain values.

    >>> finite({"loss": float("nan"), "of": [1.0, float("inf")]})
    {'loss': None, 'of': [1.0, None]}
    """
    if isinstance(x, Mapping):
        return {str(key): finite(value) for key, value in x.items()}
    x = x.tolist() if hasattr(x, "tolist") else x  # an array, a tensor, or one number of theirs
    if isinstance(x, list | tuple):
        return [finite(value) for value in x]
    return None if isinstance(x, float) and not math.isfinite(x) else x


def expanded(path: str | os.PathLike[str], what: str = "the path") -> Path:
    """The path with ``~`` or ``~user`` replaced.

    Args:
        path: The path.
        what: What the error calls it.

    Returns:
        The path.

    Raises:
        ValueError: There is no such user.

    >>> expanded("~/photos") == Path.home() / "photos"
    True
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise ValueError(f"{what} is {quoted(os.fspath(path))}, but there is no such user; expected a path") from None


def open_regular(path: Path) -> io.BufferedReader:
    """Open a regular file for reading.

    Args:
        path: The file.

    Returns:
        The open file.

    Raises:
        NotRegularFile: It is a folder, a pipe or a device; a kind of ValueError.

    >>> open_regular(Path("/dev/zero"))
    Traceback (most recent call last):
        ...
    kontrast.files.NotRegularFile: /dev/zero is a device, not a file
    """
    return open(path, "rb", opener=_regular)


def _regular(path: str, flags: int) -> int:
    try:
        handle = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        raise (
            NotRegularFile(f"{one_line(path)} is a socket, not a file") if error.errno == errno.ENXIO else error
        ) from None
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return handle
    os.close(handle)
    raise NotRegularFile(f"{one_line(path)} is a {KINDS.get(stat.S_IFMT(mode), 'device')}, not a file")


def read_regular(path: Path) -> bytes:
    """The content of a regular file.

    Args:
        path: The file.

    Returns:
        Its bytes.

    Raises:
        NotRegularFile: It is a folder, a pipe or a device.

    >>> len(read_regular(Path(__file__))) > 0
    True
    """
    with open_regular(path) as file:
        return file.read()


def digest(path: Path) -> str:
    """SHA-256 of a file's content.

    Args:
        path: The file.

    Returns:
        64 hexadecimal digits.

    Raises:
        NotRegularFile: It is a folder, a pipe or a device.

    >>> len(digest(Path(__file__)))
    64
    """
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def changed(folder: Path, digests: Mapping[str, str]) -> list[str]:
    """Names of the files in a folder that are missing, or whose digests are not these.

    Args:
        folder: The folder.
        digests: The digest of each file by its name.

    Returns:
        The names.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomically(Path(folder) / "a", b"1")
    ...     was = digest(Path(folder) / "a")
    ...     write_atomically(Path(folder) / "a", b"2")
    ...     changed(Path(folder), {"a": was, "b": was}), changed(Path(folder), {"a": digest(Path(folder) / "a")})
    (['a', 'b'], [])
    """
    return [name for name, was in digests.items() if not (folder / name).is_file() or digest(folder / name) != was]


def read_json(path: Path, hint: str) -> dict[str, Any]:
    """Read the object in a JSON file.

    Args:
        path: The file.
        hint: The end of the error, what to do.

    Returns:
        The object.

    Raises:
        ValueError: It is damaged; the message names the file and ends with ``hint``.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomically(Path(folder, "a.json"), b"{")
    ...     read_json(Path(folder, "a.json"), "write it again")
    Traceback (most recent call last):
        ...
    ValueError: /.../a.json is damaged (Expecting property name ...); write it again
    """
    content = read_regular(path)
    try:
        value = json.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged ({error}); {hint}") from error
    if not isinstance(value, dict):
        raise ValueError(f"{path} is damaged (it holds {type(value).__name__}, expected an object); {hint}")
    return value


def npz_names(path: Path, hint: str) -> list[str]:
    """The names of the arrays in an .npz file.

    Args:
        path: The file.
        hint: The end of the error, what to do.

    Returns:
        The names.

    Raises:
        ValueError: It is damaged; the message names the file and ends with ``hint``.

    >>> import numpy as np
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/a.npz", x=np.eye(2))
    ...     npz_names(Path(folder, "a.npz"), "write it again")
    ['x']
    """
    with _archive(path, hint) as archive:
        return [member.removesuffix(".npy") for member in archive.namelist()]


def read_npz(path: Path, hint: str, *, names: Iterable[str] | None = None) -> dict[str, np.ndarray[Any, Any]]:
    """Read the arrays of an .npz file, or those of ``names`` that it has.

    Each is read to its end: numpy stops where the array's header says, so with a flipped bit there it would not reach
    the checksum. And they are counted: a flipped length in the directory can hide those that follow.

    Args:
        path: The file.
        hint: The end of the error, what to do.
        names: The arrays to read; None for all.

    Returns:
        The arrays by name.

    Raises:
        ValueError: It is damaged; the message names the file and ends with ``hint``.

    >>> import numpy as np
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/a.npz", x=np.eye(2), y=np.arange(3))
    ...     read_npz(Path(folder, "a.npz"), "write it again", names=["y"])
    {'y': array([0, 1, 2])}
    """
    import numpy as np

    arrays = {}
    selection = None if names is None else set(names)
    with _archive(path, hint) as archive:
        for member in archive.namelist():
            name = member.removesuffix(".npy")
            if selection is None or name in selection:
                with archive.open(member) as part:
                    arrays[name] = np.lib.format.read_array(part, allow_pickle=False)  # type: ignore[arg-type]
                    if part.read():
                        raise ValueError(f"{name} has more bytes than its header says")
    return arrays


@contextmanager
def _archive(path: Path, hint: str) -> Iterator[zipfile.ZipFile]:
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            file.seek(-ARCHIVE_END - len(archive.comment), os.SEEK_END)
            (count,) = struct.unpack("<H", file.read(ARCHIVE_END)[10:12])
            if count not in (len(archive.namelist()), 0xFFFF):  # that many: more than the field can say
                raise ValueError(f"it should hold {count} arrays, but has {len(archive.namelist())}")
            yield archive
    except (FileNotFoundError, NotRegularFile):
        raise
    except DAMAGE as error:
        text = one_line(str(error)[:200]) or type(error).__name__  # zipfile quotes a damaged name, kilobytes of it
        raise ValueError(f"{path} is damaged ({text}); {hint}") from error
