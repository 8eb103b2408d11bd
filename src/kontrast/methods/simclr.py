"""SimCLR: two views of each image, the other view the positive, all others negatives. (Chen et al. 2020.)

1.  z₁, z₂ = head(encoder(views))          both views in one pass
2.  loss = NT-Xent(z₁, z₂)                 or, with ``loss="hard"``, the mean of both directions of the hard
                                           contrastive loss: only the nearest negatives count (Wang & Liu)
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from kontrast import losses
from kontrast.methods._base import Method, Setting, ViewBatch, how_many


class SimCLR(Method):
    """SimCLR; ``loss`` is "ordinary" (NT-Xent) or "hard", which keeps ``hard_negatives`` of them."""

    fewest_views = most_views = 2

    def __init__(
        self,
        encoder: nn.Module,
        head: nn.Module,
        *,
        setting: Setting | None = None,
        temperature: float = 0.1,
        loss: str = "ordinary",
        hard_negatives: int = 63,
    ) -> None:
        super().__init__(encoder, head)
        if loss not in ("ordinary", "hard"):
            raise ValueError(f"loss is {loss!r}; simclr has 'ordinary' (NT-Xent) and 'hard'")
        self.hard = loss == "hard"
        self.loss = (
            losses.HardContrastiveLoss(temperature, hard_negatives) if self.hard else losses.NTXentLoss(temperature)
        )

    def objective(self, z: Tensor, keys: Tensor | None, batch: ViewBatch) -> Tensor:
        """2."""
        first, second = z.unbind(1)
        if self.hard:
            return (self.loss(first, second) + self.loss(second, first)) / 2  # type: ignore[no-any-return]
        return self.loss(first, second)  # type: ignore[no-any-return]

    def _composition(self, z: Tensor, keys: Tensor | None, batch: ViewBatch) -> dict[str, Any]:
        return {"num_pairs": how_many(z)}
