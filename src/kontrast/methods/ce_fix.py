"""CE-fix: cross-entropy with the classifier's weights fixed at a regular simplex. (Graf et al. 2021; Mettes et al.)

The simplex is built in closed form (`kontrast.simplex`); the published code's is reached by descent, and only nearly.
"""

from __future__ import annotations

from torch import nn

from kontrast import losses
from kontrast.methods._base import Setting
from kontrast.methods.ce import CE


class CEFix(CE):
    """Cross-entropy towards fixed directions; ``radius`` is the weights' length."""

    def __init__(
        self, encoder: nn.Module, head: nn.Module, *, setting: Setting | None = None, radius: float = 1.0
    ) -> None:
        super().__init__(encoder, head, setting=setting)
        num_classes, dim = self.loss.weight.shape
        self.loss = losses.SimplexCrossEntropyLoss(num_classes, dim, radius=radius, seed=(setting or Setting()).seed)
