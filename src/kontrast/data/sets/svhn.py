"""SVHN: 73,257 + 26,032 house numbers of 32×32 pixels, digits 0 to 9 (Netzer et al. 2011). The extra split is left out.

Mean and std are those of CIFAR-10, which wang-liu's code takes for every set.
"""

from __future__ import annotations

from typing import Any

from kontrast.data.dataset import DataSet
from kontrast.data.downloads import download
from kontrast.data.sets._base import NamedSet


class SVHN(NamedSet):
    """``train_32x32.mat`` and ``test_32x32.mat`` in the root, through torchvision (which checks their checksums)."""

    name = "svhn"
    mean = (0.4914, 0.4822, 0.4465)
    std = (0.2023, 0.1994, 0.2010)
    note = "SVHN, Netzer et al. 2011, ufldl.stanford.edu/housenumbers; for non-commercial use only"

    def load(self) -> DataSet:
        """Both splits in memory."""
        import torchvision.datasets  # type: ignore[import-untyped]

        source: Any = torchvision.datasets.SVHN
        where = self.options.where
        files = [source.split_list[split][1] for split in ("train", "test")]

        def read() -> list[Any]:
            return [source(where, split=split, download=False) for split in ("train", "test")]

        def fetch() -> None:
            for url, name, md5 in (source.split_list[split] for split in ("train", "test")):
                download(url, where / name, checksum=f"md5:{md5}")

        train, test = self.read_or_download(read, where, files, source.split_list["train"][0].rpartition("/")[0], fetch)
        first, second = (self.split(part.data, part.labels) for part in (train, test))
        return self.assemble(first, second, [str(digit) for digit in range(10)])
