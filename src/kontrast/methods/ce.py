"""CE: cross-entropy with a linear classifier, without bias. (Graf et al. 2021.)

1.  z = encoder(view)                      not normalised
2.  loss = CE(z, labels; W) + μ E_s(W)     W learned; μ, if set, pushes its directions apart (Liu et al. 2018)
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from kontrast import distributed, losses
from kontrast.data.loader import Stream, seed_of
from kontrast.methods._base import LossOptions, Method, OptionWords, Setting, ViewBatch, everyone, out_dim


class CE(Method):
    """Cross-entropy; every view counts as a sample.

    Args:
        encoder: The encoder.
        head: The projector; it must say its ``out_dim``.
        setting: ``num_classes``, and ``seed`` of the first weights.
        energy_penalty: μ, by which the hyperspherical energy of the weights, the mean of ‖ŵ_i − ŵ_j‖^(−s) over pairs
            of classes, is added to the loss; None adds nothing.
        energy_power: s; 2 by default.

    Raises:
        ValueError: ``num_classes`` is missing, or ``energy_power`` is given without ``energy_penalty``.
    """

    needs_labels = True
    estimator_losses: ClassVar[LossOptions] = {"cross-entropy": {}}
    option_words: ClassVar[OptionWords] = {
        "energy_penalty": "penalty μ = {} on the hyperspherical energy of the weights",
        "energy_power": "energy power s = {}",
    }
    loss: losses.CrossEntropyLoss | losses.SimplexCrossEntropyLoss

    def __init__(
        self,
        encoder: nn.Module,
        head: nn.Module,
        *,
        setting: Setting | None = None,
        energy_penalty: float | None = None,  # None and not 0: a new option must not change a run's hash
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
        """The loss of all views (step 2 of the module docstring)."""
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
        is_right = (z @ self.loss.weight.T.float()).argmax(1) == batch.labels.repeat_interleave(len(z) // len(batch))
        return {"batch_accuracy": float(is_right.float().mean()), "largest_norm": float(z.norm(dim=1).max())}

    @property
    def class_weights(self) -> Tensor:
        return self.loss.weight

    def composition(self, z: Tensor, keys: Tensor | None, batch: ViewBatch) -> losses.Batch:
        assert batch.labels is not None
        largest = z.float().norm(dim=-1).max().view(1)
        radius = float(everyone(largest).max()) if distributed.active() else float(largest)
        return losses.Batch(labels=everyone(batch.labels).tolist(), radius=radius)
