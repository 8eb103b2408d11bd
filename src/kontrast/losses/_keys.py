"""Queries and their keys, as InfoNCE, the hard and the simple contrastive loss take them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from kontrast.autograd import Twin
from kontrast.checks import integer_labels, not_empty, rows, same_dtype, same_shape
from kontrast.engine import Hide, hide_both, hide_diagonal, hide_index, hide_nothing, log_normaliser
from kontrast.losses._base import Core, Loss, Options


@dataclass(frozen=True)
class Keys:
    """Anchors, the key that is each one's positive, and the candidates among which its negatives are."""

    options: Options
    query: Tensor  # [N, D]
    key: Tensor  # [N, D]
    candidates: Tensor  # [M, D]: every rank's keys, or the negatives given
    own: Hide  # hides the candidates that are the anchor's own: its key, and its row of a memory bank
    own_index: Tensor | None  # [N], the rows of the bank
    in_batch: bool  # whether the candidates are the keys
    num_negatives: int
    counts: list[int]  # anchors on each rank
    more: Tensor | None = None  # [K, D]: the negatives given, where they are candidates beside the keys
    raw_negatives: Tensor | None = None  # the user's own rows, not normalised

    @classmethod
    def of(
        cls,
        options: Options,
        query: Tensor,
        key: Tensor,
        negatives: Tensor | None,
        own_index: Tensor | None,
        *,
        negatives_in_batch: bool = False,
    ) -> Keys:
        """Check and normalise what the user passed, and gather the keys of the other ranks.

        Raises:
            ValueError: For shapes, types or values that do not go together.
        """
        query = rows("query", query)
        key = rows("key", key, like=query)
        same_shape("query", query, "key", key)
        counts = options.counts(query, "query")
        raw = negatives
        if negatives is None:
            if own_index is not None:
                raise ValueError("own_index names rows of negatives, but negatives is None")
            query, key = same_dtype(query, key)
        else:
            negatives = rows("negatives", negatives, like=query)
            not_empty("negatives", len(negatives))
            query, key, negatives = same_dtype(query, key, negatives)
            negatives = options.rows(negatives)
            own_index = None if own_index is None else _check_own_index(own_index, query, negatives)
        query, key = options.rows(query), options.rows(key)
        number = 0 if negatives is None else len(negatives) - (own_index is not None)
        if negatives is not None and not negatives_in_batch:
            own = hide_nothing if own_index is None else hide_index(own_index)
            return cls(options, query, key, negatives, own, own_index, False, number, counts, None, raw)
        candidates, start = options.gather(key, counts)
        own = hide_diagonal(start)
        if own_index is not None:
            own = hide_both(own, hide_index(own_index + len(candidates)))
        number += len(candidates) - 1
        return cls(options, query, key, candidates, own, own_index, True, number, counts, negatives, raw)

    @property
    def bank(self) -> Tensor:
        """The rows that ``own_index`` counts: the negatives given."""
        return self.candidates if self.more is None else self.more

    def logits(self) -> tuple[Tensor, float, Tensor, bool]:
        """The queries and their products' scale (see `Options.scaled`), the positive logits, and whether all are
        bounded."""
        x, scale = self.options.scaled(self.query)
        parts = [self.candidates, self.key] + ([] if self.more is None else [self.more])
        bounded = all(self.options.is_bounded(self.query, part) for part in parts)
        return x, scale, (x * self.key).sum(1) * scale, bounded

    def over_all(self) -> Core:
        """InfoNCE with every negative."""
        x, scale, positive, bounded = self.logits()
        return lambda weight: log_normaliser(
            x,
            self.candidates,
            positive,
            more=self.more,
            hide=self.own,
            slot=True,
            scale=scale,
            bounded=bounded,
            weight=weight,
            tile=self.options.tile,
        )

    def reduce(self, core: Core, dense: Callable[..., Tensor] | None) -> Tensor:
        """The loss.

        ``dense`` is the module's `reference` with its options, for second derivatives: it takes query, key, negatives,
        own_index and ``temperature=``. None if ``core`` is plain torch.
        """
        twin = None if dense is None else self._twin(dense)
        return self.options.reduce(core, self.query, counts=self.counts, twin=twin)

    def _twin(self, dense: Callable[..., Tensor]) -> Twin:
        """The dense form. Of the negatives the user's own rows are saved, not their normalised copy."""
        options, own_index = self.options, self.own_index

        def values(query: Tensor, key: Tensor, negatives: Tensor | None, tau: float | Tensor) -> Tensor:
            negatives = None if negatives is None else options.rows(negatives.to(query.dtype))
            return dense(query, key, negatives, own_index, temperature=tau)

        pairs = len(self.query) * (self.num_negatives + 1)
        return options.twin(values, self.query, self.key, self.raw_negatives, pairs=pairs)


def _check_own_index(own_index: Tensor, query: Tensor, negatives: Tensor) -> Tensor:
    own_index = integer_labels("own_index", own_index, len(query), query.device)
    if len(own_index) and not (int(own_index.min()) >= 0 and int(own_index.max()) < len(negatives)):
        raise ValueError(
            f"own_index holds {int(own_index.min())} … {int(own_index.max())}, but negatives has rows 0 … "
            f"{len(negatives) - 1}"
        )
    return own_index


class KeyLoss(Loss):
    """Base of the losses of queries against their keys and the negatives.

    Call it with ``query [N, D]``, ``key [N, D]`` and, for a queue or a bank, ``negatives [K, D]`` and
    ``own_index [N]``; it returns a scalar, or ``[N]``.
    """

    def forward(
        self, query: Tensor, key: Tensor, negatives: Tensor | None = None, own_index: Tensor | None = None
    ) -> Tensor:
        """The loss; see the function for what each input means."""
        return type(self).function(query, key, negatives, own_index, **self.settings)


def dense(
    query: Tensor,
    key: Tensor,
    negatives: Tensor | None,
    own_index: Tensor | None,
    negatives_in_batch: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """For the references: s_ii ``[N]``, s_ij ``[N, M]``, and which of the latter are negatives, ``[N, M]``."""
    positive = (query * key).sum(1)
    in_batch = negatives is None or negatives_in_batch
    parts = [*([key] if in_batch else []), *([] if negatives is None else [negatives])]
    s = query @ torch.cat(parts).T
    is_negative = torch.ones_like(s, dtype=torch.bool)
    if in_batch:
        is_negative.fill_diagonal_(False)
    if own_index is not None:
        is_negative[torch.arange(len(s)), torch.as_tensor(own_index) + (len(key) if in_batch else 0)] = False
    return positive, s, is_negative


def nearest(logits: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest of each row and where they stand, in no particular order; exactly k also among equals."""
    top = torch.topk(logits, k, dim=1, sorted=False)
    return top.values, top.indices


def nearest_mask(s: Tensor, is_negative: Tensor, k: int) -> Tensor:
    """For the references: which of all similarities are an anchor's k nearest negatives, ``[N, M]`` bool."""
    s = s.detach().masked_fill(~is_negative, -torch.inf)
    chosen = s.argsort(dim=1, descending=True)[:, :k]
    return torch.zeros_like(is_negative).scatter_(1, chosen, True) & is_negative
