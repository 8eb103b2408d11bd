"""CE: cross-entropy with a linear classifier, without bias. (Graf et al. 2021.)

1.  z = encoder(view)                      not normalised
2.  loss = CE(z, labels; W) + μ E_s(W)     W learned; μ, if set, pushes its directions apart (Liu et al. 2018)
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from kontrast import distributed, losses
from kontrast.data.loader import Stream, seed_of
from kontrast.methods._base import Method, Setting, ViewBatch, everyone, out_dim


class CE(Method):
    """Cross-entropy; several views of a sample are so many samples.

    ``energy_penalty`` μ times the hyperspherical energy of the weights, ‖ŵ_i − ŵ_j‖^(−s) on average over pairs of
    classes, s being ``energy_power`` (2 if left out), is added to the loss.
    """

    needs_labels = True
    loss: losses.CrossEntropyLoss | losses.SimplexCrossEntropyLoss

    def __init__(
        self,
        encoder: nn.Module,
        head: nn.Module,
        *,
        setting: Setting | None = None,
        energy_penalty: float | None = None,  # None and not 0: what is not asked for does not rename a run
        energy_power: float | None = None,
    ) -> None:
        super().__init__(encoder, head)
        if energy_power is not None and energy_penalty is None:
            raise ValueError(
                f"method.energy_power={energy_power}: needs method.energy_penalty, which is not set. "
                f"Set that too, or leave out both."
            )
        options: dict[str, Any] = {"energy_penalty": energy_penalty, "energy_power": energy_power}
        setting = setting or Setting()
        classes = setting.need("num_classes", "cross-entropy")
        with torch.random.fork_rng(devices=[]):  # the first weights are the seed's, wherever the method is made
            torch.default_generator.manual_seed(seed_of(setting.seed, Stream.NETWORK, 2))
            self.loss = losses.CrossEntropyLoss(
                classes, out_dim(head), **{name: x for name, x in options.items() if x is not None}
            )

    def objective(self, z: Tensor, keys: Tensor | None, batch: ViewBatch) -> Tensor:
        """2."""
        assert batch.labels is not None
        return self.loss(z.flatten(0, 1), batch.labels.repeat_interleave(z.shape[1]))  # type: ignore[no-any-return]

    @classmethod
    def protocol_options(cls, protocol: str) -> dict[str, Any]:
        """Graf et al.'s classifiers see unit features only where the loss did."""
        return {"normalize": False} if protocol.startswith("graf-") else {}

    @torch.no_grad()
    def report(self) -> dict[str, float]:
        """The accuracy on the batch, and the largest norm of a feature."""
        if self._last is None:
            return {}
        z, _, batch = self._last
        assert batch.labels is not None
        z = z.float().flatten(0, 1)
        right = (z @ self.loss.weight.T.float()).argmax(1) == batch.labels.repeat_interleave(len(z) // len(batch))
        return {"batch_accuracy": float(right.float().mean()), "largest_norm": float(z.norm(dim=1).max())}

    def _composition(self, z: Tensor, keys: Tensor | None, batch: ViewBatch) -> dict[str, Any]:
        assert batch.labels is not None
        largest = z.float().norm(dim=-1).max().view(1)
        radius = float(everyone(largest).max()) if distributed.active() else float(largest)
        return {"labels": everyone(batch.labels).tolist(), "radius": radius}
