"""STL-10: 5,000 + 8,000 colour images of 96×96 pixels in 10 classes, and 100,000 without labels (Coates et al. 2011).

Mean and std are those of sce's code (CIFAR-10's own, over all pixels).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from kontrast.data.arrays import resize_images
from kontrast.data.dataset import DataSet, Memory, Split
from kontrast.data.sets._base import NamedSet


class STL10(NamedSet):
    """``stl10_binary`` below the root, through torchvision (which checks their checksums). 2.8 GB in all."""

    name = "stl10"
    mean = (0.4914, 0.4822, 0.4465)
    std = (0.2471, 0.2435, 0.2616)
    note = "STL-10, Coates et al. 2011, cs.stanford.edu/~acoates/stl10; images from ImageNet, research use"

    def load(self) -> DataSet:
        """All three splits in memory."""
        import torchvision.datasets  # type: ignore[import-untyped]

        source: Any = torchvision.datasets.STL10
        folder = self.options.where / source.base_folder
        files = [name for name, _ in (*source.train_list, *source.test_list)]

        def read() -> tuple[Any, Any]:
            train = source(self.options.where, split="train", download=False)
            return train, source(self.options.where, split="test", download=False)

        def fetch() -> None:
            self.download_archive(source.url, source.filename, source.tgz_md5)

        train, test = self.read_or_download(read, folder, [*files, source.class_names_file], source.url, fetch)
        unlabelled = self._unlabelled(folder / source.train_list[2][0])
        first, second = (self.split(part.data, part.labels) for part in (train, test))
        return self.assemble(first, second, train.classes, unlabelled)

    def _unlabelled(self, path: Path) -> Split:
        """Read the 100,000 images a chunk at a time: torchvision's loader holds all of them twice."""
        pixels = np.memmap(path, np.uint8, "r").reshape(-1, 3, 96, 96)  # each image lies column by column
        size, how = self.options.size or 96, self.options.interpolation
        images = torch.empty(len(pixels), 3, size, size, dtype=torch.uint8)
        for start in range(0, len(pixels), 1024):
            rows = slice(start, start + 1024)
            images[rows] = resize_images(torch.from_numpy(pixels[rows].transpose(0, 1, 3, 2).copy()), size, how)
        return Split(Memory(images))
