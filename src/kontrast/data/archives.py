"""Archives (zip, tar, tar.gz, …), unpacked inside one folder and nowhere else.

An archive may name any path, and links that later names lead through. Here only plain files and folders are taken, by
names that stay below the folder; anything else refuses the whole archive: absolute names, ``..``, backslashes and
drives, links, devices and pipes, a name twice, and more bytes or files than are allowed (a few kilobytes can unfold to
terabytes). Sizes are counted as they are written, whatever the archive says of itself.

All of it is unpacked beside its place first and moved there when it is whole: an archive that is refused or damaged, or
a kill, leaves the folder as it was. What lay there by the same name is replaced.
"""

from __future__ import annotations

import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from kontrast.files import staging

MOST_BYTES = 8 << 30  # the largest of the sets here unfolds to 3 GB
MOST_FILES = 1_000_000
CHUNK = 1 << 20


class ArchiveError(ValueError):
    """An archive that is damaged, or holds what does not belong in one."""


def unpack(archive: Path, folder: Path, *, most_bytes: int = MOST_BYTES, most_files: int = MOST_FILES) -> list[str]:
    """Unpacks an archive into a folder and gives the names of what then lies there, those at its top.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with zipfile.ZipFile(f"{place}/pair.zip", "w") as made:
    ...         made.writestr("pair/a.txt", "first")
    ...     unpack(Path(place, "pair.zip"), Path(place)), Path(place, "pair", "a.txt").read_text()
    (['pair'], 'first')
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with staging(folder / archive.name) as staged:
            inside = staged / "new"
            inside.mkdir()
            _write(archive, inside, most_bytes, most_files)
            return _moved(inside, folder, staged / "old")
    except (FileExistsError, NotADirectoryError) as error:
        raise ArchiveError(f"{archive} holds a name twice ({error.filename}); it is not unpacked") from error
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
        # RuntimeError is zipfile's for a password, NotImplementedError for a compression that it does not know.
        raise ArchiveError(f"{archive} cannot be unpacked ({error}); remove it and get it again") from error


def _write(archive: Path, inside: Path, most_bytes: int, most_files: int) -> None:
    """All members below a new folder; an error at the first that does not belong there."""
    left, files = most_bytes, 0
    for name, declared, content in _members(archive):
        files += 1
        if files > most_files:
            raise ArchiveError(f"{archive} holds more than {most_files:,} files; it is not unpacked")
        place = inside.joinpath(*_parts(archive, name))
        if declared > left:
            raise _too_large(archive, most_bytes)
        if content is None:
            place.mkdir(parents=True, exist_ok=True)
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        with content, place.open("xb") as file:
            while part := content.read(CHUNK):
                left -= len(part)
                if left < 0:
                    raise _too_large(archive, most_bytes)
                file.write(part)


def _members(archive: Path) -> Iterator[tuple[str, int, IO[bytes] | None]]:
    """Name, size as declared, and content (None of a folder) of each member, in its order."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as packed:
            for entry in packed.infolist():
                kind = entry.external_attr >> 28  # of the mode that Unix keeps there
                if kind not in (0, 0o04, 0o10):
                    raise _strange(archive, entry.filename, "a link" if kind == 0o12 else "no plain file")
                # The name as it is stored: zipfile cuts it at a zero byte, and turns some separators.
                yield entry.orig_filename, entry.file_size, None if entry.is_dir() else packed.open(entry)
        return
    with tarfile.open(archive) as tar:
        for member in tar:
            if not (member.isreg() or member.isdir()):
                raise _strange(archive, member.name, "a link" if member.issym() or member.islnk() else "no plain file")
            yield member.name, member.size, None if member.isdir() else tar.extractfile(member)


def _parts(archive: Path, name: str) -> tuple[str, ...]:
    """A member's name as folders and a file below; an error if it leads elsewhere."""
    parts = PurePosixPath(name).parts
    if name.startswith("/") or ".." in parts or any(sign in name for sign in "\\\0") or name[1:2] == ":":
        raise _strange(archive, name, "a name that leads out of the folder")
    return parts


def _moved(inside: Path, folder: Path, old: Path) -> list[str]:
    """Puts what was unpacked in its place, and what was there aside (it goes with the rest)."""
    old.mkdir()
    names = sorted(entry.name for entry in inside.iterdir())
    for name in names:
        if (folder / name).exists() or (folder / name).is_symlink():
            (folder / name).rename(old / name)
        (inside / name).rename(folder / name)
    return names


def _strange(archive: Path, name: str, what: str) -> ArchiveError:
    return ArchiveError(f"{archive} holds {what}: {name!r}; expected plain files and folders. It is not unpacked")


def _too_large(archive: Path, most: int) -> ArchiveError:
    return ArchiveError(f"{archive} unfolds to more than {most:,} bytes; it is not unpacked")
