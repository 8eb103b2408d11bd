"""SimCLR: two views of each image, the other view the positive, all others negatives. (Chen et al. 2020.)

1.  z₁, z₂ = head(encoder(views))          both views in one pass
2.  loss = NT-Xent(z₁, z₂)                 or, for Wang & Liu's other losses, the mean of both directions: "hard" (only
                                           the nearest negatives count), "simple" (no softmax), "hard-simple"

From random weights the two hard losses may collapse: the nearest negatives of an image are then other images' views by
chance alone. ``warmup_steps`` trains on NT-Xent first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from kontrast import losses
from kontrast.methods._base import LossOptions, Method, Setting, ViewBatch, how_many
from kontrast.methods.instance import KINDS, Instance


class SimCLR(Method):
    """SimCLR, with one of Wang & Liu's four losses.

    Args:
        encoder: The encoder.
        head: The projector.
        setting: ``total_steps``, to compare with ``warmup_steps``.
        temperature: τ of the loss; the simple losses have none.
        loss: ``ordinary`` (NT-Xent), ``hard``, ``simple`` or ``hard-simple``.
        hard_negatives: How many nearest negatives the hard losses keep.
        warmup_steps: How many steps NT-Xent is trained first.

    Raises:
        ValueError: An option is wrong, or the run ends within the warm-up.
    """

    fewest_views = most_views = 2
    estimator_losses: ClassVar[LossOptions] = {
        "supcon": {},  # two views without labels: NT-Xent is the same number
        "nt-xent": {},
        "hard-contrastive": {"loss": "hard"},
        "simple-contrastive": {"loss": "simple"},
    }
    steps: Tensor

    def __init__(
        self,
        encoder: nn.Module,
        head: nn.Module,
        *,
        setting: Setting | None = None,
        temperature: float = 0.1,
        loss: str = "ordinary",
        hard_negatives: int = 63,
        warmup_steps: int = 0,
    ) -> None:
        super().__init__(encoder, head)
        if loss not in KINDS:
            raise ValueError(f"method.loss={loss!r}: must be one of {', '.join(KINDS)}")
        if isinstance(warmup_steps, bool) or not isinstance(warmup_steps, int) or warmup_steps < 0:
            raise ValueError(f"method.warmup_steps={warmup_steps!r}: must be a number of steps, 0 or more")
        total = None if setting is None else setting.total_steps
        if total is not None and 0 < total <= warmup_steps:
            raise ValueError(
                f"method.warmup_steps={warmup_steps}: must be below the run's {total} steps, else the {loss} loss is "
                "never used. Lower it, or train longer"
            )
        by_name: dict[str, losses.Loss] = {
            "ordinary": losses.NTXentLoss(temperature),
            "hard": losses.HardContrastiveLoss(temperature, hard_negatives),
            "simple": losses.SimpleContrastiveLoss(),
            "hard-simple": losses.SimpleContrastiveLoss(hard_negatives=hard_negatives),
        }
        self.loss = self.main = by_name[loss]
        self.first = losses.NTXentLoss(temperature)
        self.warmup_steps = warmup_steps
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def objective(self, z: Tensor, keys: Tensor | None, batch: ViewBatch) -> Tensor:
        """The loss of the two views (step 2 of the module docstring)."""
        first, second = z.unbind(1)
        self.loss = self.first if self.steps < self.warmup_steps else self.main
        if isinstance(self.loss, losses.NTXentLoss):
            return self.loss(first, second)  # type: ignore[no-any-return]
        return (self.loss(first, second) + self.loss(second, first)) / 2  # type: ignore[no-any-return]

    def after_step(self) -> None:
        """Count the steps of the warm-up."""
        self.steps += 1

    @classmethod
    def loss_temperature(cls, options: Mapping[str, Any]) -> float | None:
        return Instance.loss_temperature(options)

    @classmethod
    def keeps_nearest_negatives(cls, options: Mapping[str, Any]) -> bool:
        return Instance.keeps_nearest_negatives(options)

    def composition(self, z: Tensor, keys: Tensor | None, batch: ViewBatch) -> losses.Batch:
        return losses.Batch(num_pairs=how_many(z))
