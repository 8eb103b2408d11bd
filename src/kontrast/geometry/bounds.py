"""Lower bounds of the losses in closed form, and where a loss value stands between chance and its bound (`standing`).

>>> from kontrast import losses
>>> from kontrast.geometry import bounds
>>> bounds.standing(losses.InfoNCELoss(temperature=0.1), 3.0, num_negatives=4096)
Standing(chance=8.318..., collapsed=8.318..., bound=8.44...e-06, value=3.0)
"""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import torch

from kontrast import losses
from kontrast.closed_forms import (
    anchor_value,
    batches_with,
    cross_entropy,
    cross_entropy_any,
    hyperspherical_energy,
    info_nce,
    info_nce_beside,
    info_nce_queue,
    regularised_cross_entropy,
    regularised_weight_radius,
    simplex_response,
    supcon_all_batches,
    supcon_batch,
    tcl_batch,
)

__all__ = [
    "Standing",
    "anchor_value",
    "batches_with",
    "cross_entropy",
    "cross_entropy_any",
    "hyperspherical_energy",
    "info_nce",
    "info_nce_beside",
    "info_nce_queue",
    "regularised_cross_entropy",
    "regularised_weight_radius",
    "simplex_response",
    "standing",
    "supcon_all_batches",
    "supcon_batch",
    "tcl_batch",
]


@dataclass(frozen=True)
class Standing:
    """A loss value between chance and its bound.

    Attributes:
        chance: The loss with all similarities 0, as unrelated embeddings in many dimensions have them.
        collapsed: The loss with all embeddings equal.
        bound: The value that no embeddings can go below.
        value: The loss itself; None if no value was passed.

    >>> Standing(chance=4.0, collapsed=4.0, bound=1.0, value=2.5).share
    0.5
    """

    chance: float
    collapsed: float
    bound: float
    value: float | None = None

    @property
    def share(self) -> float | None:
        """The share of the way from chance (0) to the bound (1); negative above chance, None without a value."""
        if self.value is None or self.chance == self.bound:
            return None
        return (self.chance - self.value) / (self.chance - self.bound)


def standing(
    loss: losses.Loss,
    value: float | torch.Tensor | None = None,
    *,
    labels: Any = None,
    num_pairs: int | None = None,
    num_views: int = 1,
    num_negatives: int | None = None,
    target_entropy: float = 0.0,
    radius: float | None = None,
) -> Standing | None:
    """Chance, collapsed value and bound of a loss on a batch like this, and where ``value`` stands between them.

    Which arguments a loss needs:

    - SupCon, TCL: ``labels`` of the batch and ``num_views`` of each row; without labels ``num_pairs`` instances.
    - NT-Xent: ``num_pairs``. InfoNCE, hard, simple: ``num_pairs`` in a batch, ``num_negatives`` against a queue, both
      with ``negatives_in_batch=True``.
    - ReSSL, SCE: the same, and ``target_entropy``.
    - Cross-entropy: ``labels`` (balanced if left out) and ``radius``.

    Args:
        loss: The loss.
        value: Its value, a number or a scalar tensor.
        labels: The labels of the batch.
        num_pairs: How many pairs (or instances without labels) the batch has.
        num_views: How many views each row or instance has.
        num_negatives: How many rows a queue or a memory bank has.
        target_entropy: The mean entropy of the target relations,
            ``penalty_entropy(target, target, queue, temperature=target_temperature).mean()``.
        radius: The largest norm of an embedding, for losses with ``normalize=False``.

    Returns:
        The standing, on the scale of the loss: means, or sums for ``reduction="sum"``. None if the loss knows no limits
        (`Loss.limits`).

    Raises:
        ValueError: If an argument that the loss needs is missing or wrong.

    >>> from kontrast import losses
    >>> at = standing(losses.SupConLoss(temperature=0.5), 1.0, labels=[0, 0, 1, 1])
    >>> [round(x, 4) for x in (at.chance, at.bound, at.share)]  # log 3, log(1 + 2 e^{−4}), the share of the way
    [1.0986, 0.036, 0.0928]
    """
    limits = loss.limits(losses.Batch(labels, num_pairs, num_views, num_negatives, target_entropy, radius))
    if isinstance(value, torch.Tensor) and value.numel() == 1:
        value = float(value.detach())
    if value is not None and not isinstance(value, numbers.Real):
        raise ValueError(f"value must be the loss as a number or a scalar tensor, got {value!r}")
    return None if limits is None else Standing(*limits, None if value is None else float(value))
