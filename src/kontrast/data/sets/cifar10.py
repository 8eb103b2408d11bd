"""CIFAR-10: 50,000 + 10,000 colour images of 32×32 pixels in 10 classes (Krizhevsky 2009).

Mean and std are those of the papers' code (wang-liu, tcl and sce agree).

Deviates: the std they all use, (0.2023, …), is the mean of the deviations within each image; that of all pixels is
(0.2470, 0.2435, 0.2616).
"""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from kontrast.data.downloads import matches
from kontrast.data.records import DataSet, Split
from kontrast.data.sets import _pickled
from kontrast.data.sets._base import NamedSet


class CIFAR10(NamedSet):
    """``cifar-10-batches-py`` below the root; addresses and checksums are torchvision's.

    The batches are pickles. Each is held to its checksum, and read without making any object (`_pickled`).
    """

    name: ClassVar[str] = "cifar10"
    mean: ClassVar[tuple[float, ...]] = (0.4914, 0.4822, 0.4465)
    std: ClassVar[tuple[float, ...]] = (0.2023, 0.1994, 0.2010)
    note: ClassVar[str] = (
        "CIFAR-10, A. Krizhevsky 2009, www.cs.toronto.edu/~kriz/cifar.html; no licence stated, cite it"
    )
    torchvision_name: ClassVar[str] = "CIFAR10"

    def load(self) -> DataSet:
        """Both splits in memory."""
        import torchvision.datasets  # type: ignore[import-untyped]

        published: Any = getattr(torchvision.datasets, self.torchvision_name)
        folder = self.options.where / published.base_folder
        meta = (published.meta["filename"], published.meta["md5"])
        parts = (published.train_list, published.test_list)
        files = [name for name, _ in (*chain(*parts), meta)]

        def opened() -> list[list[dict[str, Any]]]:
            return [[_read(folder / name, md5) for name, md5 in part] for part in (*parts, [meta])]

        def fetch() -> None:
            self.unpacked(published.url, published.filename, published.tgz_md5)

        train, test, (names,) = self.fetched(opened, folder, files, published.url, fetch)
        first, second = (self._joined(batches) for batches in (train, test))
        return self.made(first, second, names[published.meta["key"]])

    def _joined(self, batches: list[dict[str, Any]]) -> Split:
        pixels = np.concatenate([batch["data"] for batch in batches]).reshape(-1, 3, 32, 32)
        labels = chain.from_iterable(batch.get("labels") or batch["fine_labels"] for batch in batches)
        return self.split(pixels, list(labels))


def _read(path: Path, md5: str) -> dict[str, Any]:
    """A published file; what is hashed is what is read."""
    content = path.read_bytes()
    if not matches(content, f"md5:{md5}"):
        raise OSError(f"{path} is not the published file")
    return _pickled.read(content)
