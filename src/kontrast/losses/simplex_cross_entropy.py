r"""Cross-entropy whose weights are fixed at a regular simplex ("CE-fix").

    (1)  L_i = −log( e^{⟨z_i, ζ_{y_i}⟩} / Σ_c e^{⟨z_i, ζ_c⟩} )      ζ the unit vertices of `kontrast.simplex`

The weights stand where cross-entropy would bring them at its minimum, and only the encoder learns. (Graf et al.,
after Mettes et al.) There must be room for the simplex: dim ≥ num_classes − 1.

Deviates: the authors' code finds the vertices by gradient descent without clearing gradients and does not reach a
simplex; here it is the closed form, turned by a fixed random frame, so that features that cannot be negative can
still point at every vertex.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from kontrast import simplex
from kontrast.losses._base import Loss
from kontrast.losses._inputs import full_precision
from kontrast.losses._tiles import Tile
from kontrast.losses.cross_entropy import classify
from kontrast.losses.cross_entropy import reference as reference


class SimplexCrossEntropyLoss(Loss):
    """Cross-entropy with fixed weights ``[num_classes, dim]``, the module's buffer ``weight``.

    ``seed`` turns the simplex; the same seed gives the same weights.

    >>> import torch
    >>> loss = SimplexCrossEntropyLoss(num_classes=3, dim=2)
    >>> loss(loss.weight, torch.tensor([0, 1, 2]))  # log(1 + 2 e^{−3/2})
    tensor(0.3691)
    """

    weight: Tensor

    def __init__(
        self,
        num_classes: int,
        dim: int,
        *,
        seed: int = 0,
        normalize: bool = False,
        reduction: str = "mean",
        gather_distributed: bool = True,
        tile: Tile = "auto",
    ) -> None:
        super().__init__(
            normalize=normalize, reduction=reduction, gather_distributed=gather_distributed, tile=tile
        )
        self.num_classes, self.dim = num_classes, dim
        self.register_buffer("weight", simplex.vertices(num_classes, dim, seed=seed))

    @full_precision
    def forward(self, embeddings: Tensor, labels: Any) -> Tensor:
        """``embeddings [N, dim]``, ``labels [N]`` in 0 … num_classes − 1 → a scalar, or ``[N]``."""
        return classify(self, embeddings, labels, self.weight)
