"""TCL without labels: the other views of an image are its positives. (Animesh & Chandraker, supplement section 2.3.)

    1.  z = head(encoder(views))               three views of each image: two positives per anchor
    2.  loss = TCL(z; k1, k2)                  every view of another image is a negative

Deviates: what the third view is and the temperature are not in print; here all views are drawn alike, and 0.2 is
solo-learn's, on whose code the experiments ran.
"""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn

from kontrast import losses
from kontrast.methods._base import LossOptions, Method, ViewBatch, how_many


class TCLSelf(Method):
    """Tuned contrastive learning without labels.

    Args:
        encoder: The encoder.
        head: The projector.
        temperature: τ of the loss.
        k1: Strength of the pull on hard positives.
        k2: Strength of the push on negatives.
    """

    loss: losses.TCLLoss

    fewest_views = 2
    estimator_losses: ClassVar[LossOptions] = {"tcl": {}}

    def __init__(
        self,
        encoder: nn.Module,
        head: nn.Module,
        *,
        temperature: float = 0.2,
        k1: float = 1.0,
        k2: float = 1.5,
    ) -> None:
        super().__init__(encoder, head)
        self.loss = losses.TCLLoss(temperature, k1, k2)

    def objective(self, z: Tensor, keys: Tensor | None, batch: ViewBatch) -> Tensor:
        """TCL loss of all views (step 2 of the module docstring)."""
        return self.loss(z)  # type: ignore[no-any-return]

    def composition(self, z: Tensor, keys: Tensor | None, batch: ViewBatch) -> losses.Batch:
        return losses.Batch(num_pairs=how_many(z), num_views=z.shape[1])

    @property
    def response(self) -> tuple[float, float]:
        return self.loss.k1, self.loss.k2
