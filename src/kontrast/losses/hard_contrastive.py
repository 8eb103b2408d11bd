r"""The hard contrastive loss: InfoNCE that keeps only each anchor's nearest negatives.

With N_k(i) the k negatives of anchor i that are most similar to it, chosen among the other keys of the batch, or among
the rows given, or, with ``negatives_in_batch``, among both,

    (1)  L_i = −log( e^{s_ii/τ} / (e^{s_ii/τ} + Σ_{j∈N_k(i)} e^{s_ij/τ}) )

The positive is always in the denominator, and no gradient flows through the choice. With k at least the number
of negatives it is InfoNCE. (Wang & Liu, eqs 8 and 9.)

Deviates: the paper keeps s_ij ≥ s_α, an upper quantile α of the anchor's own negatives, and states α per data
set as "4095 negatives" (two of its four α do not fit that number); here k itself is given. The authors' code
takes the top 4,096 of the whole bank, normally with the positive among them but without it when it is not that
near; (1) always has it. Among negatives equally near the cut, exactly k are kept.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from kontrast.checks import true_or_false, whole_number
from kontrast.losses._base import Core
from kontrast.losses._keys import KeyLoss, Keys, dense
from kontrast.losses._limits import Batch, Limits, key_limits
from kontrast.losses._nearest import nearest, nearest_mask
from kontrast.losses._softmax import Softmax, row_shift
from kontrast.losses._tiles import LOG2E, Grads, Rows, Tile, strips_over_both, tiled


class HardContrastiveLoss(KeyLoss):
    """InfoNCE over the nearest ``hard_negatives`` of each anchor (all, if there are fewer).

    >>> q = torch.tensor([[1.0, 0.0]])
    >>> queue = torch.tensor([[0.0, 1.0], [-1.0, 0.0]])
    >>> HardContrastiveLoss(temperature=1.0, hard_negatives=1)(q, q, negatives=queue)  # log(1 + e⁻¹)
    tensor(0.3133)
    """

    def __init__(
        self,
        temperature: float | Tensor = 0.1,
        hard_negatives: int = 4095,
        *,
        negatives_in_batch: bool = False,
        normalize: bool = True,
        reduction: str = "mean",
        gather_distributed: bool = True,
        tile: Tile = "auto",
    ) -> None:
        super().__init__(normalize=normalize, reduction=reduction, gather_distributed=gather_distributed, tile=tile)
        self.negatives_in_batch = true_or_false("negatives_in_batch", negatives_in_batch)
        self._set_temperature(temperature)
        self.hard_negatives = whole_number("hard_negatives", hard_negatives, least=1)

    def limits(self, batch: Batch) -> Limits:
        """Chance, collapsed value and bound; see `Loss.limits`."""
        return key_limits(self, batch, nearest=self.hard_negatives)

    def _core(self, keys: Keys) -> Core:
        k = self.hard_negatives
        if k >= keys.num_negatives:  # nothing to choose
            return self._over_all(keys)
        x, scale, positive, bounded = self._logits(keys)

        def run(tensors: Sequence[Tensor], weight: Tensor | None, needs: Sequence[bool]) -> tuple[Tensor, Grads]:
            x, c, positive, more = tensors
            softmax = Softmax(positive, keys.own, slot=True, bounded=bounded)

            def block(logits: Tensor, r: slice, grad: bool) -> Rows:
                keys.own(logits, r, slice(0, logits.shape[1]))
                kept, where = nearest(logits, k)
                shift = None
                if not bounded:
                    shift = row_shift(torch.cat([kept, positive[r, None] * LOG2E], dim=1))
                    kept = kept - shift[:, None]
                kept = kept.exp2_()
                if grad:
                    logits.zero_().scatter_(1, where, kept)
                return softmax.rows(kept.sum(1), r, shift)

            return strips_over_both(x, c, more, block, scale=scale, weight=weight, needs=needs, tile=self.tile)

        return lambda weight: tiled(run, weight, x, keys.candidates, positive, keys.more)

    def _reference(
        self, query: Tensor, key: Tensor, negatives: Tensor | None, own_index: Tensor | None, tau: float | Tensor
    ) -> Tensor:
        return reference(
            query,
            key,
            negatives,
            own_index,
            temperature=tau,
            hard_negatives=self.hard_negatives,
            negatives_in_batch=self.negatives_in_batch,
        )


def reference(
    query: Tensor,
    key: Tensor,
    negatives: Tensor | None = None,
    own_index: Tensor | None = None,
    *,
    temperature: float | Tensor,
    hard_negatives: int,
    negatives_in_batch: bool = False,
) -> Tensor:
    """(1) with all similarities at once, per anchor; rows are taken as they are."""
    positive, s, is_negative = dense(query, key, negatives, own_index, negatives_in_batch)
    pushed = (s / temperature).masked_fill(~nearest_mask(s, is_negative, hard_negatives), -torch.inf)
    logits = torch.cat([positive[:, None] / temperature, pushed], dim=1)
    return -logits.log_softmax(1)[:, 0]  # (1)
