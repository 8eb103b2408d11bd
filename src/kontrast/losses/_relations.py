r"""Two distributions over the same candidates, as ReSSL and SCE compare them.

For anchor i with online row x_i, target row t_i (no gradient) and candidates c_k (no gradient):

    (1)  l_ik = ⟨x_i, c_k⟩/τ          s_ik = softmax_k ⟨t_i, c_k⟩/τ_m
    (2)  ℓ_i = log Z_i − w_i l_ii − (1−λ) Σ_k s_ik l_ik
    (3)  ∂ℓ_i/∂l_ik = e^{l_ik}/Z_i − (1−λ) s_ik

k runs over the candidates without the anchor's own target row; that row, where the loss has it, is a slot of its
own with logit l_ii (`positive`) and weight w_i, in Z_i but not in s_i. Both distributions of a strip of rows are
there at once, so (3) takes one more product and nothing is recomputed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from kontrast.losses._base import Loss
from kontrast.losses._inputs import not_empty, rows, same_dtype, same_shape
from kontrast.losses._softmax import Hide, Softmax, hide_diagonal, hide_nothing, row_shift
from kontrast.losses._tiles import LOG2E, Grads, Rows, Tile, strip_height, strips, tiled


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


def relate(
    x: Tensor,
    t: Tensor,
    c: Tensor,
    positive: Tensor | None,
    *,
    own: Hide,
    contrastive_weight: float,
    zero_logit: bool,
    scale: float,
    target_scale: float,
    bounded: bool,
    weight: Tensor | None,
    tile: Tile,
) -> Tensor:
    """(2) per anchor, or its weighted sum; ``scale`` is 1/τ (1 where x is divided already), ``target_scale`` 1/τ_m.

    Without ``positive`` the loss has no own slot. With ``zero_logit`` the own slot takes part in s_i with logit 0.
    """
    lam = contrastive_weight

    def run(tensors: Sequence[Tensor], weight: Tensor | None, needs: Sequence[bool]) -> tuple[Tensor, Grads]:
        x, positive = tensors
        t2 = t * (LOG2E * target_scale)
        pulled = x.new_zeros(len(x)) if positive is None else positive
        softmax = Softmax(pulled, own, slot=positive is not None, bounded=bounded)
        height = min(len(x), strip_height(2 * len(c), x.element_size(), tile))
        buffer = x.new_empty(height, len(c))
        everyone = slice(0, len(c))

        def block(logits: Tensor, r: slice, grad: bool) -> Rows:
            s = torch.mm(t2[r], c.T, out=buffer[: len(logits)])
            own(s, r, everyone)
            shift = None
            if not bounded:
                shift = row_shift(s).clamp_(min=0.0) if zero_logit else row_shift(s)
            s = (s if shift is None else s.sub_(shift[:, None])).exp2_()
            mass = s.sum(1)
            self_mass = torch.zeros_like(mass)
            if zero_logit:
                self_mass = torch.ones_like(mass) if shift is None else torch.exp2(-shift)
                mass = mass + self_mass
            nobody = mass == 0  # no candidate to relate to: the target is the own slot alone
            mass = torch.where(nobody, 1.0, mass)
            mean = torch.bmm(s[:, None], logits[:, :, None])[:, 0, 0] / (mass * LOG2E)  # Σ_k s_ik l_ik
            w = torch.where(nobody, 1.0, lam + (1 - lam) * self_mass / mass)
            first = softmax(logits, r, grad)
            if grad:
                logits.addcmul_(s, ((1 - lam) / (mass * first.factor))[:, None], value=-1.0)  # (3)
            value = first.value + (1 - w) * pulled[r] - (1 - lam) * mean  # (2)
            slope = None if first.positive is None else first.positive + (1 - w)
            return Rows(value, first.factor, slope)

        needs = (needs[0], False, needs[1], False)
        values, grads = strips(x, c, block, scale=scale, weight=weight, needs=needs, tile=height)
        return values, (grads[0], grads[2])

    return tiled(run, weight, x, positive)
