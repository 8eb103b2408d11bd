"""SC: the supervised contrastive loss as Graf et al. train it: one view, no projector, batches with replacement.

    1.  z = encoder(view)                      the encoder's own output, normalised by the loss
    2.  loss = SupCon(z, labels)               an anchor alone in its class counts as 0, and is counted

(Graf et al. 2021 and their code: sum over the anchors that have a positive, divided by the batch size.)
"""

from __future__ import annotations

from typing import ClassVar

from torch import nn

from kontrast import losses
from kontrast.methods._base import LossOptions
from kontrast.methods.supcon import SupCon


class SC(SupCon):
    """Graf et al.'s supervised contrastive training; made for ``head: none`` and one view.

    Args:
        encoder: The encoder.
        head: The projector.
        temperature: τ of the loss.
    """

    estimator_losses: ClassVar[LossOptions] = {}

    def __init__(self, encoder: nn.Module, head: nn.Module, *, temperature: float = 0.1) -> None:
        super().__init__(encoder, head)
        self.loss = losses.SupConLoss(temperature, no_positive="zero")
