r"""TCL, tuned contrastive learning: SupCon whose denominator is tuned by k1 and k2.

P(i) are anchor i's positives, N(i) its negatives, s_ij = ⟨z_i, z_j⟩:

    (1)  L_i = −(1/|P(i)|) Σ_{p∈P(i)} log( e^{s_ip/τ} / D_i )
    (2)  D_i = Σ_{p∈P(i)} e^{s_ip/τ} + k1 Σ_{p∈P(i)} e^{−s_ip} + k2 Σ_{n∈N(i)} e^{s_in/τ}
    (3)  ∂L_i/∂z_i = (1/τ)[ Σ_p z_p (P_ip − X_ip − Y_ip) + Σ_n z_n P_in ]
         X_ip = 1/|P(i)|,  P_ip = e^{s_ip/τ}/D_i,  Y_ip = τ k1 e^{−s_ip}/D_i,  P_in = k2 e^{s_in/τ}/D_i

(Animesh & Chandraker, supplement eqs 1–7, 18–22.) The k1 term has no temperature; it raises the gradient of hard
positives, k2 that of hard negatives. k1 = 0, k2 = 1 is SupCon.

Deviates: the authors' code divides row i by the denominators of the columns, which leaves the mean as it is but
not the per-anchor values, and subtracts no maximum; the values here are (1) per anchor, at any temperature.
"""

from __future__ import annotations

import bisect
import functools
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from kontrast.autograd import full_precision
from kontrast.checks import number, one_of
from kontrast.engine import (
    LOG2E,
    Grads,
    Pass,
    Rows,
    SquareBlock,
    Tile,
    in_range,
    largest_logit,
    mirrored,
    row_shift,
    strips,
    tiled,
)
from kontrast.losses._base import Core, Options
from kontrast.losses._groups import GroupLoss, Groups, dense_groups, own_groups
from kontrast.losses._limits import Batch, Limits, group_limits


@full_precision
def tcl(
    embeddings: Tensor,
    labels: Any = None,
    *,
    positives: Tensor | None = None,
    ref_emb: Tensor | None = None,
    ref_labels: Any = None,
    temperature: float | Tensor = 0.1,
    k1: float = 5000.0,
    k2: float = 1.0,
    normalize: bool = True,
    reduction: str = "mean",
    no_positive: str = "skip",
    gather_distributed: bool = True,
    tile: Tile = "auto",
) -> Tensor:
    """Tuned contrastive loss on labelled rows, on views with or without labels, or against a reference set.

    Args:
        embeddings: ``[N, D]``, or ``[N, V, D]`` with V views of each of N instances.
        labels: ``[N]`` integers: rows of one label are each other's positives. None for views without labels, of which
            those of one instance are positives.
        positives: ``[N, N]`` bool instead of labels: who is whose positive. Its diagonal counts for the other views of
            an instance only.
        ref_emb: ``[M, D]``: the candidates, if they are not the embeddings themselves. Nobody is excluded.
        ref_labels: ``[M]``, the labels of ``ref_emb``.
        temperature: τ, a number above 0, or a scalar tensor, which may be learned.
        k1: How strongly hard positives are pulled, at least 0.
        k2: How strongly negatives are pushed, at least 0.
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
    >>> tcl(z, torch.tensor([0, 0, 1]), temperature=1.0, k1=2.0, k2=3.0)  # log(e + 2/e + 3) − 1
    tensor(0.8647)
    """
    options = Options(
        temperature, normalize=normalize, reduction=reduction, gather_distributed=gather_distributed, tile=tile
    )
    k1, k2 = number("k1", k1, least=0.0), number("k2", k2, least=0.0)
    groups = Groups(options, embeddings, labels, positives, ref_emb, ref_labels, no_positive)
    return groups.reduce(_tuned(groups, k1, k2), functools.partial(reference, k1=k1, k2=k2))


