"""Pictures as data URLs."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from PIL import Image

from kontrast.report.images import data_url


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_a_picture_comes_back(channels: int) -> None:
    pixels = np.zeros((channels, 6, 9), dtype=np.uint8)
    pixels[:, :, 4:] = 200
    kind, _, text = data_url(pixels).partition(";base64,")
    assert kind.startswith("data:image/")
    seen = np.asarray(Image.open(io.BytesIO(base64.b64decode(text))).convert("L")).astype(int)
    assert seen.shape == (6, 9)
    # Lossy, and 4:2:0 in blocks: flat areas away from the edge come back within a few of 256 levels.
    assert abs(seen[:, 0] - 0).max() <= 16
    assert abs(seen[:, 8] - 200).max() <= 16


def test_what_is_no_picture() -> None:
    with pytest.raises(ValueError, match=r"a picture is uint8 \[C, H, W\]; got float64 \[2, 2\]"):
        data_url(np.zeros((2, 2)))  # type: ignore[arg-type]
