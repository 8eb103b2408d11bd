"""TCL without labels: the other views of an image are its positives. (Animesh & Chandraker, supplement section 2.3.)

    1.  z = head(encoder(views))               three views of each image: two positives per anchor
    2.  loss = TCL(z; k1, k2)                  every view of another image is a negative

Deviates: what the third view is and the temperature are not in print; here all views are drawn alike, and 0.2 is
solo-learn's, on whose code the experiments ran.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from kontrast import losses
from kontrast.methods._base import Method, Setting, ViewBatch, how_many


class TCLSelf(Method):
    """Tuned contrastive learning without labels."""

    fewest_views = 2

    def __init__(
        self,
        encoder: nn.Module,
        head: nn.Module,
        *,
        setting: Setting | None = None,
        temperature: float = 0.2,
        k1: float = 1.0,
        k2: float = 1.5,
    ) -> None:
        super().__init__(encoder, head)
        self.loss = losses.TCLLoss(temperature, k1, k2)

    def objective(self, z: Tensor, keys: Tensor | None, batch: ViewBatch) -> Tensor:
        """2."""
        return self.loss(z)  # type: ignore[no-any-return]

    def _composition(self, z: Tensor, keys: Tensor | None, batch: ViewBatch) -> dict[str, Any]:
        return {"num_pairs": how_many(z), "num_views": z.shape[1]}
