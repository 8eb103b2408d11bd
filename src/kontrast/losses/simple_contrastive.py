r"""The simple contrastive loss, and, with ``hard_negatives``, the hard simple one.

No temperature and no logarithm: the positive is pulled, every negative pushed alike,

    (1)  L_i = −s_ii + λ Σ_{j≠i} s_ij                    the sum over the kept negatives, all or the k nearest

The negatives are the other keys of the batch, or the rows given, or, with ``negatives_in_batch``, both.

With λ = 1/(number of negatives kept) it is, up to scale and a constant, the limit of InfoNCE for τ → ∞.
(Wang & Liu, eq 3; "HardSimple" keeps the nearest 4,095.)

Deviates: the paper gives λ no value. The authors' code takes 1/N over all N rows of the bank with the positive
among them, which is (N−1)/N times (1) with λ = 1/(N−1); the default here is that λ without the factor.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from kontrast.autograd import full_precision
from kontrast.checks import number, true_or_false, whole_number
from kontrast.engine import LOG2E, Grads, Rows, Tile, strips_over_both, tiled
from kontrast.losses._base import Core, Options
from kontrast.losses._keys import KeyLoss, Keys, dense, nearest, nearest_mask
from kontrast.losses._limits import Batch, Limits


@full_precision
def simple_contrastive(
    query: Tensor,
    key: Tensor,
    negatives: Tensor | None = None,
    own_index: Tensor | None = None,
    *,
    weight: float | None = None,
    hard_negatives: int | None = None,
    negatives_in_batch: bool = False,
    normalize: bool = True,
    reduction: str = "mean",
    gather_distributed: bool = True,
    tile: Tile = "auto",
) -> Tensor:
    """−s_ii + λ Σ s_ij: no temperature and no logarithm.

    Args:
        query: ``[N, D]``, the anchors.
        key: ``[N, D]``; row i is the positive of query i.
        negatives: ``[K, D]``, the rows of a queue or a memory bank. None: the other keys are the negatives.
        own_index: ``[N]``, each anchor's own row of ``negatives`` (of a memory bank), which is left out.
        weight: λ, at least 0; None: 1/(number of negatives kept).
        hard_negatives: How many nearest negatives each anchor keeps; None: all.
        negatives_in_batch: Whether the other keys of the batch stay negatives beside ``negatives``.
        normalize: Put the rows on the unit sphere first. A zero row stays zero and gets no gradient.
        reduction: "mean" or "sum" over the anchors of all processes, or "none" for a value per anchor.
        gather_distributed: With several processes, compare with the rows of all of them.
        tile: The side of the blocks it is computed in; "auto" is measured. It changes time and memory only.

    Returns:
        A scalar, or with ``reduction="none"`` the values ``[N]``.

    Raises:
        ValueError: For inputs or options that do not fit; it says which and what would.

    >>> q, k = torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([[1.0, 0.0], [0.6, 0.8]])
    >>> simple_contrastive(q, k, reduction="none")  # −1 + 0.6, −0.8 + 0
    tensor([-0.4000, -0.8000])
    """
    options = Options(normalize=normalize, reduction=reduction, gather_distributed=gather_distributed, tile=tile)
    true_or_false("negatives_in_batch", negatives_in_batch)
    weight = None if weight is None else number("weight", weight, least=0.0)
    most = None if hard_negatives is None else whole_number("hard_negatives", hard_negatives, least=1)
    keys = Keys.of(options, query, key, negatives, own_index, negatives_in_batch=negatives_in_batch)
    k = min(most or keys.num_negatives, keys.num_negatives)
    lam = 1.0 / max(k, 1) if weight is None else weight
    if k == keys.num_negatives:
        return keys.reduce(_over_all(keys, lam), None)  # plain torch, which has every derivative already
    twin = functools.partial(_reference, weight=weight, hard_negatives=k, negatives_in_batch=negatives_in_batch)
    return keys.reduce(_over_nearest(keys, k, lam), twin)


class SimpleContrastiveLoss(KeyLoss):
    """The simple contrastive loss as a module; `simple_contrastive` is its function.

    Args:
        weight: λ, at least 0; None: 1/(number of negatives kept).
        hard_negatives: How many nearest negatives each anchor keeps; None: all.
        negatives_in_batch: Whether the other keys of the batch stay negatives beside ``negatives``.
        normalize: Put the rows on the unit sphere first. A zero row stays zero and gets no gradient.
        reduction: "mean" or "sum" over the anchors of all processes, or "none" for a value per anchor.
        gather_distributed: With several processes, compare with the rows of all of them.
        tile: The side of the blocks it is computed in; "auto" is measured. It changes time and memory only.

    Call the module with ``(query, key, negatives=None, own_index=None)``; see `simple_contrastive`.

    Raises:
        ValueError: For an option out of range.

    >>> q = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> k = torch.tensor([[1.0, 0.0], [0.6, 0.8]])
    >>> SimpleContrastiveLoss(reduction="none")(q, k)  # −1 + 0.6, −0.8 + 0
    tensor([-0.4000, -0.8000])
    """

    function = staticmethod(simple_contrastive)

    def __init__(
        self,
        weight: float | None = None,
        hard_negatives: int | None = None,
        *,
        negatives_in_batch: bool = False,
        normalize: bool = True,
        reduction: str = "mean",
        gather_distributed: bool = True,
        tile: Tile = "auto",
    ) -> None:
        super().__init__(normalize=normalize, reduction=reduction, gather_distributed=gather_distributed, tile=tile)
        self.negatives_in_batch = true_or_false("negatives_in_batch", negatives_in_batch)
        self.weight = None if weight is None else number("weight", weight, least=0.0)
        self.hard_negatives = (
            None if hard_negatives is None else whole_number("hard_negatives", hard_negatives, least=1)
        )

    def limits(self, batch: Batch) -> Limits:
        """Chance, collapsed value and bound; see `Loss.limits`.

        With μ = λ·(number of negatives kept), Σ⟨q_i, k_i⟩ and ⟨Σq, Σk⟩ bound the loss by −max(1 + μ/(N−1), |μ−1|) in a
        batch; rows beside or instead of the other keys add −1 times their part of μ.
        """
        others, rows = batch.candidates(self)
        negatives = others + rows
        kept = min(negatives, self.hard_negatives or negatives)
        mu = float(kept > 0) if self.weight is None else self.weight * kept
        lam = mu / max(negatives, 1)  # the nearest kept weigh as much as all together with this weight each, or more
        lowest = -(max(1 + lam, abs(lam * others - 1)) + lam * rows) if others else -(1 + mu)
        rho2 = batch.length(self) ** 2
        return Limits(0.0, rho2 * (mu - 1), rho2 * lowest).scaled(batch.terms(self))


def _over_all(keys: Keys, lam: float) -> Core:
    """(1). It is linear in the candidates: their sum serves every anchor, and no similarity is computed."""
    positive = (keys.query * keys.key).sum(1)

    def core(weight: Tensor | None) -> Tensor:
        whole = keys.candidates.sum(0) if keys.more is None else keys.candidates.sum(0) + keys.more.sum(0)
        pushed = keys.query @ whole
        if keys.in_batch:
            pushed = pushed - positive
        if keys.own_index is not None:
            pushed = pushed - (keys.query * keys.bank.index_select(0, keys.own_index)).sum(1)
        values = lam * pushed - positive
        return values if weight is None else torch.dot(weight, values)

    return core


def _over_nearest(keys: Keys, k: int, lam: float) -> Core:
    """(1) with the k nearest negatives of each anchor."""
    positive = (keys.query * keys.key).sum(1)

    def run(tensors: Sequence[Tensor], weight: Tensor | None, needs: Sequence[bool]) -> tuple[Tensor, Grads]:
        x, c, positive, more = tensors

        def block(logits: Tensor, r: slice, grad: bool) -> Rows:
            keys.own(logits, r, slice(0, logits.shape[1]))
            kept, where = nearest(logits, k)
            if grad:
                logits.zero_().scatter_(1, where, lam)
            pulled = positive[r]
            ones = torch.ones_like(pulled)
            return Rows(kept.sum(1) * (lam / LOG2E) - pulled, ones, -ones)

        return strips_over_both(x, c, more, block, scale=1.0, weight=weight, needs=needs, tile=keys.options.tile)

    return lambda weight: tiled(run, weight, keys.query, keys.candidates, positive, keys.more)


def _reference(*rows: Tensor, temperature: float | Tensor, **options: Any) -> Tensor:
    """`reference`, which has no temperature."""
    return reference(*rows, **options)


def reference(
    query: Tensor,
    key: Tensor,
    negatives: Tensor | None = None,
    own_index: Tensor | None = None,
    *,
    weight: float | None,
    hard_negatives: int | None,
    negatives_in_batch: bool = False,
) -> Tensor:
    """(1) with all similarities at once, per anchor; rows are taken as they are."""
    positive, s, is_negative = dense(query, key, negatives, own_index, negatives_in_batch)
    kept = is_negative if hard_negatives is None else nearest_mask(s, is_negative, hard_negatives)
    lam = 1.0 / kept.sum(1).clamp(min=1).to(s.dtype) if weight is None else weight
    return -positive + lam * (s * kept).sum(1)  # (1)
