"""Which pairs of anchors and candidates count in pytorch-metric-learning's losses: by labels, or by a miner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from kontrast.checks import rows, same_dtype


class Places(NamedTuple):
    """Pairs of some rows: where they stand in the block, and how often each is listed."""

    row: Tensor
    column: Tensor
    times: Tensor


class Pairs(Protocol):
    """Who is whose positive and negative, asked for a slice of anchors at a time."""

    def total(self) -> tuple[int, int]:
        """The numbers of positive and of negative pairs."""

    def positives(self, r: slice, like: Tensor) -> Places:
        """The positive pairs of the anchors."""

    def keep_pairs(self, logits: Tensor, r: slice, positives: Places) -> None:
        """Put −∞ wherever there is no pair."""

    def keep_negatives(self, logits: Tensor, r: slice, positives: Places) -> None:
        """Put −∞ wherever there is no negative, and add log₂ of how often there is."""


@dataclass(frozen=True)
class LabelPairs:
    """All pairs of an anchor and a candidate, by their labels (as group numbers)."""

    group: Tensor  # [N]
    candidate_group: Tensor  # [M]
    num_positives: Tensor  # [N]
    is_self: bool  # whether candidate i is anchor i, and no pair of it

    def total(self) -> tuple[int, int]:
        n, m, positive = len(self.group), len(self.candidate_group), int(self.num_positives.sum())
        return positive, n * m - positive - (n if self.is_self else 0)

    def positives(self, r: slice, like: Tensor) -> Places:
        same = self.group[r, None] == self.candidate_group[None]
        if self.is_self:
            same.diagonal(r.start).fill_(False)
        row, column = same.nonzero(as_tuple=True)
        return Places(row, column, like.new_ones(()).expand(len(row)))

    def keep_pairs(self, logits: Tensor, r: slice, positives: Places) -> None:
        if self.is_self:
            logits.diagonal(r.start).fill_(-torch.inf)

    def keep_negatives(self, logits: Tensor, r: slice, positives: Places) -> None:
        self.keep_pairs(logits, r, positives)
        logits[positives.row, positives.column] = -torch.inf


class Table(NamedTuple):
    """Pairs of an index list, each once: its place row·width + column, ascending, and how often it was in the list."""

    place: Tensor
    times: Tensor
    width: int

    def within(self, r: slice, like: Tensor) -> Places:
        """Those of a slice of rows."""
        edges = torch.tensor([r.start * self.width, r.stop * self.width], device=self.place.device)
        start, stop = torch.searchsorted(self.place, edges).tolist()
        place = self.place[start:stop] - r.start * self.width
        return Places(place // self.width, place % self.width, self.times[start:stop].to(like.dtype))


@dataclass(frozen=True)
class IndexPairs:
    """The pairs of an ``indices_tuple``."""

    positive: Table
    negative: Table
    places: tuple[Tensor, Tensor]  # anchors and positives, in the order of the argument

    def total(self) -> tuple[int, int]:
        return int(self.positive.times.sum()), int(self.negative.times.sum())

    def positives(self, r: slice, like: Tensor) -> Places:
        return self.positive.within(r, like)

    def keep_pairs(self, logits: Tensor, r: slice, positives: Places) -> None:
        negatives = self.negative.within(r, logits)
        hidden = torch.ones_like(logits, dtype=torch.bool)
        for pairs in (positives, negatives):
            hidden[pairs.row, pairs.column] = False
        logits.masked_fill_(hidden, -torch.inf)

    def keep_negatives(self, logits: Tensor, r: slice, positives: Places) -> None:
        negatives = self.negative.within(r, logits)
        log_times = torch.full_like(logits, -torch.inf)
        log_times[negatives.row, negatives.column] = negatives.times.log2()
        logits.add_(log_times)


@dataclass(frozen=True)
class Batch:
    """Anchors and candidates before they are normalised, and their pairs."""

    anchors: Tensor  # [N, D]
    candidates: Tensor  # [M, D]
    pairs: Pairs


def read(
    embeddings: Tensor,
    labels: Tensor | None,
    indices_tuple: Sequence[Tensor] | None,
    ref_emb: Tensor | None,
    ref_labels: Tensor | None,
) -> Batch:
    anchors = rows("embeddings", embeddings)
    if labels is None and indices_tuple is None:
        raise ValueError("labels and indices_tuple cannot both be None: say which rows belong together")
    own_labels, labels = labels, _labels("labels", labels, anchors)
    if ref_emb is None:
        candidates, ref_labels = anchors, labels
    else:
        candidates = anchors if ref_emb is embeddings else rows("ref_emb", ref_emb, like=anchors)
        ref_labels = labels if ref_labels is own_labels else _labels("ref_labels", ref_labels, candidates)
        anchors, candidates = same_dtype(anchors, candidates)
    if indices_tuple is not None:
        return Batch(anchors, candidates, _index_pairs(indices_tuple, len(anchors), len(candidates), anchors.device))
    assert labels is not None
    return Batch(anchors, candidates, _label_pairs(anchors, candidates, labels, ref_labels))


def _labels(name: str, labels: Tensor | None, x: Tensor) -> Tensor | None:
    if labels is None:
        return None
    if not isinstance(labels, Tensor) or labels.shape != (len(x),):
        shape = list(labels.shape) if isinstance(labels, Tensor) else type(labels).__name__
        raise ValueError(f"{name} must be a tensor of shape [{len(x)}], one a row of {list(x.shape)}; got {shape}")
    return labels.to(x.device)


def _label_pairs(anchors: Tensor, candidates: Tensor, labels: Tensor, ref_labels: Tensor | None) -> LabelPairs:
    is_self = ref_labels is None or ref_labels is labels
    if ref_labels is None:
        ref_labels = labels
    if len(ref_labels) != len(candidates):
        raise ValueError(
            f"ref_emb has {len(candidates)} rows and embeddings {len(anchors)}: only if they are as many are "
            f"ref_labels taken to be labels; pass ref_labels [{len(candidates)}]"
        )
    _, group = torch.unique(torch.cat([labels, ref_labels]), return_inverse=True)
    group, candidate_group = group[: len(labels)], group[len(labels) :]
    members = torch.bincount(candidate_group, minlength=len(labels) + len(ref_labels))
    return LabelPairs(group, candidate_group, members[group] - int(is_self), is_self)


def _index_pairs(indices_tuple: Sequence[Tensor], n: int, m: int, device: torch.device) -> IndexPairs:
    if len(indices_tuple) not in (3, 4):
        raise ValueError(
            f"indices_tuple has {len(indices_tuple)} entries; expected triplets (anchors, positives, negatives) or "
            f"pairs (anchors, positives, anchors, negatives)"
        )
    first, positive, *second, negative = (torch.as_tensor(index, device=device) for index in indices_tuple)
    negatives = _table(second[0] if second else first, negative, n, m)
    return IndexPairs(_table(first, positive, n, m), negatives, (first.long(), positive.long()))


def _table(row: Tensor, column: Tensor, n: int, m: int) -> Table:
    for index, size in ((row, n), (column, m)):
        if index.ndim != 1 or index.is_floating_point() or index.shape != row.shape:
            raise ValueError(
                f"indices_tuple must hold 1D integer tensors, those of a pair equally long; got {index.dtype} "
                f"{list(index.shape)} beside {row.dtype} {list(row.shape)}"
            )
        if len(index) and not 0 <= int(index.min()) <= int(index.max()) < size:
            raise ValueError(
                f"indices_tuple holds {int(index.min())} … {int(index.max())}, but there are rows 0 … {size - 1}"
            )
    place, times = torch.unique(row.long() * m + column.long(), return_counts=True)
    return Table(place, times, m)
