"""CE-fix: cross-entropy with the classifier's weights fixed at a regular simplex. (Graf et al. 2021; Mettes et al.)

The simplex is built in closed form (`kontrast.simplex`); the published code's is reached by descent, and only nearly.
``weights="random"`` fixes them at random directions instead, to tell what the simplex does from what fixing does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch
from torch import nn

from kontrast import losses
from kontrast.data.loader import Stream, generator
from kontrast.methods._base import LossOptions, OptionWords, Setting
from kontrast.methods.ce import CE
from kontrast.sphere import unit


class CEFix(CE):
    """Cross-entropy with fixed weights.

    Args:
        encoder: The encoder.
        head: The projector; it must say its ``out_dim``.
        setting: ``num_classes``, and ``seed`` of random weights.
        radius: The length of the weights.
        weights: Their directions: ``simplex`` or ``random``.
    """

    estimator_losses: ClassVar[LossOptions] = {"simplex-cross-entropy": {}}
    option_words: ClassVar[OptionWords] = {"radius": "weights of length {}", "weights": "fixed at {}"}

    def __init__(
        self,
        encoder: nn.Module,
        head: nn.Module,
        *,
        setting: Setting | None = None,
        radius: float = 1.0,
        weights: str = "simplex",
    ) -> None:
        super().__init__(encoder, head, setting=setting)
        seed = (setting or Setting()).seed
        shape = self.loss.weight.shape
        self.loss = losses.SimplexCrossEntropyLoss(*shape, radius=radius, seed=seed)
        if weights == "random":
            directions = unit(torch.randn(shape, generator=generator(seed, Stream.NETWORK, 3)))
            self.loss.weight.copy_(radius * directions)
        elif weights != "simplex":
            raise ValueError(f"method.weights={weights!r}: must be 'simplex' or 'random'")

    @classmethod
    def words(cls, options: Mapping[str, Any], *, number: Callable[[float], str]) -> str:
        """Those of the base class; where the weights are fixed in words."""
        weights = "a regular simplex" if options["weights"] == "simplex" else f"{options['weights']} directions"
        return super().words({**options, "weights": weights}, number=number)
