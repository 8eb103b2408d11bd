r"""SupCon, the supervised contrastive loss.

A(i) is everything in the batch but i, P(i) ⊂ A(i) the positives (same label, other views included); s_ij = ⟨z_i, z_j⟩:

    (1)  L_i^out = −(1/|P(i)|) Σ_{p∈P(i)} log( e^{s_ip/τ} / Σ_{a∈A(i)} e^{s_ia/τ} )
    (2)  ∂L_i^out/∂z_i = (1/τ)[ Σ_p z_p (P_ip − 1/|P(i)|) + Σ_n z_n P_in ],     P_ia = e^{s_ia/τ}/Σ_{a'} e^{s_ia'/τ}
    (3)  L_i^in  = −log( (1/|P(i)|) Σ_{p∈P(i)} e^{s_ip/τ} / Σ_{a∈A(i)} e^{s_ia/τ} )

(Khosla et al.; the form TCL compares with.) The default is (1), with the mean over the positives outside the
logarithm; ``form="in"`` is (3), by Jensen never larger. On a labelled batch with radius ρ² = 1/τ the sum over
anchors is one batch's term of Graf et al.'s L_SC.

Deviates: SupContrast multiplies by τ/base_τ (base_τ = 0.07), nothing is multiplied here, and it counts an anchor
without positives as 0 in its mean, which is ``no_positive="zero"`` here; the default leaves it out.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import torch
from torch import Tensor

from kontrast.autograd import full_precision
from kontrast.checks import one_of
from kontrast.engine import (
    RANGE,
    Tile,
    hide_both,
    hide_index,
    log_normaliser,
    pair_square,
    plain_block,
    softmax_square,
)
from kontrast.losses._base import Core, Options
from kontrast.losses._groups import GroupLoss, Groups, dense_groups, own_groups
from kontrast.losses._limits import Batch, Limits, group_limits

FORMS = ("out", "in")


@full_precision
def supcon(
    embeddings: Tensor,
    labels: Any = None,
    *,
    positives: Tensor | None = None,
    ref_emb: Tensor | None = None,
    ref_labels: Any = None,
    temperature: float | Tensor = 0.1,
    form: str = "out",
    normalize: bool = True,
    reduction: str = "mean",
    no_positive: str = "skip",
    gather_distributed: bool = True,
    tile: Tile = "auto",
) -> Tensor:
    """SupCon on labelled rows, on views with or without labels, or against a reference set.

    Args:
        embeddings: ``[N, D]``, or ``[N, V, D]`` with V views of each of N instances.
        labels: ``[N]`` integers: rows of one label are each other's positives. None for views without labels, of which
            those of one instance are positives.
        positives: ``[N, N]`` bool instead of labels: who is whose positive. Its diagonal counts for the other views of
            an instance only.
        ref_emb: ``[M, D]``: the candidates, if they are not the embeddings themselves. Nobody is excluded.
        ref_labels: ``[M]``, the labels of ``ref_emb``.
        temperature: τ, a number above 0, or a scalar tensor, which may be learned.
        form: "out" is (1), "in" is (3).
        normalize: Put the rows on the unit sphere first. A zero row stays zero and gets no gradient.
        reduction: "mean" or "sum" over the anchors of all processes, or "none" for a value per anchor.
        no_positive: What becomes of an anchor without a positive: "skip" leaves it out of the mean, "zero" counts it as
            0, "error" raises.
        gather_distributed: With several processes, compare with the rows of all of them.
        tile: The side of the blocks it is computed in; "auto" is measured. It changes time and memory only.

    Returns:
        A scalar, or with ``reduction="none"`` the values ``[N]`` or ``[N, V]``.

    Raises:
        ValueError: For inputs or options that do not fit; it says which and what would.

    >>> z = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> supcon(z, torch.tensor([7, 7, 3]), temperature=1.0, reduction="none")  # log(e + 1) − 1
    tensor([0.3133, 0.3133, 0.0000])
    """
    options = Options(
        temperature, normalize=normalize, reduction=reduction, gather_distributed=gather_distributed, tile=tile
    )
    if form not in FORMS:
        one_of("form", form, FORMS)
    groups = Groups(options, embeddings, labels, positives, ref_emb, ref_labels, no_positive)
    core = _outside(groups) if form == "out" else _inside(groups)
    return groups.reduce(core, functools.partial(reference, form=form))


class SupConLoss(GroupLoss):
    """SupCon as a module; `supcon` is its function.

    Args:
        temperature: τ, a number above 0, or a scalar tensor, which may be learned.
        form: "out" (default) has the mean over the positives outside the logarithm, "in" inside.
        normalize: Put the rows on the unit sphere first. A zero row stays zero and gets no gradient.
        reduction: "mean" or "sum" over the anchors of all processes, or "none" for a value per anchor.
        no_positive: What becomes of an anchor without a positive: "skip" leaves it out of the mean, "zero" counts it as
            0, "error" raises.
        gather_distributed: With several processes, compare with the rows of all of them.
        tile: The side of the blocks it is computed in; "auto" is measured. It changes time and memory only.

    Call the module with ``(embeddings, labels)``, with views ``[N, V, D]``, or with ``positives=`` or
    ``ref_emb=`` and ``ref_labels=``; see `supcon`.

    Raises:
        ValueError: For an option out of range.

    >>> z = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> SupConLoss(temperature=1.0, reduction="none")(z, torch.tensor([7, 7, 3]))  # log(e + 1) − 1
    tensor([0.3133, 0.3133, 0.0000])
    >>> views = torch.stack([torch.eye(2), torch.eye(2)], dim=1)
    >>> SupConLoss(temperature=1.0)(views)  # no labels: the NT-Xent of both views
    tensor(0.5514)
    """

    function = staticmethod(supcon)

    def __init__(
        self,
        temperature: float | Tensor = 0.1,
        *,
        form: str = "out",
        normalize: bool = True,
        reduction: str = "mean",
        no_positive: str = "skip",
        gather_distributed: bool = True,
        tile: Tile = "auto",
    ) -> None:
        super().__init__(normalize=normalize, reduction=reduction, gather_distributed=gather_distributed, tile=tile)
        self.temperature = temperature
        self.form = one_of("form", form, FORMS)
        self.no_positive = one_of("no_positive", no_positive, ("skip", "zero", "error"))

    def limits(self, batch: Batch) -> Limits:
        """Chance, collapsed value and bound; see `Loss.limits`."""
        return group_limits(self, batch, k1=0.0, k2=1.0)


def _outside(groups: Groups) -> Core:
    """(1)."""
    options = groups.options
    bounded = _is_bounded(groups)
    if groups.pairs:
        return _pairs(groups, bounded)
    if groups.square and bounded and groups.mask is None:
        return own_groups(groups, plain_block, tile=options.tile)
    positive = groups.positive_similarity() / options.tau
    return lambda weight: _normaliser(groups, positive, bounded, weight)


def _pairs(groups: Groups, bounded: bool) -> Core:
    """(1) with one positive each, which is InfoNCE's form: the positive as a slot of its own."""
    options, partner = groups.options, groups.partners()
    if groups.square and bounded:
        x, scale = options.scaled(groups.anchors, power=0.5)
        positive = (x * x.index_select(0, partner)).sum(1) * scale
        other = hide_index(partner)
        return lambda weight: pair_square(x, positive, other, scale=scale, weight=weight, tile=options.tile)
    x, scale = options.scaled(groups.anchors)
    positive = (x * groups.candidates.index_select(0, partner)).sum(1) * scale
    return lambda weight: log_normaliser(
        x,
        groups.candidates,
        positive,
        hide=hide_both(groups.hide_self, hide_index(partner)),
        slot=True,
        scale=scale,
        bounded=bounded,
        weight=weight,
        tile=options.tile,
    )


