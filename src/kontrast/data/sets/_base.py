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

    ``name`` is the file's name, with hyphens. ``mean`` and ``std`` are per channel, for pixels in 0…1; ``note`` is the
    source and the licence.
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

    def load_checked(self) -> DataSet:
        """`load`, and what it must be.

        Raises:
            ValueError: the class or what it loads does not fit together; the error names the set and what to correct.
        """
        file = type(self).__module__.rpartition(".")[2].replace("_", "-")
        for attribute, what in (
            ("name", f"{file!r}, as its file"),
            ("mean", "that of the training pixels in 0…1, one for each channel (kontrast.data.channel_statistics)"),
            ("std", "that of the training pixels in 0…1, one for each channel (kontrast.data.channel_statistics)"),
            ("note", "its source and its licence"),
        ):
            if not hasattr(self, attribute):
                raise ValueError(f"data set {file!r}: {type(self).__name__} must set {attribute}: {what}")
        if self.name != file:
            raise ValueError(f"data set {file!r}: name={self.name!r}: must be {file!r}, as its file")
        data = self.load()
        problem = _problem(data)
        if problem is not None:
            raise ValueError(f"data set {file!r}: {problem}")
        return data

    def split(self, images: Any, labels: Any = None) -> Split:
        """Make a split in memory, at the requested size, of images ``[N, C, H, W]`` and labels."""
        pixels = images if isinstance(images, Tensor) else torch.from_numpy(np.ascontiguousarray(images))
        if pixels.ndim == 4 and pixels.shape[1] not in (1, 3) and pixels.shape[3] in (1, 3):
            raise ValueError(
                f"data set {self.name!r}: images {list(pixels.shape)}: must be [N, C, H, W], channels first. Use "
                "images.transpose(0, 3, 1, 2)"
            )
        size = self.options.size
        pixels = pixels.contiguous() if size is None else resize_images(pixels, size, self.options.interpolation)
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


def _problem(data: Any) -> str | None:
    """What does not fit together in a data set that a class loaded."""
    if not isinstance(data, DataSet):
        return f"load must return a DataSet (self.assemble makes one), got {type(data).__name__}"
    shape = data.train.inputs.shape
    for attribute in ("mean", "std"):
        values = getattr(data, attribute)
        if shape is not None and len(values) != shape[0]:
            return f"{attribute} has length {len(values)}: must have {shape[0]}, one for each channel of {list(shape)}"
    for split in (data.train, data.test):
        if data.class_names and split is not None and split.labels is not None and len(split.labels):
            most = int(split.labels.max())
            if most >= len(data.class_names):
                count = len(data.class_names)
                return f"labels go to {most}: there must be {most + 1} class_names or more, and there are {count}"
    return None
