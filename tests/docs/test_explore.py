"""docs/explore.py, which makes the picture of docs/explore.md: what it plants, and the picture's size."""

from __future__ import annotations

import numpy as np
from PIL import Image

from tests.docs.loading import DOCS, script

explore = script("explore")  # importing it does not need playwright


def test_copies_of_test_images_are_among_the_training_images() -> None:
    arrays = explore.planted()
    train = {image.tobytes() for image in arrays["x_train"]}
    assert sum(image.tobytes() in train for image in arrays["x_test"]) == explore.COPIES
    assert len(arrays["x_train"]) + len(arrays["x_test"]) == explore.ROWS
    assert set(np.unique(arrays["y_train"])) == set(range(10))


def test_the_committed_picture_is_small() -> None:
    assert explore.PICTURE == DOCS / "explore.png"
    assert explore.PICTURE.stat().st_size < 200_000
    with Image.open(explore.PICTURE) as picture:
        assert picture.width > 1600
