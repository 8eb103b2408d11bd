"""What the named sets share: options in, `DataSet` out, and one way to say which files are missing."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from torch import Tensor

from kontrast.data.arrays import resized
from kontrast.data.dataset import DataSet, Memory, Options, Split
from kontrast.data.downloads import ArchiveError, DownloadError, download, unpack

T = TypeVar("T")


class NamedSet(abc.ABC):
    """A set with a name: ``load()`` gives it. ``mean`` and ``std`` are per channel, of pixels in 0…1."""

    name: ClassVar[str]
    mean: ClassVar[tuple[float, ...]]
    std: ClassVar[tuple[float, ...]]
    note: ClassVar[str]

    def __init__(self, options: Options | None = None) -> None:
        self.options = options or Options()

    @abc.abstractmethod
    def load(self) -> DataSet:
        """The set, from its files."""

    def split(self, images: Any, labels: Any = None) -> Split:
        """Images ``[N, C, H, W]`` and labels as torchvision's classes hold them, in memory at the size asked for."""
        pixels = images if isinstance(images, Tensor) else torch.from_numpy(np.ascontiguousarray(images))
        size = self.options.size
        pixels = pixels.contiguous() if size is None else resized(pixels, size)
        return Split(Memory(pixels), None if labels is None else torch.as_tensor(labels).to(torch.int64))

    def made(self, train: Split, test: Split, class_names: Sequence[str], unlabelled: Split | None = None) -> DataSet:
        """The data set of these splits, with the statistics and note of the class."""
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

    def fetched(
        self, make: Callable[[], T], folder: Path, files: Sequence[str], url: str, fetch: Callable[[], object]
    ) -> T:
        """``make()``, after ``fetch()`` where files are missing; an error that names them if they are not to be had."""
        try:
            try:
                return make()
            except (RuntimeError, OSError, EOFError) as error:
                if not self.options.download or isinstance(error, PermissionError):
                    raise
            fetch()
            return make()
        except (RuntimeError, OSError, EOFError, DownloadError, ArchiveError) as error:
            tried = f"could not be downloaded ({error})" if self.options.download else "are not there (download=False)"
            absent = [name for name in files if not (folder / name).exists()]
            state = f"missing: {', '.join(absent)}" if absent else f"there, but damaged: {', '.join(files)}"
            raise ValueError(
                f"the files of {self.name} {tried}. Expected in {folder}: {', '.join(files)} ({state}). Get them from "
                f"{url}, or name their folder by root=… or the variable KONTRAST_DATA"
            ) from error

    def unpacked(self, url: str, name: str, md5: str) -> None:
        """Fetches an archive into the root (if it is not there), and unpacks it."""
        where = self.options.where
        unpack(download(url, where / name, checksum=f"md5:{md5}"), where)
