r"""Uniformity: how evenly embeddings cover the sphere.

    (1)  L_uniform = log  2/(n(n−1)) Σ_{i<j} e^{−t‖x_i − x_j‖²}
    (2)  limit for the uniform distribution on S^{d−1}:  −2t + log ₀F₁(; d/2; t²),   ₀F₁(; a; x) = Σ_k x^k/((a)_k k!)
    (3)  error² = (n−1)/n · 4/(n−2)² Σ_i (h_i − U)² / U²,   h_i = mean_{j≠i} e^{−t‖x_i − x_j‖²}, U the mean in (1)

(Wang & Isola; Wang & Liu eq. 10. (2): ‖x−y‖² = 2 − 2⟨x, y⟩ and E e^{2t⟨x,y⟩} = ₀F₁. (3): leaving out sample i
changes U by 2(U − h_i)/(n−2), and log by 1/U.)

Range: 0 (all equal) down to about (2) for many rows: −3.9375 for t = 2, d = 128. Few rows can be further apart than
uniform ones are on average, two opposite ones at −4t.

Deviates: papers often report −L_uniform, the larger the more uniform (Wang & Liu's tables do); this is (1) with its
sign, the smaller the more uniform. t is not stated there; 2 fits their numbers.
"""

from __future__ import annotations

import math
from typing import Any, Literal, overload

import torch

from kontrast.checks import number, whole_number
from kontrast.engine import LOG2E
from kontrast.geometry._rows import FEW, as_rows, measure, square_blocks, warn_if_few
from kontrast.geometry.estimate import Estimate


@overload
def uniformity(features: Any, t: float = ..., *, normalize: bool = ..., with_error: Literal[False] = ...) -> float: ...
@overload
def uniformity(features: Any, t: float = ..., *, normalize: bool = ..., with_error: Literal[True]) -> Estimate: ...
@measure
def uniformity(features: Any, t: float = 2.0, *, normalize: bool = True, with_error: bool = False) -> float | Estimate:
    """Uniformity (1) over distinct pairs of rows.

    Args:
        features: Rows ``[N, D]``, at least two.
        t: The scale t of the kernel.
        normalize: Whether rows are scaled to length one.
        with_error: Whether to return an `Estimate` with the error (3).

    Returns:
        The value as a float, or as an `Estimate`.

    Raises:
        ValueError: There is only one row, rows hold NaN or infinity, a number lies outside its range, or all pairs are
            so far apart that the mean underflows.

    >>> x = torch.randn(500, 64, generator=torch.Generator().manual_seed(0))
    >>> print(uniformity(x, with_error=True))
    -3.87... ± 0.00...
    >>> round(uniformity_limit(64), 4)
    -3.8752
    """
    t = number("t", t, above=0.0)
    x = as_rows("features", features, normalize=normalize)
    n = len(x)
    if n < 2:
        raise ValueError("uniformity compares pairs; features has one row")
    warn_if_few(n, FEW, "rows that uniformity is computed on")
    if 4 * t * float(x.square().sum(1).max()) > 60:
        x = x.double()  # float32 would lose the far pairs
    # In powers of two, which torch computes faster: 2^{⟨y_i, y_j⟩ − q_i − q_j} with y = x √(2t log₂e).
    x = x * math.sqrt(2 * t * LOG2E)
    half_square = x.square().sum(1) / 2
    sums = torch.zeros(n, dtype=torch.float64, device=x.device)
    for r, c, block in square_blocks(x):
        block.sub_(half_square[r, None]).sub_(half_square[None, c]).exp2_()
        if r == c:
            block.fill_diagonal_(0.0)
        else:
            sums[c] += block.sum(0)
        sums[r] += block.sum(1)
    mean = float(sums.sum()) / (n * (n - 1))
    if mean == 0:
        raise ValueError("every pair is so far apart that e^{−t‖x−y‖²} is 0: normalise the features or lower t")
    value = math.log(mean)  # (1)
    if not with_error:
        return value
    spread = float((sums / (n - 1) - mean).square().sum())
    error = math.sqrt((n - 1) / n * spread) * 2 / (n - 2) / mean if n > 2 else math.nan  # (3)
    return Estimate(value, error)


def uniformity_limit(dim: int, t: float = 2.0) -> float:
    """The limit (2): uniformity of the uniform distribution on the sphere in ``dim`` dimensions.

    Args:
        dim: How many dimensions, at least 1.
        t: The scale t of the kernel.

    Returns:
        The limit.

    Raises:
        ValueError: A number lies outside its range.

    >>> [round(-uniformity_limit(d), 4) for d in (64, 128, 256)]
    [3.8752, 3.9375, 3.9688]
    """
    half, t = whole_number("dim", dim, least=1) / 2, number("t", t, above=0.0)
    term = total = 1.0
    k, scale = 0, 0.0
    while term > 1e-17 * total:
        term *= t * t / ((half + k) * (k + 1))
        total += term
        k += 1
        if total > 1e200:  # for large t the sum is beyond float64: its logarithm is kept instead
            scale += math.log(total)
            term, total = term / total, 1.0
    return -2 * t + scale + math.log(total)