def _inside(groups: Groups) -> Core:
    """(3)."""
    options, bounded = groups.options, _is_bounded(groups)
    x, scale = options.scaled(groups.anchors)
    nothing = groups.anchors.new_zeros(len(groups.anchors))
    log_number = groups.num_positives.clamp(min=1).to(nothing.dtype).log()

    def only_positives(logits: Tensor, r: slice, c: slice) -> None:
        logits.masked_fill_(~groups.positives(r, c), -torch.inf)

    def core(weight: Tensor | None) -> Tensor:
        everyone = _normaliser(groups, nothing, bounded, weight)
        own = log_normaliser(
            x,
            groups.candidates,
            log_number,
            hide=only_positives,
            fixed=(groups.mask,),
            scale=scale,
            bounded=bounded,
            weight=weight,
            tile=options.tile,
        )
        return everyone - own

    return core


def _is_bounded(groups: Groups) -> bool:
    if groups.options.normalize:  # without looking at the rows, which the fast path normalises itself
        return 1.001 / groups.options.now + math.log(groups.num_candidates) <= RANGE[groups.raw.dtype]
    return groups.options.is_bounded(groups.anchors, groups.candidates)


def _normaliser(groups: Groups, positive: Tensor, bounded: bool, weight: Tensor | None) -> Tensor:
    """log Σ_{a∈A(i)} e^{s_ia/τ} − positive_i."""
    options = groups.options
    if groups.square and bounded:
        x, scale = options.scaled(groups.anchors, power=0.5)
        return softmax_square(x, positive, scale=scale, weight=weight, tile=options.tile)
    x, scale = options.scaled(groups.anchors)
    return log_normaliser(
        x,
        groups.candidates,
        positive,
        hide=groups.hide_self,
        scale=scale,
        bounded=bounded,
        weight=weight,
        tile=options.tile,
    )


def reference(
    embeddings: Tensor,
    labels: Tensor | None = None,
    *,
    positives: Tensor | None = None,
    ref_emb: Tensor | None = None,
    ref_labels: Tensor | None = None,
    temperature: float | Tensor,
    form: str = "out",
) -> Tensor:
    """(1) or (3) with all similarities at once, per anchor, 0 without positives; rows are taken as they are."""
    s, is_positive, seen, shape = dense_groups(embeddings, labels, positives, ref_emb, ref_labels)
    number = is_positive.sum(1)
    lonely = (number == 0)[:, None]
    logits = (s / temperature).masked_fill(~seen & ~lonely, -torch.inf)
    log_p = logits.log_softmax(1)
    if form == "out":
        per_anchor = -log_p.masked_fill(~is_positive, 0.0).sum(1) / number.clamp(min=1)  # (1)
    else:
        per_anchor = number.clamp(min=1).to(s.dtype).log() - log_p.masked_fill(
            ~is_positive & ~lonely, -torch.inf
        ).logsumexp(1)  # (3)
    return torch.where(number > 0, per_anchor, 0.0).view(shape)
