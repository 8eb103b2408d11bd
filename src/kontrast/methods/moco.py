"""MoCo: InfoNCE against a queue of past keys of a momentum encoder. (He et al. 2020; SCE with λ = 1.)

1.  k = target(weak view)                  no gradient, keys in another order than the queries
2.  q = online(strong view)
3.  loss = InfoNCE(q, k, queue)            one positive key, the queue the negatives
4.  the target follows, the keys join the queue
"""

from __future__ import annotations

from typing import Any, ClassVar

from torch import nn

from kontrast import losses
from kontrast.methods._base import LossOptions, Setting
from kontrast.methods._momentum import SMALL_BATCHES, MomentumMethod


class MoCo(MomentumMethod):
    """MoCo with SCE's settings for small sets.

    Args:
        encoder: The encoder.
        head: The projector; it must say its ``out_dim``.
        setting: ``total_steps`` for a cosine momentum, and ``seed`` of the queue's first rows.
        temperature: τ of the loss.
        memory: ``queue``, ``momentum``, ``momentum_schedule``, ``symmetric``, ``shuffle_keys`` and ``key_parts``.
    """

    estimator_losses: ClassVar[LossOptions] = {"info-nce": SMALL_BATCHES}

    def __init__(
        self,
        encoder: nn.Module,
        head: nn.Module,
        *,
        setting: Setting | None = None,
        temperature: float = 0.1,
        **memory: Any,
    ) -> None:
        super().__init__(encoder, head, setting=setting, **memory)
        self.loss = losses.InfoNCELoss(temperature)
