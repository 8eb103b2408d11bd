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

import functools
from collections.abc import Sequence

import torch
from torch import Tensor

from kontrast.autograd import full_precision
from kontrast.checks import true_or_false, whole_number
from kontrast.engine import LOG2E, Grads, Rows, Softmax, Tile, row_shift, strips_over_both, tiled
from kontrast.losses._base import Core, Options
from kontrast.losses._keys import KeyLoss, Keys, dense, nearest, nearest_mask
from kontrast.losses._limits import Batch, Limits, key_limits


@full_precision
def hard_contrastive(
    query: Tensor,
    key: Tensor,
    negatives: Tensor | None = None,
    own_index: Tensor | None = None,
    *,
    temperature: float | Tensor = 0.1,
    hard_negatives: int = 4095,
    negatives_in_batch: bool = False,
    normalize: bool = True,
    reduction: str = "mean",
    gather_distributed: bool = True,
    tile: Tile = "auto",
) -> Tensor:
    """InfoNCE over the nearest negatives of each anchor.

    Args:
        query: ``[N, D]``, the anchors.
        key: ``[N, D]``; row i is the positive of query i.
        negatives: ``[K, D]``, the rows of a queue or a memory bank. None: the other keys are the negatives.
        own_index: ``[N]``, each anchor's own row of ``negatives`` (of a memory bank), which is left out.
        temperature: τ, a number above 0, or a scalar tensor, which may be learned.
        hard_negatives: How many nearest negatives each anchor keeps; all, if there are fewer.
        negatives_in_batch: Whether the other keys of the batch stay negatives beside ``negatives``.
        normalize: Put the rows on the unit sphere first. A zero row stays zero and gets no gradient.
        reduction: "mean" or "sum" over the anchors of all processes, or "none" for a value per anchor.
        gather_distributed: With several processes, compare with the rows of all of them.
        tile: The side of the blocks it is computed in; "auto" is measured. It changes time and memory only.

    Returns:
        A scalar, or with ``reduction="none"`` the values ``[N]``.

    Raises:
        ValueError: For inputs or options that do not fit; it says which and what would.

    >>> q, queue = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0], [-1.0, 0.0]])
    >>> hard_contrastive(q, q, negatives=queue, temperature=1.0, hard_negatives=1)  # log(1 + e⁻¹)
    tensor(0.3133)
    """
    options = Options(
        temperature, normalize=normalize, reduction=reduction, gather_distributed=gather_distributed, tile=tile
    )
    true_or_false("negatives_in_batch", negatives_in_batch)
    k = whole_number("hard_negatives", hard_negatives, least=1)
    keys = Keys.of(options, query, key, negatives, own_index, negatives_in_batch=negatives_in_batch)
    core = keys.over_all() if k >= keys.num_negatives else _over_nearest(keys, k)  # nothing to choose: InfoNCE
    return keys.reduce(core, functools.partial(reference, hard_negatives=k, negatives_in_batch=negatives_in_batch))


class HardContrastiveLoss(KeyLoss):
    """The hard contrastive loss as a module; `hard_contrastive` is its function.

    Args:
        temperature: τ, a number above 0, or a scalar tensor, which may be learned.
        hard_negatives: How many nearest negatives each anchor keeps; all, if there are fewer.
        negatives_in_batch: Whether the other keys of the batch stay negatives beside ``negatives``.
        normalize: Put the rows on the unit sphere first. A zero row stays zero and gets no gradient.
        reduction: "mean" or "sum" over the anchors of all processes, or "none" for a value per anchor.
        gather_distributed: With several processes, compare with the rows of all of them.
        tile: The side of the blocks it is computed in; "auto" is measured. It changes time and memory only.

    Call the module with ``(query, key, negatives=None, own_index=None)``; see `hard_contrastive`.

    Raises:
        ValueError: For an option out of range.

    >>> q = torch.tensor([[1.0, 0.0]])
    >>> queue = torch.tensor([[0.0, 1.0], [-1.0, 0.0]])
    >>> HardContrastiveLoss(temperature=1.0, hard_negatives=1)(q, q, negatives=queue)  # log(1 + e⁻¹)
    tensor(0.3133)
    """

    function = staticmethod(hard_contrastive)

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
        self.temperature = temperature
        self.hard_negatives = whole_number("hard_negatives", hard_negatives, least=1)

    def limits(self, batch: Batch) -> Limits:
        """Chance, collapsed value and bound; see `Loss.limits`."""
        return key_limits(self, batch, nearest=self.hard_negatives)


def _over_nearest(keys: Keys, k: int) -> Core:
    """(1)."""
    options = keys.options
    x, scale, positive, bounded = keys.logits()

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

        return strips_over_both(x, c, more, block, scale=scale, weight=weight, needs=needs, tile=options.tile)

    return lambda weight: tiled(run, weight, x, keys.candidates, positive, keys.more)


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
