"""Fashion-MNIST in small: 10,000 + 2,000 grey images of 28×28 pixels, as many of each class; comes with kontrast.

The training images are drawn from Fashion-MNIST's training files, the test images from its test files, both with a
fixed seed by ``scripts/make_fashion_mini.py``; images and order are otherwise as published. Under the MIT licence of
Zalando SE, which lies beside the file. Mean and std are tcl's for Fashion-MNIST, 0.5 and 0.5.
"""

from __future__ import annotations

from importlib.resources import files

import numpy as np

from kontrast.data.dataset import DataSet
from kontrast.data.sets import fashion_mnist
from kontrast.data.sets._base import NamedSet

FILE = "fashion_mini.npz"


class FashionMini(NamedSet):
    """The bundled set: it needs no network and no files, and loads in under a tenth of a second."""

    name = "fashion-mini"
    mean = (0.5,)
    std = (0.5,)
    note = "12,000 images of Fashion-MNIST, Zalando SE 2017, MIT licence (fashion_mini.LICENSE)"

    def load(self) -> DataSet:
        """Both splits in memory."""
        with (files("kontrast.data") / FILE).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            train = self.split(arrays["x_train"][:, None], arrays["y_train"])
            test = self.split(arrays["x_test"][:, None], arrays["y_test"])
        return self.assemble(train, test, class_names=fashion_mnist.CLASSES)
