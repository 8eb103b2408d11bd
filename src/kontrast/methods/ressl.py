"""ReSSL: the online network is to see the same relations to past samples as the target does. (Zheng et al. 2021.)

    1.  k = target(weak view)                  no gradient
    2.  z = online(strong view)
    3.  loss = ReSSL(z, k, queue)              cross-entropy of the relations to the queue, the target's sharper
    4.  the target follows, the keys join the queue

The published code moves the target before the keys are computed; as it starts as a copy, that is the same.
"""

from __future__ import annotations

from typing import Any, ClassVar

from torch import nn

from kontrast import losses
from kontrast.methods._base import LossOptions, Setting
from kontrast.methods._momentum import SMALL_BATCHES, MomentumMethod


class ReSSL(MomentumMethod):
    """Relational self-supervised learning.

    Args:
        encoder: The encoder.
        head: The projector; it must say its ``out_dim``.
        setting: ``total_steps`` for a cosine momentum, and ``seed`` of the queue's first rows.
        temperature: τ of the online network's similarities.
        target_temperature: τ of the target network's.
        memory: ``queue``, ``momentum``, ``momentum_schedule``, ``symmetric``, ``shuffle_keys`` and ``key_parts``.
    """

    loss: losses.ReSSLLoss
    estimator_losses: ClassVar[LossOptions] = {"ressl": SMALL_BATCHES}

    def __init__(
        self,
        encoder: nn.Module,
        head: nn.Module,
        *,
        setting: Setting | None = None,
        temperature: float = 0.1,
        target_temperature: float = 0.04,
        **memory: Any,
    ) -> None:
        super().__init__(encoder, head, setting=setting, **memory)
        self.loss = losses.ReSSLLoss(temperature, target_temperature)
