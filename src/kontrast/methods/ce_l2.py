"""CE-L2: cross-entropy with the penalty λ‖W‖² on the classifier, whose minimum is a simplex of known size.

(Graf et al. 2021, L2 version: λ‖W‖², not half of it; r_W from `geometry.bounds.regularised_weight_radius`.) An
optimiser's weight decay μ on W comes on top: λ + μ/2 is what W then sees.
"""

from __future__ import annotations

from typing import ClassVar

from torch import nn

from kontrast import losses
from kontrast.methods._base import LossOptions, OptionWords, Setting
from kontrast.methods.ce import CE


class CEL2(CE):
    """Cross-entropy with a penalty on the weights.

    Args:
        encoder: The encoder.
        head: The projector; it must say its ``out_dim``.
        setting: ``num_classes``, and ``seed`` of the first weights.
        weight_penalty: λ, by which ‖W‖² is added to the loss.
    """

    estimator_losses: ClassVar[LossOptions] = {}
    option_words: ClassVar[OptionWords] = {"weight_penalty": "penalty λ = {}"}

    def __init__(
        self, encoder: nn.Module, head: nn.Module, *, setting: Setting | None = None, weight_penalty: float = 5e-4
    ) -> None:
        super().__init__(encoder, head, setting=setting)
        num_classes, dim = self.loss.weight.shape
        loss = losses.CrossEntropyLoss(num_classes, dim, weight_penalty)
        loss.load_state_dict(self.loss.state_dict())
        self.loss = loss
