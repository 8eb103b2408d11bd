r"""Alignment: how close the two views of a sample are.

    (1)  L_align = mean_i ‖x_i − y_i‖^α

(Wang & Isola.) Range for unit rows: 0 (views equal) … 2^α; 2 for unrelated views at α = 2, as ‖x−y‖² = 2 − 2⟨x, y⟩.
"""

from __future__ import annotations

from typing import Any, Literal, overload

import torch

from kontrast.checks import number, same_dtype, same_shape
from kontrast.geometry._rows import FEW, as_rows, measure, parts, warn_if_few
from kontrast.geometry.estimate import Estimate, mean


@overload
def alignment(
    x: Any, y: Any, alpha: float = ..., *, normalize: bool = ..., with_error: Literal[False] = ...
) -> float: ...
@overload
def alignment(x: Any, y: Any, alpha: float = ..., *, normalize: bool = ..., with_error: Literal[True]) -> Estimate: ...
@measure
def alignment(
    x: Any, y: Any, alpha: float = 2.0, *, normalize: bool = True, with_error: bool = False
) -> float | Estimate:
    """Alignment (1) of two views of the same samples.

    Args:
        x: Features ``[N, D]`` of the first views.
        y: Features ``[N, D]`` of the second views; row i belongs to row i of ``x``.
        alpha: The exponent of the distance.
        normalize: Whether rows are scaled to length one.
        with_error: Whether to return an `Estimate` with the standard error over samples.

    Returns:
        The mean as a float, or as an `Estimate`.

    Raises:
        ValueError: ``x`` and ``y`` differ in shape, hold NaN or infinity, or ``alpha`` is not above 0.

    >>> x = torch.tensor([[1.0, 0.0]]).repeat(30, 1)
    >>> alignment(x, torch.tensor([[0.0, 1.0]]).repeat(30, 1))  # orthogonal: ‖x − y‖² = 2
    2.0
    """
    alpha = number("alpha", alpha, above=0.0)
    x = as_rows("x", x, normalize=normalize)
    y = as_rows("y", y, normalize=normalize, like=x)
    same_shape("x", x, "y", y)
    warn_if_few(len(x), FEW, "pairs that alignment is computed on")
    x, y = same_dtype(x, y)
    square = torch.cat([(part - y[r].double()).square().sum(1) for r, part in parts(x)])
    estimate = mean(square ** (alpha / 2))  # (1)
    return estimate if with_error else estimate.value
