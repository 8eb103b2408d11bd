"""The base class of the named data sets: downloads, splits, and the error about missing files."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from torch import Tensor

from kontrast.data.arrays import resize_images
from kontrast.data.dataset import DataSet, Memory, Options, Split
from kontrast.data.downloads import ArchiveError, DownloadError, download, unpack

T = TypeVar("T")


class NamedSet(abc.ABC):
    """A data set with a name: a subclass in a file of its own, whose ``load()`` returns it.

    Args:
        options: how to load.

    ``mean`` and ``std`` are per channel, for pixels in 0…1; ``note`` is the source and the licence.
    """

    name: ClassVar[str]
    mean: ClassVar[tuple[float, ...]]
    std: ClassVar[tuple[float, ...]]
    note: ClassVar[str]

    def __init__(self, options: Options | None = None) -> None:
        self.options = options or Options()

    @abc.abstractmethod
    def load(self) -> DataSet:
        """Load the set from its files."""

    def split(self, images: Any, labels: Any = None) -> Split:
        """Make a split in memory, at the requested size, of images ``[N, C, H, W]`` and labels."""
        pixels = images if isinstance(images, Tensor) else torch.from_numpy(np.ascontiguousarray(images))
        size = self.options.size
        pixels = pixels.contiguous() if size is None else resize_images(pixels, size)
        return Split(Memory(pixels), None if labels is None else torch.as_tensor(labels).to(torch.int64))

    def assemble(
        self, train: Split, test: Split, class_names: Sequence[str], unlabelled: Split | None = None
    ) -> DataSet:
        """Make the data set of these splits, with the statistics and note of the class."""
        return DataSet(
            name=self.name,
            train=train,
            test=test,
            unlabelled=unlabelled,
            class_names=list(class_names),
            mean=self.mean,
            std=self.std,
            note=self.note,
        )

    def read_or_download(
        self, read: Callable[[], T], folder: Path, files: Sequence[str], url: str, fetch: Callable[[], object]
    ) -> T:
        """Return ``read()``; if files are missing, call ``fetch()`` first.

        Args:
            read: reads the files.
            folder: where the files belong.
            files: their names, for the error.
            url: where to get them, for the error.
            fetch: downloads them.

        Raises:
            ValueError: the files are missing or damaged and cannot be downloaded; the error names them.
        """
        try:
            try:
                return read()
            except (RuntimeError, OSError, EOFError) as error:
                if not self.options.download or isinstance(error, PermissionError):
                    raise
            fetch()
            return read()
        except (RuntimeError, OSError, EOFError, DownloadError, ArchiveError) as error:
            why = f"could not be downloaded ({error})" if self.options.download else "are not there (download=False)"
            absent = [name for name in files if not (folder / name).exists()]
            state = f"missing: {', '.join(absent)}" if absent else f"there, but damaged: {', '.join(files)}"
            raise ValueError(
                f"the files of {self.name} {why}. Expected in {folder}: {', '.join(files)} ({state}). Get them from "
                f"{url}, or set their folder by root=… or the variable KONTRAST_DATA"
            ) from error

    def download_archive(self, url: str, name: str, md5: str) -> None:
        """Download an archive into the root (unless it is there), and unpack it."""
        where = self.options.where
        unpack(download(url, where / name, checksum=f"md5:{md5}"), where)
