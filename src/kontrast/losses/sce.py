r"""SCE, similarity contrastive estimation: InfoNCE with soft targets from the samples' own relations.

z¹ = online, z² = target (no gradient), unit rows; the candidates are the batch's target rows, or the anchor's own
target row followed by a queue:

    (1)  p_ik = e^{⟨z¹_i, z²_k⟩/τ} / Σ_j e^{⟨z¹_i, z²_j⟩/τ}                       own row included
    (2)  s_ik = 1[i≠k] e^{⟨z²_i, z²_k⟩/τ_m} / Σ_j 1[i≠j] e^{⟨z²_i, z²_j⟩/τ_m}     own row excluded
    (3)  w_ik = λ 1[i=k] + (1−λ) s_ik
    (4)  L_i = −Σ_k w_ik log p_ik
    (5)  L_i = λ L_InfoNCE + (1−λ)(L_ReSSL + L_Ceil),   L_Ceil = −log( Σ_{j≠i} e^{…/τ} / Σ_j e^{…/τ} )

    (6)  L_i = L_InfoNCE + (1−λ) ⟨z¹_i, z²_i − m_i⟩/τ,   m_i = Σ_k s_ik z²_k

(Denize et al., supplement sections A and B; (6) is (4) with log p written out, and how it is computed.) λ = 1 is
InfoNCE; λ = 0 is ReSSL plus the ceiling, not ReSSL alone.

Deviates: the published pseudo-code and code put the logit 0 into the own slot of (2) instead of leaving it out,
which leaks e⁰ of mass; ``self_logit="zero"`` computes that, the default "masked" is (2). The code's queue form
has no batch negatives; neither has this. An anchor with nobody to relate to (a batch of one) has the value 0.
"""

from __future__ import annotations

import functools
import math

import torch
from torch import Tensor

from kontrast.autograd import full_precision
from kontrast.checks import number, one_of
from kontrast.engine import Tile, log_normaliser
from kontrast.losses._base import Options
from kontrast.losses._limits import Batch, Limits
from kontrast.losses._relations import RelationLoss, Relations, SCETerms
from kontrast.losses.ressl import ressl


@full_precision
def sce(
    online: Tensor,
    target: Tensor,
    queue: Tensor | None = None,
    *,
    temperature: float | Tensor = 0.1,
    target_temperature: float = 0.05,
    contrastive_weight: float = 0.5,
    self_logit: str = "masked",
    normalize: bool = True,
    reduction: str = "mean",
    gather_distributed: bool = True,
    tile: Tile = "auto",
) -> Tensor:
    """Soft contrastive loss: InfoNCE whose target is softened by the samples' own relations.

    Args:
        online: ``[N, D]``, the rows that learn.
        target: ``[N, D]``, the target network's rows of the same samples. They get no gradient.
        queue: ``[K, D]``, the candidates. None: the target rows of the batch are.
        temperature: τ, a number above 0, or a scalar tensor, which may be learned.
        target_temperature: τ_m, a number above 0; the smaller, the sharper the target.
        contrastive_weight: λ, a share from 0 to 1: 1 is InfoNCE.
        self_logit: "masked" leaves the own slot out of the target distribution (2); "zero" gives it the logit 0.
        normalize: Put the rows on the unit sphere first. A zero row stays zero and gets no gradient.
        reduction: "mean" or "sum" over the anchors of all processes, or "none" for a value per anchor.
        gather_distributed: With several processes, compare with the rows of all of them.
        tile: The side of the blocks it is computed in; "auto" is measured. It changes time and memory only.

    Returns:
        A scalar, or with ``reduction="none"`` the values ``[N]``.

    Raises:
        ValueError: For inputs or options that do not fit; it says which and what would.

    >>> sce(torch.eye(3), torch.eye(3), temperature=1.0, target_temperature=1.0)  # log(e + 2) − λ
    tensor(1.0514)
    """
    options = Options(
        temperature, normalize=normalize, reduction=reduction, gather_distributed=gather_distributed, tile=tile
    )
    target_tau = number("target_temperature", target_temperature, above=0.0)
    lam = _share(contrastive_weight)
    one_of("self_logit", self_logit, ("masked", "zero"))
    relations = Relations.of(options, online, target, queue)
    core = relations.relate(  # (6)
        target_tau, own_slot=True, zero_logit=self_logit == "zero", contrastive_weight=lam
    )
    dense = functools.partial(reference, target_temperature=target_tau, contrastive_weight=lam, self_logit=self_logit)
    return relations.reduce(core, dense)


