r"""Relations to the same candidates, as ReSSL and SCE compare them.

For anchor i with online row x_i, target row t_i and candidates c_k (no gradient to either), k running over the
candidates without the anchor's own target row:

    (1)  l_ik = ⟨x_i, c_k⟩/τ          s_ik = softmax_k ⟨t_i, c_k⟩/τ_m
    (2)  −Σ_k s_ik log p_ik = log Z_i − Σ_k s_ik l_ik = log Z_i − ⟨x_i, m_i⟩/τ          m_i = Σ_k s_ik c_k

The target distribution enters through its mean m_i alone, and m_i is to log Σ_k e^{⟨t_i, c_k⟩/τ_m} what the gradient is
to log Z_i: both distributions come out of one pass over the candidates, in which the rows of t stand below those of x.
(Three products instead of four suffice if all logits of a strip of rows are kept until both normalisers are known, but
those strips leave the cache, and it is slower.)
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from kontrast.autograd import Twin, full_precision
from kontrast.checks import not_empty, rows, same_dtype, same_shape
from kontrast.losses._base import Core, Loss
from kontrast.losses._softmax import Hide, Softmax, hide_diagonal, hide_nothing, softmax_pass
from kontrast.losses._tiles import Grads, tiled


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


class RelationLoss(Loss):
    """A loss against a sharpened target distribution; with an own slot it is SCE, without one ReSSL."""

    target_temperature: float

    @full_precision
    def forward(self, online: Tensor, target: Tensor, queue: Tensor | None = None) -> Tensor:
        """``online [N, D]``, ``target [N, D]``, ``queue [K, D]`` → a scalar, or ``[N]``."""
        batch = prepare(self, online, target, queue)
        twin = self._twin(self._reference, batch, target, queue) if batch.others() else None
        return self._reduce(self._core(batch), batch.online, counts=batch.counts, twin=twin)

    @abstractmethod
    def _core(self, batch: Relations) -> Core:
        """The loss per anchor, or weighted."""

    @abstractmethod
    def _reference(self, online: Tensor, target: Tensor, queue: Tensor | None, tau: float | Tensor) -> Tensor:
        """The module's `reference` with the options of this loss."""

    def _twin(self, dense: Callable[..., Tensor], batch: Relations, target: Tensor, queue: Tensor | None) -> Twin:
        """``dense(online, target, queue, tau)`` as a twin. The user's own target and queue are saved, not copies."""

        def values(online: Tensor, target: Tensor, queue: Tensor | None, tau: float | Tensor) -> Tensor:
            target = self._rows(target.to(online.dtype))
            return dense(online, target, None if queue is None else self._rows(queue.to(online.dtype)), tau)

        pairs = len(batch.online) * len(batch.candidates)
        bank = None if queue is None else queue.detach()
        return self._dense_form(values, batch.online, target.detach(), bank, pairs=pairs)

    def _relate(
        self, batch: Relations, *, own_slot: bool, zero_logit: bool = False, contrastive_weight: float = 0.0
    ) -> Core:
        """ReSSL: (2). SCE: InfoNCE + (1−λ) ⟨x_i, t_i − m_i⟩/τ, where Z_i has the own slot and s_i has it with logit 0
        if ``zero_logit``. An anchor that has nobody to relate to is related to its own target row: the value is 0."""
        x, scale = self._scaled(batch.online)
        t, c, n = batch.target, batch.candidates, len(batch.target)
        _, now = self._tau()
        bounded = (
            self._bounded(batch.online, c, now)
            and self._bounded(t, c, self.target_temperature)
            and self._bounded(batch.online, t, now)
        )
        target_logits = t * (1.0 / self.target_temperature)
        alone = batch.others() == 0
        soft = 1.0 - contrastive_weight

        def run(tensors: Sequence[Tensor], weight: Tensor | None, needs: Sequence[bool]) -> tuple[Tensor, Grads]:
            x = tensors[0] * scale
            own = (x * t).sum(1) if own_slot else x.new_zeros(n)
            self_logit = torch.full_like(own, 0.0 if zero_logit or not own_slot else -torch.inf)
            block = Softmax(torch.cat([own, self_logit]), twice(batch.own, n), slot=own_slot, bounded=bounded)
            g = own.new_zeros(n) if weight is None else weight
            values, (slope, _, by_positive, _) = softmax_pass(
                torch.cat([x, target_logits]),
                c,
                block,
                scale=1.0,
                weight=torch.cat([g, torch.ones_like(own)]),
                needs=(True, False, True, False),
                tile=self.tile,
            )
            assert slope is not None
            assert by_positive is not None
            mean = slope[n:]
            if zero_logit:
                mean.addcmul_(t, (1.0 + by_positive[n:])[:, None])  # ∂ log Z/∂positive − 1 = −(1 − the slot's share)
            pull = t - mean if own_slot else -mean
            values = values[:n] + soft * (x * pull).sum(1)
            if weight is None:
                return values, (None,)
            gx = slope[:n].addcmul_(pull, g[:, None], value=soft)
            if own_slot:
                gx.addcmul_(t, by_positive[:n, None])
            return values, (gx.mul_(scale),)

        def nothing(weight: Tensor | None) -> Tensor:
            values = (x * 0.0).sum(1)
            return values if weight is None else values.sum()

        return nothing if alone else lambda weight: tiled(run, weight, x, fixed=(t, c))


def twice(hide: Hide, n: int) -> Hide:
    """Hides for rows n … 2n − 1 what it hides for rows 0 … n − 1."""

    def both(logits: Tensor, r: slice, c: slice) -> None:
        upper = max(0, min(r.stop, n) - r.start)
        if upper:
            hide(logits[:upper], slice(r.start, r.start + upper), c)
        if upper < len(logits):
            hide(logits[upper:], slice(r.start + upper - n, r.stop - n), c)

    return both
