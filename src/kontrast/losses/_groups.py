r"""Anchors whose positives are a group: those of the same label, the views of one instance, or a mask's.

SupCon and TCL take their inputs in the same forms; here they become one: rows, candidates, and which candidates are
whose positives.

A batch against itself, in one process and with labels, is what both spend their time in (`own_groups`). The pull of an
anchor's positives is linear and comes from sums over groups, so that no pair is formed; only the denominator needs
blocks (`engine.square`):

    (1)  pull_i = share_i Σ_{p≠i in i's group} ⟨z_i, z_p⟩ = share_i ⟨z_i, S − z_i⟩          S = Σ_{j in i's group} z_j
    (2)  ∂(Σ_i g_i pull_i)/∂z_i = h_i (S − z_i) + (T − h_i z_i)      h = g·share,  T = Σ_{j in i's group} h_j z_j

the first part of (2) as an anchor, the second as a positive of the others. In a mean or a sum all anchors of a group
have one h, and the two parts are equal:

    (3)  ∂(Σ_i g_i pull_i)/∂z_i = 2 h_i (S − z_i)

Rows are normalised in the same pass, which saves the bookkeeping of a further node in autograd.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from kontrast import distributed
from kontrast.checks import integer_labels, not_empty, one_of, rows, same_dtype
from kontrast.engine import (
    Grads,
    Hide,
    OnePass,
    SquareBlock,
    Tile,
    hide_diagonal,
    hide_nothing,
    masked_sum,
    row_sums,
    square,
)
from kontrast.losses._base import Core, Loss, Options
from kontrast.sphere import divide_by_length, unit_gradient

NO_POSITIVE = ("skip", "zero", "error")


class Groups:
    """Anchors and candidates; positives share a group number, or stand in a mask.

    Args:
        options: The options of the loss.
        embeddings: ``[N, D]`` or ``[N, V, D]``.
        labels: ``[N]``; None for a mask, or for views of which those of one instance are positives.
        positives: ``[N, N]`` or ``[N, M]``, bool, instead of labels.
        ref_emb: ``[M, D]``, the candidates if they are not the embeddings.
        ref_labels: ``[M]``.
        no_positive: What becomes of an anchor without a positive: "skip", "zero" or "error".

    Raises:
        ValueError: For shapes, types or values that do not go together.
    """

    def __init__(
        self,
        options: Options,
        embeddings: Tensor,
        labels: Any,
        positives: Tensor | None,
        ref_emb: Tensor | None,
        ref_labels: Any,
        no_positive: str,
    ) -> None:
        if no_positive not in NO_POSITIVE:
            one_of("no_positive", no_positive, NO_POSITIVE)
        embeddings = rows("embeddings", embeddings, ndim=(2, 3))
        n, dim = len(embeddings), embeddings.shape[-1]
        views = embeddings.shape[1] if embeddings.ndim == 3 else 1
        if labels is None or not (positives is ref_emb is ref_labels is None):
            _check_forms(embeddings, labels, positives, ref_emb, ref_labels)
        device = embeddings.device
        if labels is not None:
            labels = integer_labels("labels", labels, n, device)
        instances = options.counts(embeddings, "embeddings") if options.processes > 1 or n == 0 else [n]
        if ref_emb is not None:
            ref_emb = rows("ref_emb", ref_emb, like=embeddings)
            not_empty("ref_emb", len(ref_emb))
            embeddings, ref_emb = same_dtype(embeddings, ref_emb)
        self.options = options
        self.no_positive = no_positive
        self.shape = embeddings.shape[:-1]  # of the per-anchor values
        self.raw = embeddings.reshape(n * views, dim) if views > 1 or embeddings.ndim == 3 else embeddings
        self.raw_ref = ref_emb
        self.counts = [views * k for k in instances] if views > 1 else instances  # anchors on each rank
        self.num_candidates = sum(self.counts) if ref_emb is None else len(ref_emb)  # the anchors included
        self.square = ref_emb is None and options.processes == 1  # whether the candidates are the anchors
        self.start = 0 if options.processes == 1 else sum(self.counts[: distributed.rank()])
        self.group: Tensor | None = None  # [N] int64, 0 … number of groups − 1
        self.candidate_group: Tensor | None = None  # [M]
        self.mask: Tensor | None = None  # [N, M] bool, instead of groups
        self.num_groups = 0
        if positives is not None:
            self._from_mask(positives, n, views)
        else:
            self._from_labels(labels, ref_labels, n, views, device)
        number = self.num_positives if self.valid is None else self.num_positives.clamp(min=1)
        self.share = number.to(embeddings.dtype).reciprocal_()  # 1/|P(i)|, 1 without positives
        if no_positive == "error":
            self._refuse_lonely()

    def _from_mask(self, positives: Tensor, n: int, views: int) -> None:
        self.mask = mask = _expand(positives, n, self.num_candidates, views, ref=self.raw_ref is not None)
        number = row_sums(mask, torch.int64)
        if self.raw_ref is None:
            number = number - mask.diagonal(self.start).long()
        self.num_positives = number
        self.valid: Tensor | None = number > 0  # which anchors have a positive; None if all have
        self.pairs = False

    def _from_labels(self, labels: Tensor | None, ref_labels: Any, n: int, views: int, device: torch.device) -> None:
        if labels is None:  # the views of one instance, known by its place in the whole batch
            first = self.start // views
            labels = torch.arange(first, first + n, device=device)
        mine = labels if views == 1 else labels.repeat_interleave(views)
        if self.square:
            self.group, sizes = number_labels(mine)
            self.candidate_group, self.num_groups = self.group, len(sizes)
            self.num_positives = sizes.index_select(0, self.group).sub_(1)
            fewest, most = map(int, torch.aminmax(self.num_positives))
            self.valid = None if fewest > 0 else self.num_positives > 0
            # Whether no anchor has more than one positive, so that `partners` says it all.
            self.pairs = most == 1 and len(mine) > 2
            return
        if self.raw_ref is not None:
            theirs = integer_labels("ref_labels", ref_labels, len(self.raw_ref), device)
            names, both = torch.unique(torch.cat([mine, theirs]), return_inverse=True)
            group, candidate_group = both[: len(mine)], both[len(mine) :]
            sizes = torch.bincount(candidate_group, minlength=len(names))
        else:
            together = self.options.processes > 1
            everyone = self.options.gather(mine, self.counts)[0] if together else mine
            names, candidate_group, sizes = torch.unique(everyone, return_inverse=True, return_counts=True)
            group = candidate_group[self.start : self.start + len(mine)] if together else candidate_group
        self.group, self.candidate_group, self.num_groups = group, candidate_group, len(names)
        smallest, largest = torch.aminmax(sizes)
        itself = int(self.raw_ref is None)
        self.num_positives = sizes.index_select(0, group)
        if itself:
            self.num_positives -= 1
        # Decided from what every rank knows: labels of the batch are gathered, those beside reference rows are not, and
        # a rank that counts anchors waits for the others.
        alike = self.raw_ref is None or self.options.processes == 1
        self.valid = None if alike and int(smallest) > itself else self.num_positives > 0
        self.pairs = itself == 1 and int(largest) == 2 and self.num_groups > 1

    @functools.cached_property
    def anchors(self) -> Tensor:
        """``[N, D]``."""
        return self.options.rows(self.raw)

    @functools.cached_property
    def candidates(self) -> Tensor:
        """``[M, D]``; is `anchors` where a batch is compared with itself in one process."""
        if self.raw_ref is not None:
            return self.options.rows(self.raw_ref)
        return self.options.gather(self.anchors, self.counts)[0]

    @property
    def hide_self(self) -> Hide:
        """Hides the anchor among the candidates."""
        return hide_nothing if self.raw_ref is not None else hide_diagonal(self.start)

    def positives(self, r: slice, c: slice) -> Tensor:
        """Which candidates of a slice are positives of the anchors of another, ``[R, C]`` bool."""
        if self.mask is not None:
            same = self.mask[r, c].clone()
        else:
            assert self.group is not None
            assert self.candidate_group is not None
            same = self.group[r, None] == self.candidate_group[None, c]
        if self.raw_ref is None:
            same.diagonal(self.start + r.start - c.start).fill_(False)
        return same

    def partners(self) -> Tensor:
        """Where each group has at most two members: the candidate that is each anchor's other, or itself."""
        assert self.group is not None
        assert self.candidate_group is not None
        place = torch.arange(len(self.candidate_group), device=self.candidate_group.device)
        sums = place.new_zeros(self.num_groups).index_add_(0, self.candidate_group, place)
        own = place[self.start : self.start + len(self.group)]
        return torch.where(self.num_positives > 0, sums[self.group] - own, own)

    def positive_similarity(self) -> Tensor:
        """Σ_p ⟨z_i, z_p⟩/|P(i)| per anchor, 0 without positives."""
        if self.mask is not None:
            mask = self.mask
            if self.raw_ref is None:
                mask = mask.clone()
                mask.diagonal(self.start).fill_(False)
            return (self.anchors * masked_sum(mask, self.candidates)).sum(1) * self.share
        assert self.group is not None
        assert self.candidate_group is not None
        sums = self.candidates.new_zeros(self.num_groups, self.candidates.shape[1])
        total = sums.index_add(0, self.candidate_group, self.candidates).index_select(0, self.group)
        if self.raw_ref is None:
            total = total - self.anchors
        return (self.anchors * total).sum(1) * self.share

    def reduce(self, core: Core, dense: Callable[..., Tensor]) -> Tensor:
        """The loss of these groups; ``dense`` is the module's `reference` with its options, for second derivatives."""
        options, apart = self.options, self.raw_ref is not None
        labels, ref_labels = self.group, self.candidate_group if apart else None

        def values(x: Tensor, c: Tensor | None, mask: Tensor | None, tau: float | Tensor) -> Tensor:
            z, c = options.rows(x), None if c is None else options.rows(c)
            return dense(z, labels, positives=mask, ref_emb=c, ref_labels=ref_labels, temperature=tau)

        pairs = len(self.raw) * self.num_candidates
        twin = options.twin(values, self.raw, self.raw_ref, self.mask, pairs=pairs)
        counted = self.no_positive != "skip"
        value = options.reduce(core, self.raw, counts=self.counts, valid=self.valid, counted=counted, twin=twin)
        return value.view(self.shape) if options.reduction == "none" else value

    def _refuse_lonely(self) -> None:
        lonely = self.options.over_ranks((self.num_positives <= 0).sum())
        if lonely:
            raise ValueError(
                f"{int(lonely)} of {sum(self.counts)} anchors have no positive. Give each label at least two rows "
                f'(or two views), or pass no_positive="skip" to leave them out of the mean or "zero" to count them as 0'
            )


