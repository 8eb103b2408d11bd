"""TCL with labels: SupCon's batch, its loss tuned by k1 and k2. (Animesh & Chandraker, supplement section 2.1.)

1.  z = head(encoder(views))               two views of each image, all in one pass
2.  loss = TCL(z, labels; k1, k2)          k1 strengthens the pull on hard positives, k2 the push on negatives
"""

from __future__ import annotations

from typing import ClassVar

from torch import nn

from kontrast import losses
from kontrast.methods._base import LossOptions
from kontrast.methods.supcon import SupCon


class TCL(SupCon):
    """Tuned contrastive learning with labels; ``k1=0, k2=1`` is SupCon.

    Args:
        encoder: The encoder.
        head: The projector.
        temperature: τ of the loss.
        k1: Strength of the pull on hard positives.
        k2: Strength of the push on negatives.
    """

    loss: losses.TCLLoss
    estimator_losses: ClassVar[LossOptions] = {"tcl": {}}

    def __init__(
        self,
        encoder: nn.Module,
        head: nn.Module,
        *,
        temperature: float = 0.1,
        k1: float = 5000.0,
        k2: float = 1.0,
    ) -> None:
        super().__init__(encoder, head)
        self.loss = losses.TCLLoss(temperature, k1, k2)

    @property
    def response(self) -> tuple[float, float]:
        return self.loss.k1, self.loss.k2

    @property
    def interaction_temperature(self) -> None:
        return None
