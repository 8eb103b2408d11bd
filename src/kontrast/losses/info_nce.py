r"""InfoNCE, the contrastive loss.

With unit vectors, s_ii = ⟨query_i, key_i⟩ the positive and s_ik, k ≠ i, the negatives (the other keys of the
batch, or the rows of a queue or memory bank; with ``negatives_in_batch`` both):

    (1)  L_i = −log( e^{s_ii/τ} / (e^{s_ii/τ} + Σ_{k≠i} e^{s_ik/τ}) )
    (2)  P_ij = e^{s_ij/τ} / (e^{s_ii/τ} + Σ_{k≠i} e^{s_ik/τ})
    (3)  ∂L_i/∂s_ii = −(1/τ) Σ_{k≠i} P_ik,     ∂L_i/∂s_ij = P_ij/τ

(Wang & Liu, "Understanding the Behaviour of Contrastive Loss", eqs 1, 2, 4; the loss of MoCo with a queue.)

With both, the N keys of the batch and M rows h_m given, written out:

    (6)  L_i = −log( e^{s_ii/τ} / (Σ_{k=1…N} e^{s_ik/τ} + Σ_{m=1…M} e^{⟨query_i, h_m⟩/τ}) )

which is sentence-transformers' MultipleNegativesRankingLoss at scale = 1/τ, h being its hard negatives.

Its limits, with n = 1 + the number of negatives and s_max the largest negative (eqs 6 and 7 there):

    (4)  τ → 0⁺:   L_i → max(s_max − s_ii, 0)/τ
    (5)  τ → ∞:    L_i → log n − ((n−1)/(nτ)) s_ii + (1/(nτ)) Σ_{k≠i} s_ik

Deviates: the authors' code adds 1e-7 to the probability inside the logarithm; (1) has no such term. It also
takes SingleLoss, the limit (4), with the positive among the candidates of the maximum and without 1/τ; (4)
keeps both as printed.
"""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from kontrast.autograd import full_precision
from kontrast.checks import true_or_false
from kontrast.engine import Tile
from kontrast.losses._base import Options
from kontrast.losses._keys import KeyLoss, Keys, dense
from kontrast.losses._limits import Batch, Limits, key_limits


@full_precision
def info_nce(
    query: Tensor,
    key: Tensor,
    negatives: Tensor | None = None,
    own_index: Tensor | None = None,
    *,
    temperature: float | Tensor = 0.1,
    negatives_in_batch: bool = False,
    normalize: bool = True,
    reduction: str = "mean",
    gather_distributed: bool = True,
    tile: Tile = "auto",
) -> Tensor:
    """InfoNCE of each query against its key and the negatives.

    Args:
        query: ``[N, D]``, the anchors.
        key: ``[N, D]``; row i is the positive of query i.
        negatives: ``[K, D]``, the rows of a queue or a memory bank. None: the other keys are the negatives.
        own_index: ``[N]``, each anchor's own row of ``negatives`` (of a memory bank), which is left out.
        temperature: τ, a number above 0, or a scalar tensor, which may be learned.
        negatives_in_batch: Whether the other keys of the batch stay negatives beside ``negatives``.
        normalize: Put the rows on the unit sphere first. A zero row stays zero and gets no gradient.
        reduction: "mean" or "sum" over the anchors of all processes, or "none" for a value per anchor.
        gather_distributed: With several processes, compare with the rows of all of them.
        tile: The side of the blocks it is computed in; "auto" is measured. It changes time and memory only.

    Returns:
        A scalar, or with ``reduction="none"`` the values ``[N]``.

    Raises:
        ValueError: For inputs or options that do not fit; it says which and what would.

    >>> info_nce(torch.eye(3), torch.eye(3), temperature=1.0)  # log(e + 2) − 1
    tensor(0.5514)
    """
    options = Options(
        temperature, normalize=normalize, reduction=reduction, gather_distributed=gather_distributed, tile=tile
    )
    true_or_false("negatives_in_batch", negatives_in_batch)
    keys = Keys.of(options, query, key, negatives, own_index, negatives_in_batch=negatives_in_batch)
    return keys.reduce(keys.over_all(), functools.partial(reference, negatives_in_batch=negatives_in_batch))  # (1), (6)


