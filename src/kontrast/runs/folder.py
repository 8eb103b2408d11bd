"""`Folder`: a folder with files of fixed names, each of which is an attribute."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from kontrast.files import expanded


class File:
    """A file of a folder, as an attribute: its path.

    Args:
        name: The file's name, relative to the folder.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, folder: Folder, owner: type[Folder]) -> Path:
        return folder.path / self.name


@dataclass(frozen=True, init=False)
class Folder:
    """A folder with files of fixed names; it can be passed wherever a path can.

    Args:
        path: The folder, or its path; it need not exist yet.

    >>> class Notes(Folder):
    ...     first = File("first.txt")
    >>> Notes("mine").first
    PosixPath('mine/first.txt')
    """

    path: Path

    def __init__(self, path: str | os.PathLike[str]) -> None:
        object.__setattr__(self, "path", expanded(path))

    def __fspath__(self) -> str:
        return str(self.path)
