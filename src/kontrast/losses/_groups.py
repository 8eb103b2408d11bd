"""Anchors whose positives are a group: those of the same label, the views of one instance, or a mask's.

SupCon and TCL take their inputs in the same forms; here they become one: rows, candidates, and which candidates
are whose positives.
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kontrast import distributed
from kontrast.autograd import ReverseOnly, Twin, full_precision
from kontrast.checks import integer_labels, not_empty, rows, same_dtype
from kontrast.losses._base import Core, Loss
from kontrast.losses._softmax import Hide, hide_diagonal, hide_nothing
from kontrast.losses._tiles import spans, strip_height


@dataclass(frozen=True)
class Groups:
    """Anchors and candidates; positives share a group number, or stand in a mask."""

    anchors: Tensor  # [N, D]
    candidates: Tensor  # [M, D]; is `anchors` where a batch is compared with itself in one process
    self_start: int | None  # the candidate that is anchor 0 itself; None with a reference set
    group: Tensor | None  # [N] int64, 0 … number of groups − 1
    candidate_group: Tensor | None  # [M]
    num_groups: int
    mask: Tensor | None  # [N, M] bool, instead of groups
    num_positives: Tensor  # [N]
    counts: list[int]  # anchors on each rank
    shape: tuple[int, ...]  # of the per-anchor values

    @property
    def square(self) -> bool:
        """Whether the candidates are the anchors."""
        return self.candidates is self.anchors

    @functools.cached_property
    def valid(self) -> Tensor:
        """Which anchors have a positive."""
        return self.num_positives > 0

    @property
    def hide_self(self) -> Hide:
        """Hides the anchor among the candidates."""
        return hide_nothing if self.self_start is None else hide_diagonal(self.self_start)

    def positives(self, r: slice, c: slice) -> Tensor:
        """Which candidates of a slice are positives of the anchors of another, ``[R, C]`` bool."""
        if self.mask is not None:
            same = self.mask[r, c].clone()
        else:
            assert self.group is not None
            assert self.candidate_group is not None
            same = self.group[r, None] == self.candidate_group[None, c]
        if self.self_start is not None:
            same.diagonal(self.self_start + r.start - c.start).fill_(False)
        return same

    def partners(self) -> Tensor:
        """Where each group has at most two members: the candidate that is each anchor's other, or itself."""
        assert self.group is not None
        assert self.candidate_group is not None
        assert self.self_start is not None
        place = torch.arange(len(self.candidate_group), device=self.candidate_group.device)
        sums = place.new_zeros(self.num_groups).index_add_(0, self.candidate_group, place)
        own = place[self.self_start : self.self_start + len(self.group)]
        return torch.where(self.valid, sums[self.group] - own, own)

    @property
    def pairs(self) -> bool:
        """Whether no anchor has more than one positive, so that `partners` says it all."""
        alone = self.mask is not None or self.self_start is None or self.num_groups < 2
        return not alone and len(self.num_positives) > 0 and int(self.num_positives.max()) == 1

    @functools.cached_property
    def share(self) -> Tensor:
        """1/|P(i)|, 1 without positives."""
        return self.num_positives.clamp(min=1).to(self.anchors.dtype).reciprocal_()

    def positive_similarity(self) -> Tensor:
        """Σ_p ⟨z_i, z_p⟩/|P(i)| per anchor, 0 without positives."""
        share = self.share
        if self.mask is not None:
            mask = self.mask
            if self.self_start is not None:
                mask = mask.clone()
                mask.diagonal(self.self_start).fill_(False)
            return (self.anchors * masked_sum(mask, self.candidates)).sum(1) * share
        assert self.group is not None
        assert self.candidate_group is not None
        sums = self.candidates.new_zeros(self.num_groups, self.candidates.shape[1])
        total = sums.index_add(0, self.candidate_group, self.candidates).index_select(0, self.group)
        if self.self_start is not None:
            total = total - self.anchors
        return (self.anchors * total).sum(1) * share


