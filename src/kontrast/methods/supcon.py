"""SupCon: several views of each image; every row of the same class is a positive. (Khosla et al. 2020; TCL's baseline.)

1.  z = head(encoder(views))               all views in one pass
2.  loss = SupCon(z, labels)               positives: the same label, the other views included
"""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn

from kontrast import losses
from kontrast.methods._base import LossOptions, Method, ViewBatch, everyone


class SupCon(Method):
    """Supervised contrastive learning.

    Args:
        encoder: The encoder.
        head: The projector.
        temperature: τ of the loss.
    """

    needs_labels = True
    estimator_losses: ClassVar[LossOptions] = {"supcon": {}}

    def __init__(self, encoder: nn.Module, head: nn.Module, *, temperature: float = 0.1) -> None:
        super().__init__(encoder, head)
        self.loss = losses.SupConLoss(temperature)

    def objective(self, z: Tensor, keys: Tensor | None, batch: ViewBatch) -> Tensor:
        """SupCon loss of all views (step 2 of the module docstring)."""
        return self.loss(z, batch.labels)  # type: ignore[no-any-return]

    def composition(self, z: Tensor, keys: Tensor | None, batch: ViewBatch) -> losses.Batch:
        assert batch.labels is not None
        return losses.Batch(labels=everyone(batch.labels).tolist(), num_views=z.shape[1])

    @property
    def response(self) -> tuple[float, float]:
        return 0.0, 1.0

    @property
    def interaction_temperature(self) -> float | None:
        return self.temperature