def own_groups(groups: Groups, block: SquareBlock, *, order: Tensor | None = None, tile: Tile) -> OnePass:
    """log D_i − pull_i/τ of a batch against itself, per anchor or weighted, in one pass without autograd inside.

    ``order`` is a permutation in which the block function wants its rows.
    """
    options, group, share, num_groups = groups.options, groups.group, groups.share, groups.num_groups
    normalize = options.normalize and not options.is_learned
    x, scale = (groups.raw, 1.0 / options.now) if normalize else options.scaled(groups.anchors, power=0.5)
    assert group is not None
    if order is not None:
        group, share = group[order], share[order]

    rate = share * scale
    is_even = options.reduction != "none"  # then anchors of one group have one weight

    def run(tensors: Sequence[Tensor], weight: Tensor | None, needs: Sequence[bool]) -> tuple[Tensor, Grads]:
        z = tensors[0]
        if order is not None:
            z, weight = z[order], None if weight is None else weight[order]
        if normalize:
            z, inverse = divide_by_length(z)
        others = z.new_zeros(num_groups, z.shape[1]).index_add_(0, group, z).index_select(0, group).sub_(z)
        positive = (z * others).sum(1).mul_(rate)  # (1)
        values, (gz, _) = square(z, positive, block, scale=scale, weight=weight, needs=(needs[0], False), tile=tile)
        if gz is not None and weight is not None:
            h = (weight * rate)[:, None]
            if is_even:
                gz.addcmul_(others, h, value=-2.0)  # (3)
            else:
                pulled = z * h
                total = z.new_zeros(num_groups, z.shape[1]).index_add_(0, group, pulled).index_select(0, group)
                gz.sub_(total).add_(pulled).addcmul_(others, h, value=-1.0)  # (2)
            if normalize:
                gz = unit_gradient(gz, z, inverse)
        if order is not None:
            values = torch.empty_like(values).index_copy_(0, order, values)
            gz = None if gz is None else torch.empty_like(gz).index_copy_(0, order, gz)
        return values, (gz,)

    return OnePass(run, (x,))


