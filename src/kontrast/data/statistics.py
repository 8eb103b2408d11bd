r"""Mean and standard deviation of each channel, in one pass and float64.

    (1)  mean_c = 1/n Σ x_c,   std_c = √(1/n Σ (x_c − mean_c)²)        n = all pixels of channel c, x in 0…1

Pixels are integers, so their sums and sums of squares are exact in float64 (below 2⁵³, that is 10¹¹ pixels); vectors
are summed about the first chunk's mean, so a large offset does not swallow the deviations. A channel that never changes
gets std 1: dividing by it leaves zeros and not NaN.
"""

from __future__ import annotations

import math

import torch

from kontrast.data.images import CentreCrop
from kontrast.data.records import Inputs, Memory

CHUNK = 1 << 21  # values at a time: 16 MB in float64
SAMPLE = 1024  # rows that are read where they do not lie in memory; an image's mean varies by 0.12, theirs by 0.004


def channel_statistics(inputs: Inputs, *, size: int = 224) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """(1): per channel of images, per feature of vectors.

    Of what does not lie in memory `SAMPLE` rows are read, evenly taken; of images that differ in size, the middle of
    each at ``size``.

    >>> channel_statistics(Memory(torch.tensor([0, 255, 255, 0], dtype=torch.uint8).reshape(2, 1, 1, 2)))
    ((0.5,), (0.5,))
    """
    if not len(inputs):
        raise ValueError("no rows, no statistics; expected at least one")
    varied = inputs.shape is None
    count = len(inputs) if isinstance(inputs, Memory) else min(len(inputs), SAMPLE)
    taken = torch.arange(count) * len(inputs) // count
    crop = CentreCrop(size) if varied else None
    n, shift, total, squares = 0, None, torch.zeros(()), torch.zeros(())
    step = max(1, CHUNK // (3 * size * size if inputs.shape is None else math.prod(inputs.shape)))
    for start in range(0, count, step):
        rows = taken[start : start + step]
        chunk = inputs.read(rows, crop, [0] * len(rows) if varied else None)
        x = chunk.to(torch.float64)
        x = x.transpose(0, 1).flatten(1) if x.ndim == 4 else x.T
        if shift is None:
            shift = torch.zeros(len(x), 1, dtype=torch.float64) if chunk.dtype == torch.uint8 else x.mean(1, True)
        x = x - shift
        n, total, squares = n + x.shape[1], total + x.sum(1), squares + x.square().sum(1)
    assert shift is not None
    mean, variance = total / n, squares / n - (total / n).square()
    # What rounding leaves of a constant feature is no deviation; integers leave nothing.
    least = 1e-12 * (squares / n).clamp_min(torch.finfo(torch.float64).tiny)
    std = variance.clamp_min(0).sqrt().where(variance > least, torch.ones(()).double())
    mean = mean + shift[:, 0]
    if chunk.dtype == torch.uint8:
        mean, std = mean / 255, (std / 255).where(variance > least, std)
    return tuple(mean.tolist()), tuple(std.tolist())