class SCELoss(RelationLoss):
    """SCE as a module; `sce` is its function.

    Args:
        temperature: τ, a number above 0, or a scalar tensor, which may be learned.
        target_temperature: τ_m, a number above 0; the smaller, the sharper the target.
        contrastive_weight: λ, a share from 0 to 1: 1 is InfoNCE.
        self_logit: "masked" leaves the own slot out of the target distribution (2); "zero" gives it the logit 0.
        normalize: Put the rows on the unit sphere first. A zero row stays zero and gets no gradient.
        reduction: "mean" or "sum" over the anchors of all processes, or "none" for a value per anchor.
        gather_distributed: With several processes, compare with the rows of all of them.
        tile: The side of the blocks it is computed in; "auto" is measured. It changes time and memory only.

    Call the module with ``(online, target, queue=None)``; see `sce`.

    Raises:
        ValueError: For an option out of range.

    >>> online, target = torch.eye(3), torch.eye(3)
    >>> SCELoss(temperature=1.0, target_temperature=1.0)(online, target)  # log(e + 2) − λ
    tensor(1.0514)
    """

    function = staticmethod(sce)

    def __init__(
        self,
        temperature: float | Tensor = 0.1,
        target_temperature: float = 0.05,
        contrastive_weight: float = 0.5,
        *,
        self_logit: str = "masked",
        normalize: bool = True,
        reduction: str = "mean",
        gather_distributed: bool = True,
        tile: Tile = "auto",
    ) -> None:
        super().__init__(normalize=normalize, reduction=reduction, gather_distributed=gather_distributed, tile=tile)
        self.temperature = temperature
        self.target_temperature = number("target_temperature", target_temperature, above=0.0)
        self.contrastive_weight = _share(contrastive_weight)
        self.self_logit = one_of("self_logit", self_logit, ("masked", "zero"))

    def limits(self, batch: Batch) -> Limits:
        """Chance, collapsed value and bound; see `Loss.limits`.

        A cross-entropy is never below its target's entropy, here of w = λ·own + (1−λ)·s.
        """
        others = sum(batch.candidates(self))
        chance = math.log(others + 1) if others else 0.0
        batch.check_entropy(others)
        share = 1 - self.contrastive_weight
        bound = 0.0  # the zero logit puts an unknown share of s on the own slot
        if self.self_logit == "masked":
            bound = share * batch.target_entropy + sum(-x * math.log(x) for x in (share, 1 - share) if x > 0)
        return Limits(chance, chance, min(bound, chance)).scaled(batch.terms(self))


def _share(contrastive_weight: float) -> float:
    return number("contrastive_weight", contrastive_weight, least=0.0, most=1.0)


def sce_terms(
    online: Tensor,
    target: Tensor,
    queue: Tensor | None = None,
    *,
    temperature: float | Tensor = 0.1,
    target_temperature: float = 0.05,
    normalize: bool = True,
    gather_distributed: bool = True,
) -> SCETerms:
    """The three parts of (5) per anchor: what InfoNCE, ReSSL and the ceiling each contribute (own slot masked).

    Args:
        online: ``[N, D]``, the rows that learn.
        target: ``[N, D]``, the target network's rows of the same samples. They get no gradient.
        queue: ``[K, D]``, the candidates. None: the target rows of the batch are.
        temperature: τ, a number above 0, or a scalar tensor, which may be learned.
        target_temperature: τ_m, a number above 0; the smaller, the sharper the target.
        normalize: Put the rows on the unit sphere first.
        gather_distributed: With several processes, compare with the rows of all of them.

    Returns:
        The terms, ``[N]`` each.

    Raises:
        ValueError: For inputs or options that do not fit.

    >>> terms = sce_terms(torch.eye(3), torch.eye(3), temperature=1.0, target_temperature=1.0)
    >>> terms.info_nce[0], terms.ressl[0], terms.ceil[0]
    (tensor(0.5514), tensor(0.6931), tensor(0.8583))
    >>> terms.combine(contrastive_weight=0.5).mean()  # SCELoss(1.0, 1.0, 0.5)
    tensor(1.0514)
    """
    options = Options(temperature, normalize=normalize, reduction="none", gather_distributed=gather_distributed)
    contrast, relation = (
        function(
            online,
            target,
            queue,
            temperature=temperature,
            target_temperature=target_temperature,
            normalize=normalize,
            gather_distributed=gather_distributed,
            reduction="none",
        )
        for function in (functools.partial(sce, contrastive_weight=1.0), ressl)
    )
    relations = Relations.of(options, online, target, queue)
    if relations.others() == 0:
        return SCETerms(contrast, relation, torch.zeros_like(relation))
    x, scale = options.scaled(relations.online)
    positive = (x * relations.target).sum(1) * scale
    bounded = options.is_bounded(relations.online, relations.candidates)

    def log_others(weight: Tensor | None) -> Tensor:
        return positive - log_normaliser(
            x, relations.candidates, hide=relations.own, scale=scale, bounded=bounded, weight=weight, tile="auto"
        )

    def dense_log_others(online: Tensor, target: Tensor, queue: Tensor | None, temperature: float | Tensor) -> Tensor:
        logits = online @ (target if queue is None else queue).T / temperature
        logits = logits if queue is not None else logits.fill_diagonal_(-torch.inf)
        return (online * target).sum(1) / temperature - logits.logsumexp(1)

    ceil = contrast + relations.reduce(log_others, dense_log_others)  # log Σ_j − log Σ_{j≠i}
    return SCETerms(contrast, relation, ceil)


def reference(
    online: Tensor,
    target: Tensor,
    queue: Tensor | None = None,
    *,
    temperature: float | Tensor,
    target_temperature: float,
    contrastive_weight: float,
    self_logit: str = "masked",
) -> Tensor:
    """(4) with all similarities at once, per anchor; rows are taken as they are. Column 0 is the own row."""
    target = target.detach()
    others = target if queue is None else queue.detach()
    own = (online * target).sum(1, keepdim=True)
    logits, targets = online @ others.T / temperature, target @ others.T / target_temperature
    if queue is None:
        logits, targets = (m.fill_diagonal_(-torch.inf) for m in (logits, targets))
    log_p = torch.cat([own / temperature, logits], dim=1).log_softmax(1)  # (1)
    self_slot = torch.full_like(own, 0.0 if self_logit == "zero" else -torch.inf)
    s = torch.cat([self_slot, targets], dim=1).softmax(1).nan_to_num(0.0)  # (2)
    w = (1 - contrastive_weight) * s
    w[:, 0] = torch.where(s.sum(1) == 0, 1.0, w[:, 0] + contrastive_weight)  # (3)
    return -(w * log_p.masked_fill(w == 0, 0.0)).sum(1)  # (4)
