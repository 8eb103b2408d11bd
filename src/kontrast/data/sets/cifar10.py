"""CIFAR-10: 50,000 + 10,000 colour images of 32×32 pixels in 10 classes (Krizhevsky 2009).

Mean and std are those of the papers' code (wang-liu, tcl and sce agree).

Deviates: the std they all use, (0.2023, …), is the mean of the deviations within each image; that of all pixels is
(0.2470, 0.2435, 0.2616).
"""

from __future__ import annotations

from typing import Any, ClassVar

from kontrast.data.records import DataSet
from kontrast.data.sets._base import NamedSet


class CIFAR10(NamedSet):
    """``cifar-10-batches-py`` below the root, through torchvision (download and checksums)."""

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
        where = self.options.where
        files = [name for name, _ in (*published.train_list, *published.test_list)] + [published.meta["filename"]]

        def opened() -> tuple[Any, Any]:
            train = published(where, train=True, download=self.options.download)
            return train, published(where, train=False, download=False)

        train, test = self.fetched(opened, where / published.base_folder, files, published.url)
        first, second = (self.split(part.data.transpose(0, 3, 1, 2), part.targets) for part in (train, test))
        return self.made(first, second, train.classes)
