"""The handwritten digits that come with scikit-learn: 1,797 grey images of 8×8 pixels (UCI, Alpaydin & Kaynak 1998).

They have no test split of their own: the last 360 test here. Rows follow the writers, so these are other hands.
"""

from __future__ import annotations

import numpy as np

from kontrast.data.dataset import DataSet
from kontrast.data.sets._base import NamedSet

TESTING = 360


class Digits(NamedSet):
    """1,437 + 360 images; needs scikit-learn, no network. Mean and std are those of the training pixels."""

    name = "digits"
    mean = (0.3054,)
    std = (0.3753,)
    note = "Optical Recognition of Handwritten Digits, UCI, Alpaydin & Kaynak 1998, CC BY 4.0"

    def load(self) -> DataSet:
        """Both splits in memory; the values 0…16 become 0…255."""
        try:
            from sklearn.datasets import load_digits  # type: ignore[import-untyped]
        except ImportError as error:
            raise ValueError(
                "digits come with scikit-learn, which is not installed; pip install scikit-learn"
            ) from error
        digits = load_digits()
        images = np.rint(digits.images[:, None] * (255 / 16)).astype(np.uint8)
        train = self.split(images[:-TESTING], digits.target[:-TESTING])
        test = self.split(images[-TESTING:], digits.target[-TESTING:])
        return self.assemble(train, test, class_names=[str(name) for name in digits.target_names])
