"""Small images as data URLs, so that a page has them inside.

WebP where Pillow has it: a picture of 32 pixels takes half a kilobyte, where PNG takes three.
"""

from __future__ import annotations

import base64
import io

import numpy as np
from numpy.typing import NDArray


def data_url(pixels: NDArray[np.uint8]) -> str:
    """A picture uint8 ``[C, H, W]`` (one channel: grey; otherwise the first three).

    >>> data_url(np.zeros((1, 8, 8), dtype=np.uint8)).partition(",")[0]
    'data:image/webp;base64'
    """
    from PIL import Image, features

    if pixels.ndim != 3 or pixels.dtype != np.uint8:
        raise ValueError(f"a picture is uint8 [C, H, W]; got {pixels.dtype} {list(pixels.shape)}")
    seen = pixels[0] if pixels.shape[0] < 3 else np.moveaxis(pixels[:3], 0, -1)
    kind = "webp" if features.check("webp") else "png"
    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(seen)).save(file, kind, quality=82)
    return f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode()}"
