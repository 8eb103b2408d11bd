r"""Tolerance: how similar samples of one class stay.

    (1)  T = mean of ⟨x_i, x_j⟩ over distinct pairs i ≠ j of the same class
           = Σ_c (‖S_c‖² − Σ_{i∈c} ‖x_i‖²) / Σ_c n_c(n_c−1)
    (2)  error² = (n−1)/n Σ_i (T_{−i} − T̄)²,   T_{−i} = (A − 2⟨x_i, S_c − x_i⟩)/(B − 2(n_c − 1)),   T = A/B

S_c is the sum of class c's rows, so no pair is computed. (Wang & Liu eq. 11; (2) is the jackknife.)

Range: −1/(n_c−1) … 1 for unit rows; 1 where classes collapse to points, about 0 for unrelated embeddings.

Deviates: as printed, eq. 11 is a mean over *all* pairs with an indicator and could not exceed the share of same-class
pairs (0.1 on CIFAR-10); the paper reports up to 0.61, so its numbers are means over same-class pairs, as here. Whether
pairs of a sample with itself count is not stated; they do not here.
"""

from __future__ import annotations

from typing import Any, Literal, overload

import torch
from torch import Tensor

from kontrast.geometry._rows import FEW, Classes, as_rows, check_classes, measure, parts, warn_if_few
from kontrast.geometry.estimate import Estimate, jackknife_error


@overload
def tolerance(features: Any, labels: Any, *, normalize: bool = ..., with_error: Literal[False] = ...) -> float: ...
@overload
def tolerance(features: Any, labels: Any, *, normalize: bool = ..., with_error: Literal[True]) -> Estimate: ...
@measure
def tolerance(features: Any, labels: Any, *, normalize: bool = True, with_error: bool = False) -> float | Estimate:
    """Tolerance (1): the mean cosine of distinct samples of one class.

    Args:
        features: Rows ``[N, D]``.
        labels: Integer labels ``[N]``; a class with one sample has no pair and is left out.
        normalize: Whether rows are scaled to length one.
        with_error: Whether to return an `Estimate` with the error (2).

    Returns:
        The mean as a float, or as an `Estimate`.

    Raises:
        ValueError: No class has two samples, or rows hold NaN or infinity.

    >>> x = torch.eye(2).repeat(20, 1)
    >>> tolerance(x, torch.arange(40) % 2)  # each class one point
    1.0
    >>> round(tolerance(x, torch.arange(40) // 20), 4)  # both points in each class, half and half: 9/19
    0.4737
    """
    x = as_rows("features", features, normalize=normalize)
    classes = check_classes(labels, x)
    total, pairs, to_class = _sums(x, classes)
    if float(pairs.sum()) == 0:
        raise ValueError(
            f"no class has two samples ({len(classes)} classes, {len(x)} rows): tolerance compares samples of one class"
        )
    has_partner = classes.counts[classes.index] > 1
    warn_if_few(int(has_partner.sum()), FEW, "rows with another of their class that tolerance is computed on")
    value = total.sum() / pairs.sum()  # (1)
    if not with_error:
        return float(value)
    without_pairs = pairs.sum() - 2 * (classes.counts[classes.index] - 1)
    replicates = (total.sum() - 2 * to_class) / without_pairs  # NaN if without one row no pair is left
    return Estimate(float(value), float(jackknife_error(replicates)))  # (2)


@measure
def tolerance_per_class(features: Any, labels: Any, *, normalize: bool = True) -> dict[int, Estimate]:
    """Tolerance (1) within each class.

    Args:
        features: Rows ``[N, D]``.
        labels: Integer labels ``[N]``.
        normalize: Whether rows are scaled to length one.

    Returns:
        An estimate for each label. The value is NaN for a class with one sample, the error also for one with two.

    Raises:
        ValueError: Labels do not fit the rows, or rows hold NaN or infinity.

    >>> x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]).repeat_interleave(torch.tensor([4, 2, 2]), 0)
    >>> {c: round(e.value, 4) for c, e in tolerance_per_class(x, torch.tensor([3, 3, 3, 3, 7, 7, 7, 7])).items()}
    {3: 1.0, 7: -0.3333}
    """
    x = as_rows("features", features, normalize=normalize)
    classes = check_classes(labels, x)
    warn_if_few(int(classes.counts.min()), 3, "samples in the smallest class that tolerance is computed on")
    total, pairs, to_class = _sums(x, classes)
    result = {}
    for c, name in enumerate(classes.values):
        n = int(classes.counts[c])
        error = torch.tensor(float("nan"))
        if n > 2:
            error = jackknife_error((total[c] - 2 * to_class[classes.index == c]) / ((n - 1) * (n - 2)))
        result[name] = Estimate(float(total[c] / pairs[c]), float(error))
    return result


def _sums(x: Tensor, classes: Classes) -> tuple[Tensor, Tensor, Tensor]:
    """Per class Σ_{i≠j} ⟨x_i, x_j⟩ and n_c(n_c − 1); per row ⟨x_i, S_c − x_i⟩."""
    sums = classes.sums(x)
    to_class = torch.cat([(part * (sums[classes.index[r]] - part)).sum(1) for r, part in parts(x)])
    total = torch.zeros(len(classes), dtype=torch.float64, device=x.device).index_add_(0, classes.index, to_class)
    return total, (classes.counts * (classes.counts - 1)).double(), to_class
