r"""Relations to the same candidates, as ReSSL and SCE compare them.

For anchor i with online row x_i, target row t_i and candidates c_k (no gradient to either), k running over the
candidates without the anchor's own target row:

    (1)  l_ik = ⟨x_i, c_k⟩/τ          s_ik = softmax_k ⟨t_i, c_k⟩/τ_m
    (2)  −Σ_k s_ik log p_ik = log Z_i − Σ_k s_ik l_ik = log Z_i − ⟨x_i, m_i⟩/τ          m_i = Σ_k s_ik c_k

The target distribution enters through its mean m_i alone, which has no gradient: one pass over the candidates gives
m_i, another log Z_i and its gradient, both in blocks that stay in cache. (Three products suffice if both distributions
of a strip of rows are kept at once, but those strips leave the cache, and it is slower.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from kontrast.losses._base import Loss
from kontrast.losses._inputs import not_empty, rows, same_dtype, same_shape
from kontrast.losses._softmax import Hide, Softmax, hide_diagonal, hide_nothing, softmax_pass
from kontrast.losses._tiles import Tile


@dataclass(frozen=True)
class Relations:
    """Online and target rows and the candidates both are compared with."""

    online: Tensor  # [N, D]
    target: Tensor  # [N, D]
    candidates: Tensor  # [M, D]: the queue, or every rank's target rows
    own: Hide  # hides the anchor's own target row among the candidates
    counts: list[int]

    def others(self) -> int:
        """How many candidates an anchor has besides its own target row."""
        return len(self.candidates) - (self.own is not hide_nothing)


class SCETerms(NamedTuple):
    """The parts of SCE per anchor, ``[N]`` each: L_i = λ·info_nce + (1−λ)(ressl + ceil)."""

    info_nce: Tensor
    ressl: Tensor
    ceil: Tensor

    def combine(self, contrastive_weight: float) -> Tensor:
        """SCE with this λ, per anchor."""
        return contrastive_weight * self.info_nce + (1 - contrastive_weight) * (self.ressl + self.ceil)


def prepare(loss: Loss, online: Tensor, target: Tensor, queue: Tensor | None) -> Relations:
    """Check and normalise what the user passed; no gradient goes to the target or the queue."""
    online, target = rows("online", online), rows("target", target).detach()
    same_shape("online", online, "target", target)
    counts = loss._counts(online, "online")
    if queue is None:
        online, target = same_dtype(online, target)
        target = loss._rows(target)
        candidates, start = loss._gather(target, counts)
        return Relations(loss._rows(online), target, candidates, hide_diagonal(start), counts)
    queue = rows("queue", queue, like=online).detach()
    not_empty("queue", len(queue))
    online, target, queue = same_dtype(online, target, queue)
    online, target, queue = loss._rows(online), loss._rows(target), loss._rows(queue)
    return Relations(online, target, queue, hide_nothing, counts)


def relation_mean(
    batch: Relations, *, target_temperature: float, zero_logit: bool, bounded: bool, tile: Tile
) -> Tensor:
    """m_i of (2), ``[N, D]``. With ``zero_logit`` the own target row takes part with logit 0.

    An anchor that has nobody to relate to is related to its own target row.
    """
    t, c = batch.target, batch.candidates
    if batch.others() == 0:
        return t
    ones, zeros = t.new_ones(len(t)), t.new_zeros(len(t))
    block = Softmax(zeros, batch.own, slot=zero_logit, bounded=bounded)
    needs = (True, False, False)  # ∂ log Σ_k e^{⟨t, c_k⟩/τ_m} / ∂t = m/τ_m
    log_mass, (slope, _, _) = softmax_pass(
        t, c, block, scale=1.0 / target_temperature, weight=ones, needs=needs, tile=tile
    )
    assert slope is not None
    mean = slope.mul_(target_temperature)
    return mean.addcmul_(t, torch.exp(-log_mass)[:, None]) if zero_logit else mean


class RelationLoss(Loss):
    """A loss with a sharpened target distribution."""

    target_temperature: float
    self_logit: str = "masked"

    def _relations(self, batch: Relations) -> tuple[Tensor, bool]:
        """The mean of each anchor's target relations, and whether the online logits need no shift."""
        _, now = self._tau()
        mean = relation_mean(
            batch,
            target_temperature=self.target_temperature,
            zero_logit=self.self_logit == "zero",
            bounded=self._bounded(batch.target, batch.candidates, self.target_temperature),
            tile=self.tile,
        )
        bounded = self._bounded(batch.online, batch.candidates, now) and self._bounded(batch.online, batch.target, now)
        return mean, bounded
