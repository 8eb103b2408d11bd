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

from collections.abc import Sequence

import torch
from torch import Tensor

from kontrast.autograd import Twin
from kontrast.checks import number, true_or_false, whole_number
from kontrast.losses._base import Core
from kontrast.losses._keys import KeyLoss, Keys, dense
from kontrast.losses._limits import Batch, Limits
from kontrast.losses._nearest import nearest, nearest_mask
from kontrast.losses._tiles import LOG2E, Grads, Rows, Tile, strips_over_both, tiled


class SimpleContrastiveLoss(KeyLoss):
    """−s_ii + λ Σ s_ij, with λ = ``weight``, or 1/(number of negatives kept) if it is None.

    >>> q = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> k = torch.tensor([[1.0, 0.0], [0.6, 0.8]])
    >>> SimpleContrastiveLoss(reduction="none")(q, k)  # −1 + 0.6, −0.8 + 0
    tensor([-0.4000, -0.8000])
    """

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

    def _core(self, keys: Keys) -> Core:
        k = min(self.hard_negatives or keys.num_negatives, keys.num_negatives)
        lam = 1.0 / max(k, 1) if self.weight is None else self.weight
        positive = (keys.query * keys.key).sum(1)

        def everyone(weight: Tensor | None) -> Tensor:
            # Linear in the candidates: their sum serves every anchor, and no similarity is computed.
            whole = keys.candidates.sum(0) if keys.more is None else keys.candidates.sum(0) + keys.more.sum(0)
            pushed = keys.query @ whole
            if keys.in_batch:
                pushed = pushed - positive
            if keys.own_index is not None:
                pushed = pushed - (keys.query * keys.bank.index_select(0, keys.own_index)).sum(1)
            values = lam * pushed - positive  # (1)
            return values if weight is None else torch.dot(weight, values)

        def run(tensors: Sequence[Tensor], weight: Tensor | None, needs: Sequence[bool]) -> tuple[Tensor, Grads]:
            x, c, positive, more = tensors

            def block(logits: Tensor, r: slice, grad: bool) -> Rows:
                keys.own(logits, r, slice(0, logits.shape[1]))
                kept, where = nearest(logits, k)
                if grad:
                    logits.zero_().scatter_(1, where, lam)
                pulled = positive[r]
                ones = torch.ones_like(pulled)
                return Rows(kept.sum(1) * (lam / LOG2E) - pulled, ones, -ones)  # (1)

            return strips_over_both(x, c, more, block, scale=1.0, weight=weight, needs=needs, tile=self.tile)

        def nearest_only(weight: Tensor | None) -> Tensor:
            return tiled(run, weight, keys.query, keys.candidates, positive, keys.more)

        return everyone if k == keys.num_negatives else nearest_only

    def _twin(self, keys: Keys, negatives: Tensor | None) -> Twin | None:
        plain = self.hard_negatives is None or self.hard_negatives >= keys.num_negatives
        return None if plain else super()._twin(keys, negatives)

    def _reference(
        self, query: Tensor, key: Tensor, negatives: Tensor | None, own_index: Tensor | None, tau: float | Tensor
    ) -> Tensor:
        """Without a temperature: ``tau`` means nothing here."""
        return reference(
            query,
            key,
            negatives,
            own_index,
            weight=self.weight,
            hard_negatives=self.hard_negatives,
            negatives_in_batch=self.negatives_in_batch,
        )


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
