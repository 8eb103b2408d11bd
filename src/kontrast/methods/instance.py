"""Instance discrimination with a memory bank: every image a class of its own. (Wu et al. 2018; Wang & Liu, section 5.)

    1.  f = head(encoder(view))                one augmented view
    2.  loss = L(f, v_i, bank)                 the positive is the sample's own slot, all other slots are negatives
    3.  v_i ← normalised mean of v_i and f     after the optimiser's step

L is Wang & Liu's "ordinary" contrastive loss, "hard" (only the nearest negatives), "simple" (no softmax at all), or
"hard-simple". "simple" and "hard-simple" know no temperature.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from kontrast import losses, models
from kontrast.data.loader import Stream, generator
from kontrast.methods._base import Method, Setting, ViewBatch, out_dim

KINDS = ("ordinary", "hard", "simple", "hard-simple")


class Instance(Method):
    """Instance discrimination, with one of Wang & Liu's four losses.

    Args:
        encoder: The encoder.
        head: The projector; it must say its ``out_dim``.
        setting: ``num_samples`` of the memory bank, and ``seed`` of its first rows.
        loss: ``ordinary``, ``hard``, ``simple`` or ``hard-simple``.
        temperature: τ of the loss; the simple losses have none.
        hard_negatives: How many nearest negatives the hard losses keep.
        bank_momentum: The weight of the old slot in its update.

    Raises:
        ValueError: The loss is unknown, or ``num_samples`` is missing.
    """

    fewest_views = most_views = 1

    def __init__(
        self,
        encoder: nn.Module,
        head: nn.Module,
        *,
        setting: Setting | None = None,
        loss: str = "ordinary",
        temperature: float = 0.07,
        hard_negatives: int = 4095,
        bank_momentum: float = 0.5,
    ) -> None:
        setting = setting or Setting()
        super().__init__(encoder, head)
        if loss not in KINDS:
            raise ValueError(f"method.loss={loss!r}: must be one of {', '.join(KINDS)}")
        by_name: dict[str, losses.Loss] = {
            "ordinary": losses.InfoNCELoss(temperature),
            "hard": losses.HardContrastiveLoss(temperature, hard_negatives),
            "simple": losses.SimpleContrastiveLoss(),
            "hard-simple": losses.SimpleContrastiveLoss(hard_negatives=hard_negatives),
        }
        self.loss = by_name[loss]
        samples = setting.need("num_samples", "instance discrimination, one slot a sample,")
        draw = generator(setting.seed, Stream.KEYS)
        self.bank = models.MemoryBank(samples, out_dim(head), bank_momentum, generator=draw)

    def objective(self, z: Tensor, keys: Tensor | None, batch: ViewBatch) -> Tensor:
        """The loss of the view against the bank (step 2 of the module docstring)."""
        own = _indices(batch)
        return self.loss(z[:, 0], self.bank.keys(own), self.bank.rows, own_index=own)  # type: ignore[no-any-return]

    def after_step(self) -> None:
        """Update the slots of the batch (step 3 of the module docstring)."""
        if self._last is not None:
            z, _, batch = self._last
            self.bank.update(_indices(batch), z[:, 0])

    @torch.no_grad()
    def report(self) -> dict[str, float]:
        """The mean similarity of a view to its sample's slot."""
        if self._last is None:
            return {}
        z, _, batch = self._last
        own = self.bank.keys(_indices(batch))
        return {"positive_similarity": float(torch.cosine_similarity(z[:, 0].float(), own, dim=1).mean())}

    @classmethod
    def loss_temperature(cls, options: Mapping[str, Any]) -> float | None:
        return None if "simple" in str(options.get("loss")) else super().loss_temperature(options)

    @classmethod
    def keeps_nearest_negatives(cls, options: Mapping[str, Any]) -> bool:
        return "hard" in str(options.get("loss"))

    def composition(self, z: Tensor, keys: Tensor | None, batch: ViewBatch) -> losses.Batch:
        return losses.Batch(num_negatives=max(len(self.bank) - 1, 1))


def _indices(batch: ViewBatch) -> Tensor:
    if batch.indices is None:
        raise ValueError("batch.indices=None: must be the rows of the data set for instance discrimination, int64 [n]")
    return batch.indices