class TCLLoss(GroupLoss):
    """Tuned contrastive loss as a module; `tcl` is its function.

    The default k1 goes with a temperature near 0.1: e^{1/0.1} ≈ 22,000 stands beside it in (2). At τ = 0.5 it would be
    nearly all of the denominator; the authors take k1 = 1, k2 = 1.5 without labels.

    Args:
        temperature: τ, a number above 0, or a scalar tensor, which may be learned.
        k1: How strongly hard positives are pulled, at least 0.
        k2: How strongly negatives are pushed, at least 0.
        normalize: Put the rows on the unit sphere first. A zero row stays zero and gets no gradient.
        reduction: "mean" or "sum" over the anchors of all processes, or "none" for a value per anchor.
        no_positive: What becomes of an anchor without a positive: "skip" leaves it out of the mean, "zero" counts it as
            0, "error" raises.
        gather_distributed: With several processes, compare with the rows of all of them.
        tile: The side of the blocks it is computed in; "auto" is measured. It changes time and memory only.

    Call the module with ``(embeddings, labels)``, with views ``[N, V, D]``, or with ``positives=`` or
    ``ref_emb=`` and ``ref_labels=``; see `tcl`.

    Raises:
        ValueError: For an option out of range.

    >>> z = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> TCLLoss(temperature=1.0, k1=2.0, k2=3.0, reduction="none")(z, torch.tensor([0, 0, 1]))  # log(e + 2/e + 3) − 1
    tensor([0.8647, 0.8647, 0.0000])
    """

    function = staticmethod(tcl)

    def __init__(
        self,
        temperature: float | Tensor = 0.1,
        k1: float = 5000.0,
        k2: float = 1.0,
        *,
        normalize: bool = True,
        reduction: str = "mean",
        no_positive: str = "skip",
        gather_distributed: bool = True,
        tile: Tile = "auto",
    ) -> None:
        super().__init__(normalize=normalize, reduction=reduction, gather_distributed=gather_distributed, tile=tile)
        self.temperature = temperature
        self.k1, self.k2 = number("k1", k1, least=0.0), number("k2", k2, least=0.0)
        self.no_positive = one_of("no_positive", no_positive, ("skip", "zero", "error"))

    def limits(self, batch: Batch) -> Limits:
        """Chance, collapsed value and bound; see `Loss.limits`."""
        return group_limits(self, batch, self.k1, self.k2)


def _tuned(groups: Groups, k1: float, k2: float) -> Core:
    """(1)."""
    options, number_of_candidates = groups.options, groups.num_candidates
    largest = 1.001 if options.normalize else largest_logit(groups.anchors.detach(), groups.candidates.detach())
    widest = max(largest, largest / options.now) + math.log(max(1.0, k1, k2))
    bounded = in_range(widest, 2 * number_of_candidates, groups.raw.dtype)
    if groups.square and bounded and groups.mask is None and not options.is_learned:
        block, order = _sorted_block(groups, options.now, k1, k2)
        # The parts of smaller blocks that hold positives are smaller, which here pays longer than for the plain square.
        small = options.tile == "auto" and groups.raw.device.type == "cpu" and 4096 <= number_of_candidates < 8192
        return own_groups(groups, block, order=order, tile=512 if small else options.tile)
    tau = options.tau
    x, scale = options.scaled(groups.anchors)
    positive = groups.positive_similarity() / tau
    run = _strips(groups, k1, k2, scale, bounded)
    learned = tau if isinstance(tau, Tensor) else None
    return lambda weight: tiled(run, weight, x, groups.candidates, positive, learned, fixed=(groups.mask,))


def log2_or_none(k: float) -> float:
    """log₂ k, and −∞ for a term that is not there."""
    return math.log2(k) if k > 0 else -math.inf


def _strips(groups: Groups, k1: float, k2: float, scale: float, bounded: bool) -> Pass:
    """(2) a block of anchors at a time, for any candidates, masks and logits."""
    tau, tile = groups.options.now, groups.options.tile

    def run(tensors: Sequence[Tensor], weight: Tensor | None, needs: Sequence[bool]) -> tuple[Tensor, Grads]:
        x, c, positive, _ = tensors

        def block(logits: Tensor, r: slice, grad: bool) -> Rows:
            everyone = slice(0, len(c))
            same = groups.positives(r, everyone)
            second = torch.mul(logits, -tau).add_(log2_or_none(k1)).masked_fill_(~same, -torch.inf)
            if k2 != 1:
                logits.add_(torch.full_like(logits, log2_or_none(k2)).masked_fill_(same, 0.0))
            groups.hide_self(logits, r, everyone)
            shift = None
            if not bounded:
                shift = row_shift(logits, second.amax(1))
                second.sub_(shift[:, None])
            second.exp2_()
            tilt = None
            if needs[3]:
                tilt = -(second * logits.masked_fill(~same, 0.0)).sum(1) / LOG2E  # ∂D/∂τ of the k1 term
            first = (logits if shift is None else logits.sub_(shift[:, None])).exp2_()
            d = first.sum(1) + second.sum(1)  # (2)
            d = torch.where(d == 0, 1.0, d)
            log_d = d.log() if shift is None else d.log() + shift / LOG2E
            if grad:
                first.sub_(second, alpha=tau)  # (3): P − Y
            slope = torch.full_like(d, -1.0)
            return Rows(log_d - positive[r], 1 / d, slope, None if tilt is None else tilt / d)

        return strips(x, c, block, scale=scale, weight=weight, needs=needs, tile=tile)

    return run


