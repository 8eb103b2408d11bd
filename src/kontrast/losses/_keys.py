"""Queries and their keys, as InfoNCE, the hard and the simple contrastive loss take them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from kontrast.autograd import Twin, full_precision
from kontrast.checks import integer_labels, not_empty, rows, same_dtype, same_shape
from kontrast.losses._base import Core, Loss
from kontrast.losses._softmax import Hide, hide_both, hide_diagonal, hide_index, hide_nothing, log_normaliser


@dataclass(frozen=True)
class Keys:
    """Anchors, the key that is each one's positive, and the candidates among which its negatives are."""

    query: Tensor  # [N, D]
    key: Tensor  # [N, D]
    candidates: Tensor  # [M, D]: every rank's keys, or the negatives given
    own: Hide  # hides the candidates that are the anchor's own: its key, and its row of a memory bank
    own_index: Tensor | None  # [N], the rows of the bank
    in_batch: bool  # whether the candidates are the keys
    num_negatives: int
    counts: list[int]  # anchors on each rank
    more: Tensor | None = None  # [K, D]: the negatives given, where they are candidates beside the keys

    @property
    def bank(self) -> Tensor:
        """The rows that ``own_index`` counts: the negatives given."""
        return self.candidates if self.more is None else self.more


def prepare(
    loss: Loss,
    query: Tensor,
    key: Tensor,
    negatives: Tensor | None,
    own_index: Tensor | None,
    *,
    negatives_in_batch: bool = False,
) -> Keys:
    """Check and normalise what the user passed, and gather the keys of the other ranks."""
    query = rows("query", query)
    key = rows("key", key, like=query)
    same_shape("query", query, "key", key)
    counts = loss._counts(query, "query")
    if negatives is None:
        if own_index is not None:
            raise ValueError("own_index names rows of negatives, but negatives is None")
        query, key = same_dtype(query, key)
    else:
        negatives = rows("negatives", negatives, like=query)
        not_empty("negatives", len(negatives))
        query, key, negatives = same_dtype(query, key, negatives)
        negatives = loss._rows(negatives)
        own_index = None if own_index is None else check_own_index(own_index, query, negatives)
    query, key = loss._rows(query), loss._rows(key)
    given = 0 if negatives is None else len(negatives) - (own_index is not None)
    if negatives is not None and not negatives_in_batch:
        own = hide_nothing if own_index is None else hide_index(own_index)
        return Keys(query, key, negatives, own, own_index, False, given, counts)
    candidates, start = loss._gather(key, counts)
    own = hide_diagonal(start)
    if own_index is not None:
        own = hide_both(own, hide_index(own_index + len(candidates)))
    number = len(candidates) - 1 + given
    return Keys(query, key, candidates, own, own_index, True, number, counts, negatives)


def check_own_index(own_index: Tensor, query: Tensor, negatives: Tensor) -> Tensor:
    """Row numbers of ``negatives``, one an anchor."""
    own_index = integer_labels("own_index", own_index, len(query), query.device)
    if len(own_index) and not (int(own_index.min()) >= 0 and int(own_index.max()) < len(negatives)):
        raise ValueError(
            f"own_index holds {int(own_index.min())} … {int(own_index.max())}, but negatives has rows 0 … "
            f"{len(negatives) - 1}"
        )
    return own_index


class KeyLoss(Loss):
    """A loss of queries against their keys and the negatives."""

    negatives_in_batch: bool = False  # whether the other keys are negatives beside the rows given

    @full_precision
    def forward(
        self, query: Tensor, key: Tensor, negatives: Tensor | None = None, own_index: Tensor | None = None
    ) -> Tensor:
        """``query [N, D]``, ``key [N, D]``, ``negatives [K, D]``, ``own_index [N]`` → a scalar, or ``[N]``.

        Without ``negatives`` the other keys are the negatives. With them they are not, unless the loss was made with
        ``negatives_in_batch=True``. ``own_index`` names each anchor's own row of ``negatives`` (of a memory bank),
        which is left out.
        """
        keys = prepare(self, query, key, negatives, own_index, negatives_in_batch=self.negatives_in_batch)
        twin = self._twin(keys, negatives)
        return self._reduce(self._core(keys), keys.query, counts=keys.counts, twin=twin)

    @abstractmethod
    def _core(self, keys: Keys) -> Core:
        """The loss per anchor, or weighted."""

    @abstractmethod
    def _reference(
        self, query: Tensor, key: Tensor, negatives: Tensor | None, own_index: Tensor | None, tau: float | Tensor
    ) -> Tensor:
        """The module's `reference` with the options of this loss."""

    def _twin(self, keys: Keys, negatives: Tensor | None) -> Twin | None:
        """The dense form. Of ``negatives`` the user's own rows are saved, not their normalised copy."""
        own_index = keys.own_index

        def values(query: Tensor, key: Tensor, negatives: Tensor | None, tau: float | Tensor) -> Tensor:
            negatives = None if negatives is None else self._rows(negatives.to(query.dtype))
            return self._reference(query, key, negatives, own_index, tau)

        pairs = len(keys.query) * (keys.num_negatives + 1)
        return self._dense_form(values, keys.query, keys.key, negatives, pairs=pairs)

    def _over_all(self, keys: Keys) -> Core:
        """InfoNCE with every negative."""
        x, scale, positive, bounded = self._logits(keys)
        return lambda weight: log_normaliser(
            x,
            keys.candidates,
            positive,
            more=keys.more,
            hide=keys.own,
            slot=True,
            scale=scale,
            bounded=bounded,
            weight=weight,
            tile=self.tile,
        )

    def _logits(self, keys: Keys) -> tuple[Tensor, float, Tensor, bool]:
        """The queries and their products' scale (see `_scaled`), the positive logits, and whether all are bounded."""
        x, scale = self._scaled(keys.query)
        _, now = self._tau()
        parts = [keys.candidates, keys.key] + ([] if keys.more is None else [keys.more])
        bounded = all(self._bounded(keys.query, part, now) for part in parts)
        return x, scale, (x * keys.key).sum(1) * scale, bounded


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
