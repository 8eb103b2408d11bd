r"""The relative penalty on an anchor's negatives, and its entropy.

s_ij are the similarities of anchor i to its negatives:

    (1)  r_i(s_ij) = e^{s_ij/τ} / Σ_{k≠i} e^{s_ik/τ}          how the gradient is shared out among the negatives
    (2)  H(r_i) = −Σ_j r_i(s_ij) log r_i(s_ij) = log Σ_k e^{s_ik/τ} − Σ_j r_i(s_ij) s_ij/τ
    (3)  dH/dτ = Var_{r_i}(s)/τ³ ≥ 0

(Wang & Liu eq. 5; supplement section 2.) H lies between 0 (all on the nearest negative, τ → 0) and log M (all alike,
τ → ∞, M negatives); by (3) it rises with τ unless all similarities are equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from kontrast.checks import number, same_dtype
from kontrast.engine import LOG2E
from kontrast.geometry._rows import HIDDEN, as_tensor, check_keys, measure, one_or_many, strips


@measure
def penalty_entropy(
    query: Any,
    key: Any,
    negatives: Any = None,
    own_index: Any = None,
    *,
    temperature: float | Sequence[float],
    normalize: bool = True,
) -> Tensor:
    """Entropy (2) of the relative penalty on each anchor's negatives.

    Args:
        query: Anchors ``[N, D]``.
        key: Their positives ``[N, D]``; without ``negatives`` the other rows are the negatives.
        negatives: The negatives ``[K, D]`` of every anchor, such as a queue.
        own_index: For each anchor ``[N]`` its own row of ``negatives``, which is left out.
        temperature: One temperature τ or several; several cost one matrix product.
        normalize: Whether rows are scaled to length one.

    Returns:
        The entropies ``[N]``; ``[N, len(temperature)]`` for several temperatures.

    Raises:
        ValueError: Shapes do not fit, rows hold NaN or infinity, no negative is left, or a temperature is not above 0.

    >>> key = torch.eye(5)
    >>> penalty_entropy(key, key, temperature=0.1)  # four negatives, all equally similar: log 4
    tensor([1.3863, 1.3863, 1.3863, 1.3863, 1.3863])
    """
    taus, is_single = one_or_many("temperature", temperature, above=0.0)
    anchors, _, candidates, own_rows = check_keys(query, key, negatives, own_index, normalize=normalize)
    anchors, candidates = same_dtype(anchors, candidates)
    entropy = anchors.new_empty(len(anchors), len(taus))
    for r, s in strips(anchors, candidates, own_rows):
        s.sub_(s.amax(1, keepdim=True))
        for i, tau in enumerate(taus):
            e = torch.mul(s, LOG2E / tau).exp2_()
            total = e.sum(1)
            entropy[r, i] = total.log() - (e.mul_(s).sum(1) / total / tau)  # (2)
    return entropy[:, 0] if is_single else entropy


@measure
def relative_penalty(
    query: Any,
    key: Any,
    negatives: Any = None,
    own_index: Any = None,
    *,
    temperature: float,
    normalize: bool = True,
) -> Tensor:
    """Relative penalty (1) for every anchor and candidate; it holds all of ``[N, M]``, so pass few anchors.

    Args:
        query: Anchors ``[N, D]``.
        key: Their positives ``[N, D]``; without ``negatives`` the rows are the candidates.
        negatives: The candidates ``[M, D]``.
        own_index: For each anchor ``[N]`` its own row of ``negatives``.
        temperature: τ.
        normalize: Whether rows are scaled to length one.

    Returns:
        The penalties ``[N, M]``: each row sums to 1 and is 0 at the anchor's own row.

    Raises:
        ValueError: Shapes do not fit, rows hold NaN or infinity, no negative is left, or ``temperature`` is not above
            0.

    >>> key = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    >>> relative_penalty(key[:1], key[:1], key[1:], temperature=1.0)  # similarities 0 and 1
    tensor([[0.2689, 0.7311]])
    """
    tau = number("temperature", temperature, above=0.0)
    anchors, _, candidates, own_rows = check_keys(query, key, negatives, own_index, normalize=normalize)
    anchors, candidates = same_dtype(anchors, candidates)
    s = anchors @ candidates.T
    if own_rows is not None:
        s.scatter_(1, own_rows[:, None], HIDDEN)
    return (s / tau).softmax(1)  # (1)


def penalty_curve(similarities: Tensor, temperature: float) -> Tensor:
    """Relative penalty (1) as a function of similarities; Wang & Liu's figure 3 spreads them over −1 … 1.

    Args:
        similarities: Similarities of an anchor to its negatives, along the last dimension.
        temperature: τ.

    Returns:
        The penalties, in the shape of ``similarities``.

    Raises:
        ValueError: ``temperature`` is not above 0.

    >>> penalty_curve(torch.tensor([-1.0, 0.0, 1.0]), temperature=0.5)
    tensor([0.0159, 0.1173, 0.8668])
    """
    tau = number("temperature", temperature, above=0.0)
    return (as_tensor(similarities) / tau).softmax(-1)
