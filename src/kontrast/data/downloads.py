"""Downloads with a checksum, and archives that unpack inside one folder only.

`download` hashes a file while it is written under a temporary name and moves it to its place only if the checksum is
the published one; any other file is deleted. So plain http is safe too: nothing reads or unpacks a file that a server
or a proxy has changed. Checksums are the publishers' or torchvision's, mostly MD5. To make *another* file with a given
MD5 (a second preimage) is not feasible; MD5's known weakness, two files made together, does not help here.

`unpack` accepts only regular files and folders whose names stay below the target folder. It refuses the whole archive
for absolute names, ``..``, backslashes and drives, links, devices and pipes, duplicate names, and for more bytes or
files than allowed (a few kilobytes can unpack to terabytes). Bytes are counted as they are written, whatever the
archive declares. An archive is unpacked into a temporary folder first and moved when it is complete, so a refused or
damaged archive, or a kill, leaves the target folder unchanged. Existing files with the same names are replaced.
"""

from __future__ import annotations

import hashlib
import http.client
import io
import tarfile
import urllib.request
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any
from urllib.parse import urlsplit

from kontrast.files import staging, whole_file

CHUNK = 1 << 20
WAIT = 60.0  # seconds without a byte
MOST_BYTES = 8 << 30  # the largest of the sets here unpacks to 3 GB


class DownloadError(ValueError):
    """A file that could not be downloaded, or that is not the published one."""


def download(url: str, path: Path, *, checksum: str, most_bytes: int = MOST_BYTES) -> Path:
    """Download a file unless it is there already.

    Args:
        url: http:// or https://
        path: where the file belongs.
        checksum: ``"md5:…"`` or ``"sha256:…"``.
        most_bytes: the download stops with an error beyond so many bytes.

    Returns:
        ``path``.

    Raises:
        DownloadError: the server sends another file, or breaks off.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     here = Path(folder, "a.txt")
    ...     _ = here.write_text("first")
    ...     known = "sha256:a7937b64b8caa58f03721bb6bacf5c78cb235febe0e70b1b84cd99541461a08e"
    ...     download("http://nowhere.invalid/a.txt", here, checksum=known) == here  # it is there: no request
    True
    """
    algorithm, published = _parse_checksum(checksum)
    if path.is_file() and matches(path, checksum):
        return path
    if urlsplit(url).scheme not in ("http", "https"):
        raise DownloadError(f"{url} is not a web address: must begin with http:// or https://")
    digest, size = hashlib.new(algorithm, usedforsecurity=False), 0
    path.parent.mkdir(parents=True, exist_ok=True)
    request = urllib.request.Request(url, headers={"User-Agent": "kontrast"})  # noqa: S310 - the addresses stand in data.sets
    try:
        with urllib.request.urlopen(request, timeout=WAIT) as answer, whole_file(path) as file:  # noqa: S310
            with _bar(answer.length, path.name) as bar:
                while part := answer.read(CHUNK):
                    size += len(part)
                    if size > most_bytes:
                        raise DownloadError(f"{url} sends more than {most_bytes:,} bytes. It was deleted")
                    digest.update(part)
                    file.write(part)
                    bar.update(len(part))
            if digest.hexdigest() != published:
                raise DownloadError(
                    f"{url} sent {size:,} bytes with the {algorithm} {digest.hexdigest()}; must be {published}. It is "
                    "not the published file and was deleted. Try again later, or from another network"
                )
    except http.client.HTTPException as error:
        raise DownloadError(f"{url} broke off ({type(error).__name__}: {error}). Try again") from error
    return path


def matches(content: Path | bytes, checksum: str) -> bool:
    """Whether a file, or bytes read from one, have the checksum.

    >>> known = "md5:8b04d5e3775d298e78455efc5ca404d5"
    >>> matches(b"first", known), matches(b"other", known)
    (True, False)
    """
    algorithm, published = _parse_checksum(checksum)
    with io.BytesIO(content) if isinstance(content, bytes) else content.open("rb") as file:
        digest = hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False))
    return digest.hexdigest() == published


def _parse_checksum(checksum: str) -> tuple[str, str]:
    algorithm, _, digits = checksum.partition(":")
    if len(digits) != {"md5": 32, "sha256": 64}.get(algorithm):
        raise ValueError(f"checksum={checksum!r}: must be md5:… or sha256:… with its hexadecimal digits")
    return algorithm, digits.lower()