def number_labels(labels: Tensor) -> tuple[Tensor, Tensor]:
    """Labels as numbers of groups, and the size of each group. Small labels are such numbers already: some may be of
    size 0, which costs less than sorting.

    >>> number_labels(torch.tensor([2, 0, 2]))
    (tensor([2, 0, 2]), tensor([1, 0, 2]))
    >>> number_labels(torch.tensor([-7, 10**9, -7]))
    (tensor([0, 1, 0]), tensor([2, 1]))
    """
    least, largest = map(int, torch.aminmax(labels))
    if least >= 0 and largest < 2 * len(labels):
        return labels, torch.bincount(labels)
    _, group, sizes = torch.unique(labels, return_inverse=True, return_counts=True)
    return group, sizes


def _check_forms(embeddings: Tensor, labels: Any, positives: Any, ref_emb: Any, ref_labels: Any) -> None:
    if labels is not None and positives is not None:
        raise ValueError("give labels or positives, not both")
    if labels is None and positives is None and embeddings.ndim == 2:
        raise ValueError(
            f"embeddings of shape {list(embeddings.shape)} need labels [N] (or a positives mask); without labels "
            f"pass views [N, V, D], and the views of one instance are its positives"
        )
    if ref_emb is None and ref_labels is not None:
        raise ValueError("ref_labels come with ref_emb, which is missing")
    if ref_emb is not None and positives is None and (labels is None or ref_labels is None):
        raise ValueError("ref_emb needs labels and ref_labels (or a positives mask [N, M])")
    if positives is not None and ref_labels is not None:
        raise ValueError("give ref_labels or positives, not both")


