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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from kontrast.autograd import Twin
from kontrast.checks import not_empty, rows, same_dtype, same_shape
from kontrast.engine import Grads, Hide, Softmax, hide_diagonal, hide_nothing, softmax_pass, tiled
from kontrast.losses._base import Core, Loss, Options


class SCETerms(NamedTuple):
    """The parts of SCE per anchor, ``[N]`` each: L_i = λ·info_nce + (1−λ)(ressl + ceil).

    Attributes:
        info_nce: InfoNCE of the own target row against the candidates.
        ressl: ReSSL.
        ceil: The ceiling, −log of the probability that is not the own row's.
    """

    info_nce: Tensor
    ressl: Tensor
    ceil: Tensor

    def combine(self, contrastive_weight: float) -> Tensor:
        """SCE with this λ, per anchor."""
        return contrastive_weight * self.info_nce + (1 - contrastive_weight) * (self.ressl + self.ceil)


@dataclass(frozen=True)
class Relations:
    """Online and target rows and the candidates both are compared with."""

    options: Options
    online: Tensor  # [N, D]
    target: Tensor  # [N, D]
    candidates: Tensor  # [M, D]: the queue, or every rank's target rows
    own: Hide  # hides the anchor's own target row among the candidates
    counts: list[int]
    raw: tuple[Tensor, Tensor | None]  # target and queue, not normalised

    @classmethod
    def of(cls, options: Options, online: Tensor, target: Tensor, queue: Tensor | None) -> Relations:
        """Check and normalise what the user passed; no gradient goes to the target or the queue.

        Raises:
            ValueError: For shapes or types that do not go together.
        """
        raw = (target, queue)
        online, target = rows("online", online), rows("target", target).detach()
        same_shape("online", online, "target", target)
        counts = options.counts(online, "online")
        if queue is None:
            online, target = same_dtype(online, target)
            target = options.rows(target)
            candidates, start = options.gather(target, counts)
            return cls(options, options.rows(online), target, candidates, hide_diagonal(start), counts, raw)
        queue = rows("queue", queue, like=online).detach()
        not_empty("queue", len(queue))
        online, target, queue = same_dtype(online, target, queue)
        online, target, queue = (options.rows(x) for x in (online, target, queue))
        return cls(options, online, target, queue, hide_nothing, counts, raw)

    def others(self) -> int:
        """How many candidates an anchor has besides its own target row."""
        return len(self.candidates) - (self.own is not hide_nothing)

    def reduce(self, core: Core, dense: Callable[..., Tensor]) -> Tensor:
        """The loss; ``dense`` is its form in plain torch, of online, target, queue and ``temperature=``."""
        twin = self._twin(dense) if self.others() else None
        return self.options.reduce(core, self.online, counts=self.counts, twin=twin)

    def _twin(self, dense: Callable[..., Tensor]) -> Twin:
        """The dense form. Of target and queue the user's own rows are saved, not their normalised copies."""
        options = self.options

        def values(online: Tensor, target: Tensor, queue: Tensor | None, tau: float | Tensor) -> Tensor:
            target = options.rows(target.to(online.dtype))
            queue = None if queue is None else options.rows(queue.to(online.dtype))
            return dense(online, target, queue, temperature=tau)

        target, queue = self.raw
        pairs = len(self.online) * len(self.candidates)
        bank = None if queue is None else queue.detach()
        return options.twin(values, self.online, target.detach(), bank, pairs=pairs)

    def relate(
        self, target_temperature: float, *, own_slot: bool, zero_logit: bool = False, contrastive_weight: float = 0.0
    ) -> Core:
        """ReSSL: (2). SCE: InfoNCE + (1−λ) ⟨x_i, t_i − m_i⟩/τ, where Z_i has the own slot and s_i has it with logit 0
        if ``zero_logit``. An anchor that has nobody to relate to is related to its own target row: the value is 0."""
        options = self.options
        x, scale = options.scaled(self.online)
        t, c, n = self.target, self.candidates, len(self.target)
        bounded = (
            options.is_bounded(self.online, c)
            and options.is_bounded(t, c, target_temperature)
            and options.is_bounded(self.online, t)
        )
        target_logits = t * (1.0 / target_temperature)
        alone = self.others() == 0
        soft = 1.0 - contrastive_weight

        def run(tensors: Sequence[Tensor], weight: Tensor | None, needs: Sequence[bool]) -> tuple[Tensor, Grads]:
            x = tensors[0] * scale
            own = (x * t).sum(1) if own_slot else x.new_zeros(n)
            self_logit = torch.full_like(own, 0.0 if zero_logit or not own_slot else -torch.inf)
            block = Softmax(torch.cat([own, self_logit]), twice(self.own, n), slot=own_slot, bounded=bounded)
            g = own.new_zeros(n) if weight is None else weight
            values, (slope, _, by_positive, _) = softmax_pass(
                torch.cat([x, target_logits]),
                c,
                block,
                scale=1.0,
                weight=torch.cat([g, torch.ones_like(own)]),
                needs=(True, False, True, False),
                tile=options.tile,
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


class RelationLoss(Loss):
    """Base of the losses against a sharpened target distribution.

    Call it with ``online [N, D]``, ``target [N, D]`` and, if there is one, ``queue [K, D]``; it returns a scalar, or
    ``[N]``.
    """

    target_temperature: float

    def forward(self, online: Tensor, target: Tensor, queue: Tensor | None = None) -> Tensor:
        """The loss; see the function for what each input means."""
        return type(self).function(online, target, queue, **self.settings)


def twice(hide: Hide, n: int) -> Hide:
    """Hides for rows n … 2n − 1 what it hides for rows 0 … n − 1."""

    def both(logits: Tensor, r: slice, c: slice) -> None:
        upper = max(0, min(r.stop, n) - r.start)
        if upper:
            hide(logits[:upper], slice(r.start, r.start + upper), c)
        if upper < len(logits):
            hide(logits[upper:], slice(r.start + upper - n, r.stop - n), c)

    return both