class InfoNCELoss(KeyLoss):
    """InfoNCE as a module; `info_nce` is its function.

    Args:
        temperature: τ, a number above 0, or a scalar tensor, which may be learned.
        negatives_in_batch: Whether the other keys of the batch stay negatives beside ``negatives``.
        normalize: Put the rows on the unit sphere first. A zero row stays zero and gets no gradient.
        reduction: "mean" or "sum" over the anchors of all processes, or "none" for a value per anchor.
        gather_distributed: With several processes, compare with the rows of all of them.
        tile: The side of the blocks it is computed in; "auto" is measured. It changes time and memory only.

    Call the module with ``(query, key, negatives=None, own_index=None)``; see `info_nce`.

    Raises:
        ValueError: For an option out of range.

    >>> q, k = torch.eye(3), torch.eye(3)
    >>> InfoNCELoss(temperature=1.0)(q, k)  # log(e + 2) − 1
    tensor(0.5514)

    With ``negatives`` the other keys of the batch are no candidates; ``negatives_in_batch=True`` keeps them:

    >>> queue = torch.eye(3)[[1, 1, 2]]
    >>> InfoNCELoss(temperature=1.0, reduction="none")(q, k, negatives=queue)
    tensor([0.7437, 1.2143, 1.0064])
    >>> InfoNCELoss(temperature=1.0, reduction="none", negatives_in_batch=True)(q, k, negatives=queue)
    tensor([1.0436, 1.4119, 1.2446])
    """

    function = staticmethod(info_nce)

    def __init__(
        self,
        temperature: float | Tensor = 0.1,
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

    def limits(self, batch: Batch) -> Limits:
        """Chance, collapsed value and bound; see `Loss.limits`."""
        return key_limits(self, batch)


def reference(
    query: Tensor,
    key: Tensor,
    negatives: Tensor | None = None,
    own_index: Tensor | None = None,
    *,
    temperature: float | Tensor,
    negatives_in_batch: bool = False,
) -> Tensor:
    """(1) with all similarities at once, per anchor; rows are taken as they are."""
    positive, s, is_negative = dense(query, key, negatives, own_index, negatives_in_batch)
    pushed = (s / temperature).masked_fill(~is_negative, -torch.inf)
    logits = torch.cat([positive[:, None] / temperature, pushed], dim=1)
    return -logits.log_softmax(1)[:, 0]  # (1)


def cold_limit(
    query: Tensor,
    key: Tensor,
    negatives: Tensor | None = None,
    own_index: Tensor | None = None,
    *,
    negatives_in_batch: bool = False,
) -> Tensor:
    """lim τ·L_i for τ → 0⁺, per anchor: a triplet loss of margin 0 on the hardest negative (4).

    Rows are taken as they are.

    >>> cold_limit(torch.eye(2), torch.tensor([[0.6, 0.8], [0.8, 0.6]]))
    tensor([0.2000, 0.2000])
    """
    positive, s, is_negative = dense(query, key, negatives, own_index, negatives_in_batch)
    hardest = s.masked_fill(~is_negative, -torch.inf).amax(1)
    return (hardest - positive).clamp(min=0)  # (4)


def hot_limit(
    query: Tensor,
    key: Tensor,
    negatives: Tensor | None = None,
    own_index: Tensor | None = None,
    *,
    temperature: float,
    negatives_in_batch: bool = False,
) -> Tensor:
    """What L_i tends to for τ → ∞, per anchor (5): the simple contrastive loss, up to scale and log n.

    Rows are taken as they are.

    >>> hot_limit(torch.eye(2), torch.eye(2), temperature=100.0)
    tensor([0.6881, 0.6881])
    """
    positive, s, is_negative = dense(query, key, negatives, own_index, negatives_in_batch)
    n = (is_negative.sum(1) + 1).to(s.dtype)
    linear = (s * is_negative).sum(1) - (n - 1) * positive
    return n.log() + linear / (n * temperature)  # (5)
