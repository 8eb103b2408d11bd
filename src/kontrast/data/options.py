"""How a data set is to be loaded: what every source understands, whether named, a folder or an array."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kontrast.files import expanded


def default_root() -> Path:
    """Where data sets lie: ``$KONTRAST_DATA``, else ``~/.cache/kontrast``."""
    given = os.environ.get("KONTRAST_DATA")
    return expanded(given, "KONTRAST_DATA") if given else Path.home() / ".cache" / "kontrast"


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to load.

    ``root`` is where named sets lie (`default_root`) and ``download`` whether they may be fetched. ``size`` brings
    every image to that many pixels square, ``channels`` makes it RGB (3) or grey (1); None leaves images as they are,
    and makes those of folders RGB. ``labelled=False`` drops labels and takes a folder's subfolders for mere folders,
    not classes; ``labelled=True`` insists on labels. ``memory`` is how many bytes of images are held in memory,
    ``cache`` the folder for cache files (True: one below ``root``), ``verify`` whether a cache's data are checked on
    opening. ``check`` is how closely files are looked at beforehand: names only, headers and ends, or decoded in full.
    ``max_bad`` is how many unreadable files are skipped before it stops: a number, or a share below 1; None is 1 % but
    at least 10.

    >>> Options(size=64).bad_limit(5000), Options(max_bad=0).bad_limit(5000), Options(max_bad=0.5).bad_limit(5000)
    (50, 0, 2500)
    """

    root: Path | None = None
    download: bool = True
    size: int | None = None
    channels: int | None = None
    labelled: bool | None = None
    memory: int = 2_000_000_000
    cache: bool | str | os.PathLike[str] | None = None
    verify: bool = False
    check: Literal["names", "headers", "full"] = "headers"
    max_bad: int | float | None = None

    def __post_init__(self) -> None:
        if self.size is not None and (not isinstance(self.size, int) or self.size < 1):
            raise ValueError(f"size is {self.size!r}; expected a number of pixels, 1 or more, or None")
        if self.channels not in (None, 1, 3):
            raise ValueError(
                f"channels is {self.channels!r}; expected 3 (RGB), 1 (grey), or None for what the data have"
            )
        if self.labelled not in (None, True, False):
            raise ValueError(f"labelled is {self.labelled!r}; expected True, False, or None for what the data have")
        if not isinstance(self.memory, int | float) or self.memory < 0:
            raise ValueError(f"memory is {self.memory!r}; expected a number of bytes, 0 or more")
        if self.check not in ("names", "headers", "full"):
            raise ValueError(f"check is {self.check!r}; expected 'names', 'headers' or 'full'")
        if self.max_bad is not None and (not isinstance(self.max_bad, int | float) or self.max_bad < 0):
            raise ValueError(f"max_bad is {self.max_bad!r}; expected a number of files, a share below 1, or None")

    def bad_limit(self, files: int) -> int:
        """How many of ``files`` may be unreadable."""
        if self.max_bad is None:
            return max(10, files // 100)
        return int(self.max_bad * files) if 0 < self.max_bad < 1 else int(self.max_bad)

    @property
    def where(self) -> Path:
        """The folder that named sets are looked for in."""
        return default_root() if self.root is None else self.root

    @property
    def cache_folder(self) -> Path | None:
        """The folder that cache files lie in; None if there is to be no cache."""
        if self.cache is None or self.cache is False:
            return None
        return self.where / "images" if self.cache is True else expanded(self.cache, "cache")