def prepare(
    loss: Loss,
    embeddings: Tensor,
    labels: Any,
    positives: Tensor | None,
    ref_emb: Tensor | None,
    ref_labels: Any,
) -> Groups:
    """Check what the user passed, normalise it, and gather the other ranks' rows and labels."""
    embeddings = rows("embeddings", embeddings, ndim=(2, 3))
    n = len(embeddings)
    views = embeddings.shape[1] if embeddings.ndim == 3 else 1
    shape = tuple(embeddings.shape[:-1])
    _check_forms(embeddings, labels, positives, ref_emb, ref_labels)
    device = embeddings.device
    if labels is not None:
        labels = integer_labels("labels", labels, n, device)
    instances = loss._counts(embeddings, "embeddings")
    counts = [views * k for k in instances]
    first = sum(instances[: distributed.rank()]) if loss._together else 0
    if ref_emb is not None:
        ref_emb = rows("ref_emb", ref_emb, like=embeddings)
        not_empty("ref_emb", len(ref_emb))
        embeddings, ref_emb = same_dtype(embeddings, ref_emb)
        z, candidates = loss._rows(embeddings.reshape(n * views, embeddings.shape[-1])), loss._rows(ref_emb)
        self_start = None
    else:
        z = loss._rows(embeddings.reshape(n * views, embeddings.shape[-1]))
        candidates, self_start = loss._gather(z, counts)

    if positives is not None:
        mask = _expand(positives, n, len(candidates), views, ref=ref_emb is not None)
        number = row_sums(mask, torch.int64)
        if self_start is not None:
            number = number - mask.diagonal(self_start).long()
        return Groups(z, candidates, self_start, None, None, 0, mask, number, counts, shape)

    if labels is None:  # the views of one instance, known by its place in the whole batch
        labels = torch.arange(first, first + n, device=device)
    mine = labels if views == 1 else labels.repeat_interleave(views)
    if ref_emb is not None:
        theirs = integer_labels("ref_labels", ref_labels, len(candidates), device)
        names, both = torch.unique(torch.cat([mine, theirs]), return_inverse=True)
        group, candidate_group = both[: len(mine)], both[len(mine) :]
        sizes = torch.bincount(candidate_group, minlength=len(names))
    else:
        everyone, start = loss._gather(mine, counts)
        names, candidate_group, sizes = torch.unique(everyone, return_inverse=True, return_counts=True)
        group = candidate_group[start : start + len(mine)]
    number = sizes[group] - int(self_start is not None)
    return Groups(z, candidates, self_start, group, candidate_group, len(names), None, number, counts, shape)


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
    """The mask over rows: given over instances, each of whose views has the same positives.

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


def row_sums(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """mask.sum(1) in blocks: torch would first make a copy of the whole mask in the dtype of the sums."""
    out = torch.empty(len(mask), dtype=dtype, device=mask.device)
    for r in spans(len(mask), strip_height(mask.shape[1], 8, "auto")):
        out[r] = mask[r].sum(1, dtype=dtype)
    return out


def masked_sum(mask: Tensor, c: Tensor) -> Tensor:
    """mask @ c for a mask of another dtype (bool, say), in blocks, so that no float copy of it is made."""
    return _MaskedSum.apply(mask, c, False)  # type: ignore[no-any-return]


class _MaskedSum(ReverseOnly):
    """mask @ c, or maskᵀ @ c. It is linear, and each is the other's gradient: all derivatives are exact."""

    @staticmethod
    def forward(ctx: Any, mask: Tensor, c: Tensor, transposed: bool) -> Tensor:
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(mask)
        ctx.transposed = transposed
        strips = spans(len(mask), strip_height(mask.shape[1], c.element_size(), "auto"))
        if transposed:
            out = c.new_zeros(mask.shape[1], c.shape[1])
            for r in strips:
                out.addmm_(mask[r].to(c.dtype).T, c[r])
            return out
        out = c.new_empty(len(mask), c.shape[1])
        for r in strips:
            torch.mm(mask[r].to(c.dtype), c, out=out[r])
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None) -> tuple[None, Tensor | None, None]:
        (mask,) = ctx.saved_tensors
        return None, None if grad is None else _MaskedSum.apply(mask, grad, not ctx.transposed), None


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
    """A loss over groups: its options for anchors without positives, and their part in the reduction."""

    no_positive: str

    @full_precision
    def forward(
        self,
        embeddings: Tensor,
        labels: Any = None,
        *,
        positives: Tensor | None = None,
        ref_emb: Tensor | None = None,
        ref_labels: Any = None,
    ) -> Tensor:
        """``embeddings [N, D]`` or ``[N, V, D]``, ``labels [N]`` → a scalar, or ``[N]``, ``[N, V]``.

        ``positives [N, N]`` (bool) says instead of labels who is whose positive; its diagonal counts for the other
        views of an instance only. ``ref_emb [M, D]`` with ``ref_labels [M]`` are the candidates, nobody excluded.
        """
        groups = prepare(self, embeddings, labels, positives, ref_emb, ref_labels)
        self._refuse_lonely(groups)
        value = self._reduce(
            self._core(groups), groups.anchors, counts=groups.counts, valid=groups.valid, twin=self._twin(groups)
        )
        return value.view(groups.shape) if self.reduction == "none" else value

    @abstractmethod
    def _core(self, groups: Groups) -> Core:
        """The loss per anchor, or weighted."""

    @abstractmethod
    def _reference(self, embeddings: Tensor, **inputs: Any) -> Tensor:
        """The module's `reference` with the options of this loss; ``inputs`` are its inputs and the temperature."""

    def _twin(self, groups: Groups) -> Twin:
        apart = groups.self_start is None  # from the anchors: a reference set
        labels, ref_labels = groups.group, groups.candidate_group if apart else None

        def values(z: Tensor, c: Tensor | None, mask: Tensor | None, tau: float | Tensor) -> Tensor:
            given = {"labels": labels, "positives": mask, "ref_emb": c, "ref_labels": ref_labels}
            return self._reference(z, temperature=tau, **given)

        candidates = groups.candidates if apart else None
        pairs = len(groups.anchors) * len(groups.candidates)
        return self._dense_form(values, groups.anchors, candidates, groups.mask, pairs=pairs)

    def _refuse_lonely(self, groups: Groups) -> None:
        lonely = self._over_ranks((~groups.valid).sum()) if self.no_positive == "error" else 0
        if lonely:
            raise ValueError(
                f"{int(lonely)} of {sum(groups.counts)} anchors have no positive. Give each label at least two rows "
                f'(or two views), or pass no_positive="skip" to leave them out of the mean or "zero" to count them as 0'
            )