def _expand(positives: Tensor, n: int, candidates: int, views: int, *, ref: bool) -> Tensor:
    """The mask over rows: it is passed over instances, each of whose views has the same positives.

    Over several processes the columns are all ranks' instances, in rank order.
    """
    columns = candidates if ref else candidates // views
    if not isinstance(positives, Tensor) or positives.dtype != torch.bool or positives.shape != (n, columns):
        seen = f"{positives.dtype} {list(positives.shape)}" if isinstance(positives, Tensor) else type(positives)
        raise ValueError(
            f"positives must be a bool tensor of shape [{n}, {columns}] (anchors by candidates), got {seen}"
        )
    if views == 1:
        return positives
    mask = positives.repeat_interleave(views, dim=0)
    return mask if ref else mask.repeat_interleave(views, dim=1)


def dense_groups(
    embeddings: Tensor,
    labels: Tensor | None,
    positives: Tensor | None,
    ref_emb: Tensor | None,
    ref_labels: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, torch.Size]:
    """For the references: s ``[N, M]``, which pairs are positives, which are seen at all, and the values' shape."""
    views = embeddings.shape[1] if embeddings.ndim == 3 else 1
    z = embeddings.reshape(-1, embeddings.shape[-1])
    candidates = z if ref_emb is None else ref_emb
    s = z @ candidates.T
    seen = torch.ones_like(s, dtype=torch.bool)
    if ref_emb is None:
        seen.fill_diagonal_(False)
    if positives is not None:
        is_positive = positives.repeat_interleave(views, 0)
        is_positive = is_positive if ref_emb is not None else is_positive.repeat_interleave(views, 1)
    else:
        own = torch.arange(len(embeddings), device=z.device) if labels is None else labels
        own = own.repeat_interleave(views)
        is_positive = own[:, None] == (own if ref_labels is None else ref_labels)
    return s, is_positive & seen, seen, embeddings.shape[:-1]


class GroupLoss(Loss):
    """Base of the losses over groups.

    Call it with ``embeddings [N, D]`` or ``[N, V, D]`` and ``labels [N]``; it returns a scalar, or ``[N]``, ``[N, V]``.
    """

    no_positive: str

    def forward(
        self,
        embeddings: Tensor,
        labels: Any = None,
        *,
        positives: Tensor | None = None,
        ref_emb: Tensor | None = None,
        ref_labels: Any = None,
    ) -> Tensor:
        """The loss; see the function for what each input means."""
        return type(self).function(
            embeddings, labels, positives=positives, ref_emb=ref_emb, ref_labels=ref_labels, **self.settings
        )