def _bar(length: int | None, name: str) -> Any:
    """A progress bar on standard error."""
    from torch.hub import tqdm  # type: ignore[attr-defined]  # tqdm's where that is installed, else a plain one of torch's

    return tqdm(total=length, unit="B", unit_scale=True, desc=name)


MOST_FILES = 1_000_000


class ArchiveError(ValueError):
    """An archive that is damaged, or that holds members which are not allowed."""


def unpack(archive: Path, folder: Path, *, most_bytes: int = MOST_BYTES, most_files: int = MOST_FILES) -> list[str]:
    """Unpack an archive into a folder.

    Args:
        archive: zip, tar, tar.gz, …
        folder: where to unpack; created if missing.
        most_bytes: the most bytes of all members.
        most_files: the most members.

    Returns:
        The names at the top level of the archive.

    Raises:
        ArchiveError: the archive is damaged, or holds members that are not allowed; nothing is unpacked then.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with zipfile.ZipFile(f"{place}/pair.zip", "w") as archive:
    ...         archive.writestr("pair/a.txt", "first")
    ...     unpack(Path(place, "pair.zip"), Path(place)), Path(place, "pair", "a.txt").read_text()
    (['pair'], 'first')
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with staging(folder / archive.name) as staged:
            inside = staged / "new"
            inside.mkdir()
            _write(archive, inside, most_bytes, most_files)
            return _move(inside, folder, staged / "old")
    except (FileExistsError, NotADirectoryError) as error:
        raise ArchiveError(f"{archive} holds a name twice ({error.filename}). It is not unpacked") from error
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
        # RuntimeError is zipfile's for a password, NotImplementedError for a compression that it does not know.
        raise ArchiveError(f"{archive} cannot be unpacked ({error}). Remove it and download it again") from error


def _write(archive: Path, inside: Path, most_bytes: int, most_files: int) -> None:
    """Write all members below a new folder; raises at the first that is not allowed."""
    remaining, files = most_bytes, 0
    for name, size, content in _members(archive):
        files += 1
        if files > most_files:
            raise ArchiveError(f"{archive} holds more than {most_files:,} files. It is not unpacked")
        place = inside.joinpath(*_parts(archive, name))
        if size > remaining:
            raise _too_large(archive, most_bytes)
        if content is None:
            place.mkdir(parents=True, exist_ok=True)
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        with content, place.open("xb") as file:
            while part := content.read(CHUNK):
                remaining -= len(part)
                if remaining < 0:
                    raise _too_large(archive, most_bytes)
                file.write(part)


def _members(archive: Path) -> Iterator[tuple[str, int, IO[bytes] | None]]:
    """Name, declared size, and content (None for a folder) of each member, in order."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as packed:
            for entry in packed.infolist():
                kind = entry.external_attr >> 28  # of the mode that Unix keeps there
                if kind not in (0, 0o04, 0o10):
                    raise _not_allowed(archive, entry.filename, "a link" if kind == 0o12 else "a special file")
                # The name as it is stored: zipfile cuts it at a zero byte, and turns some separators.
                yield entry.orig_filename, entry.file_size, None if entry.is_dir() else packed.open(entry)
        return
    with tarfile.open(archive) as tar:
        for member in tar:
            if not (member.isreg() or member.isdir()):
                raise _not_allowed(
                    archive, member.name, "a link" if member.issym() or member.islnk() else "a special file"
                )
            yield member.name, member.size, None if member.isdir() else tar.extractfile(member)


def _parts(archive: Path, name: str) -> tuple[str, ...]:
    """A member's name as path parts; raises if it leads out of the folder."""
    parts = PurePosixPath(name).parts
    if name.startswith("/") or ".." in parts or any(sign in name for sign in "\\\0") or name[1:2] == ":":
        raise _not_allowed(archive, name, "a name that leads out of the folder")
    return parts


def _move(inside: Path, folder: Path, old: Path) -> list[str]:
    """Move the unpacked files to their place, and existing files aside (they are deleted with the temporary folder)."""
    old.mkdir()
    names = sorted(entry.name for entry in inside.iterdir())
    for name in names:
        if (folder / name).exists() or (folder / name).is_symlink():
            (folder / name).rename(old / name)
        (inside / name).rename(folder / name)
    return names


def _not_allowed(archive: Path, name: str, what: str) -> ArchiveError:
    return ArchiveError(
        f"{archive} holds {what}: {name!r}; members must be regular files and folders. It is not unpacked"
    )


def _too_large(archive: Path, most: int) -> ArchiveError:
    return ArchiveError(f"{archive} unpacks to more than {most:,} bytes. It is not unpacked")