def _sorted_block(groups: Groups, tau: float, k1: float, k2: float) -> tuple[SquareBlock, Tensor]:
    """(2) for a batch against itself, and the order its rows must have: sorted by group, the positives of a block
    all stand in its first columns, and only these need the second exponential and a mask; elsewhere k2 is a plain
    factor."""
    assert groups.group is not None
    group, order = torch.sort(groups.group)
    numbers = group.tolist()
    scratch: dict[torch.dtype, Tensor] = {}

    def buffer(shape: tuple[int, int], dtype: torch.dtype) -> Tensor:
        """Memory for a part of a block, taken once for as many blocks as fit it."""
        size = math.prod(shape)
        if dtype not in scratch or scratch[dtype].numel() < size:
            scratch[dtype] = torch.empty(size, dtype=dtype, device=group.device)
        return scratch[dtype][:size].view(shape)

    def block(logits: Tensor, r: slice, c: slice) -> tuple[Tensor, Tensor | None]:
        near = min(bisect.bisect_right(numbers, numbers[r.stop - 1]), c.stop)  # where their positives end
        near = max(near - c.start, 0)
        beyond = mirrored(r, c).start - c.start
        if near:
            shape = (len(logits), near)
            same = torch.eq(group[r, None], group[None, c.start : c.start + near], out=buffer(shape, torch.bool))
            if r.start == c.start:
                same.fill_diagonal_(False)
            second = torch.mul(logits[:, :near], -tau, out=buffer(shape, logits.dtype)).exp2_().mul_(same)
        logits.exp2_()
        if k2 != 1:
            logits[:, near:].mul_(k2)
            if near:
                logits[:, :near].mul_(torch.full_like(second, k2).masked_fill_(same, 1.0))
        if r.start == c.start:
            logits.fill_diagonal_(0.0)
        over_columns, over_rows = logits.sum(1), None if c.stop == r.stop else logits[:, beyond:].sum(0)
        if near:
            over_columns.add_(second.sum(1), alpha=k1)  # (2)
            if over_rows is not None and near > beyond:
                over_rows[: near - beyond].add_(second[:, beyond:].sum(0), alpha=k1)
            logits[:, :near].sub_(second, alpha=k1 * tau)  # (3): P − Y
        return over_columns, over_rows

    return block, order


def reference(
    embeddings: Tensor,
    labels: Tensor | None = None,
    *,
    positives: Tensor | None = None,
    ref_emb: Tensor | None = None,
    ref_labels: Tensor | None = None,
    temperature: float | Tensor,
    k1: float,
    k2: float,
) -> Tensor:
    """(1) with all similarities at once, per anchor, 0 without positives; rows are taken as they are."""
    s, is_positive, seen, shape = dense_groups(embeddings, labels, positives, ref_emb, ref_labels)
    number = is_positive.sum(1)
    none = -torch.inf
    logits = s / temperature
    pulled = (logits * is_positive).sum(1) / number.clamp(min=1)
    log_k1, log_k2 = (log2_or_none(k) / LOG2E for k in (k1, k2))
    terms = (
        logits.masked_fill(~is_positive, none),
        (log_k1 - s).masked_fill(~is_positive, none),
        (log_k2 + logits).masked_fill(is_positive | ~seen, none),
    )
    lonely = (number == 0)[:, None]
    per_anchor = torch.cat(terms, dim=1).masked_fill(lonely, 0.0).logsumexp(1) - pulled  # (1), (2)
    return torch.where(number > 0, per_anchor, 0.0).view(shape)
