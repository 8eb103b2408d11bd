"""SCE: contrastive and relational at once; the target's relations soften the one positive. (Denize et al. 2023.)

    1.  k = target(weak view)                  no gradient
    2.  z = online(strong view)                with ``predictor``, a further head that the target has not
    3.  loss = SCE(z, k, queue; λ)             w = λ·own key + (1 − λ)·the target's relations to the queue
    4.  the target follows, the keys join the queue

``symmetric=True`` takes both views both ways and the mean of the two losses; the keys of both join the queue, as on
ImageNet.

Deviates: the paper's algorithm names the views the other way round; its code, and ReSSL, have the weak one as the
target. Its code does not start the target as a copy; the successor's does, and so do we.
"""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor, nn

from kontrast import losses, models
from kontrast.methods._base import LossOptions, OptionWords, Setting
from kontrast.methods._momentum import SMALL_BATCHES, MomentumMethod


class SCE(MomentumMethod):
    """Similarity contrastive estimation.

    Args:
        encoder: The encoder.
        head: The projector; it must say its ``out_dim``.
        setting: ``total_steps`` for a cosine momentum, and ``seed`` of the queue's first rows.
        temperature: τ of the online network's similarities.
        target_temperature: τ of the target network's.
        contrastive_weight: λ; 1 is MoCo.
        self_logit: The anchor's own slot in the target's relations: ``masked`` (the formula) or ``zero`` (the code).
        symmetric: Whether both views go both ways.
        predictor: Name of a further head on the online network, or None.
        memory: ``queue``, ``momentum``, ``momentum_schedule``, ``shuffle_keys`` and ``key_parts``.
    """

    loss: losses.SCELoss
    estimator_losses: ClassVar[LossOptions] = {"sce": SMALL_BATCHES}
    option_words: ClassVar[OptionWords] = {
        "contrastive_weight": "λ = {}",
        "self_logit": "self slot {}",
        "predictor": "predictor {}",
    }

    def __init__(
        self,
        encoder: nn.Module,
        head: nn.Module,
        *,
        setting: Setting | None = None,
        temperature: float = 0.1,
        target_temperature: float = 0.05,
        contrastive_weight: float = 0.5,
        self_logit: str = "masked",
        symmetric: bool = False,
        predictor: str | None = None,
        **memory: Any,
    ) -> None:
        super().__init__(encoder, head, setting=setting, symmetric=symmetric, **memory)
        self.loss = losses.SCELoss(temperature, target_temperature, contrastive_weight, self_logit=self_logit)
        out, seed = self.queue.rows.shape[1], (setting or Setting()).seed
        self.predictor = None if predictor is None else models.head(predictor, in_dim=out, out=out, seed=seed)

    @property
    def embedding_modules(self) -> list[nn.Module]:
        """Trained modules: the online network and, if set, the predictor."""
        return [self.online] if self.predictor is None else [self.online, self.predictor]

    def across_ranks(self) -> None:
        """Synchronise the predictor's batch norm too."""
        super().across_ranks()
        if self.predictor is not None:
            models.sync_batch_norm(self.predictor)

    def embed(self, views: Tensor) -> Tensor:
        """The online embeddings, through the predictor if set (step 2 of the module docstring)."""
        z = super().embed(views)
        if self.predictor is None:
            return z
        predicted: Tensor = self.predictor(z.flatten(0, 1))
        return predicted.view(*z.shape[:2], -1)
