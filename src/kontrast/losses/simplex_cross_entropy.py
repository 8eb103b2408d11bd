r"""Cross-entropy whose weights are fixed at a regular simplex ("CE-fix").

    (1)  L_i = −log( e^{⟨z_i, ζ_{y_i}⟩} / Σ_c e^{⟨z_i, ζ_c⟩} )      ζ the unit vertices of `kontrast.simplex`

The weights stand where cross-entropy would bring them at its minimum, and only the encoder learns. (Graf et al.,
after Mettes et al.) There must be room for the simplex: dim ≥ num_classes − 1.

Deviates: the authors' code finds the vertices by gradient descent without clearing gradients and does not reach a
simplex; here it is the closed form, turned by a fixed random frame, so that features that cannot be negative can
still point at every vertex.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from kontrast import closed_forms, simplex
from kontrast.autograd import full_precision
from kontrast.checks import number, whole_number
from kontrast.losses._base import Loss
from kontrast.losses._limits import Batch, Limits, classifier_limits
from kontrast.losses._tiles import Tile
from kontrast.losses.cross_entropy import classify
from kontrast.losses.cross_entropy import reference as reference


class SimplexCrossEntropyLoss(Loss):
    """Cross-entropy with fixed weights ``[num_classes, dim]``, the module's buffer ``weight``.

    ``radius`` is the length of each weight (raise it when the embeddings are normalised: they cannot grow then);
    ``seed`` turns the simplex, and the same seed gives the same weights.

    >>> loss = SimplexCrossEntropyLoss(num_classes=3, dim=2)
    >>> loss(loss.weight, torch.tensor([0, 1, 2]))  # log(1 + 2 e^{−3/2})
    tensor(0.3690)
    """

    weight: Tensor

    def __init__(
        self,
        num_classes: int,
        dim: int,
        *,
        radius: float = 1.0,
        seed: int = 0,
        normalize: bool = False,
        reduction: str = "mean",
        gather_distributed: bool = True,
        tile: Tile = "auto",
    ) -> None:
        super().__init__(normalize=normalize, reduction=reduction, gather_distributed=gather_distributed, tile=tile)
        self.num_classes = whole_number("num_classes", num_classes, least=2)
        self.dim = whole_number("dim", dim, least=1)
        self.radius, self.seed = number("radius", radius, above=0.0), seed
        dtype = torch.get_default_dtype()
        vertices = simplex.vertices(self.num_classes, self.dim, radius=self.radius, seed=seed, dtype=dtype)
        self.register_buffer("weight", vertices)

    def limits(self, batch: Batch) -> Limits:
        """Chance, collapsed value and bound (Jensen bounds each sample by itself); see `Loss.limits`."""
        bound = closed_forms.cross_entropy(
            self.num_classes, batch.length(self), math.sqrt(self.num_classes) * self.radius
        )
        return classifier_limits(self, batch, self.weight, batch.class_shares(self.num_classes), bound)

    @full_precision
    def forward(self, embeddings: Tensor, labels: Any) -> Tensor:
        """``embeddings [N, dim]``, ``labels [N]`` in 0 … num_classes − 1 → a scalar, or ``[N]``."""
        return classify(self, embeddings, labels, self.weight)
