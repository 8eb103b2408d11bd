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
from kontrast.checks import number, rows, whole_number
from kontrast.engine import Tile
from kontrast.losses._base import Loss
from kontrast.losses._limits import Batch, Limits, classifier_limits
from kontrast.losses.cross_entropy import cross_entropy
from kontrast.losses.cross_entropy import reference as reference


def simplex_cross_entropy(
    embeddings: Tensor,
    labels: Any,
    *,
    num_classes: int,
    radius: float = 1.0,
    seed: int = 0,
    normalize: bool = False,
    reduction: str = "mean",
    gather_distributed: bool = True,
    tile: Tile = "auto",
) -> Tensor:
    """Cross-entropy with weights fixed at a regular simplex, which is computed at every call.

    Args:
        embeddings: ``[N, dim]``.
        labels: ``[N]``, integers in 0 … num_classes − 1.
        num_classes: How many classes there are, at least 2 and at most dim + 1.
        radius: The length of each weight. Raise it when the embeddings are normalised: they cannot grow then.
        seed: What turns the simplex; the same seed gives the same weights.
        normalize: Put the embeddings on the unit sphere first. A zero row stays zero and gets no gradient.
        reduction: "mean" or "sum" over the anchors of all processes, or "none" for a value per anchor.
        gather_distributed: With several processes, compare with the rows of all of them.
        tile: The side of the blocks it is computed in; "auto" is measured. It changes time and memory only.

    Returns:
        A scalar, or with ``reduction="none"`` the values ``[N]``.

    Raises:
        ValueError: For inputs or options that do not fit; it says which and what would.

    >>> z = simplex.vertices(3, 2, seed=0)
    >>> simplex_cross_entropy(z, torch.tensor([0, 1, 2]), num_classes=3)  # log(1 + 2 e^{−3/2})
    tensor(0.3690)
    """
    z = rows("embeddings", embeddings)
    weight = simplex.vertices(num_classes, z.shape[1], radius=radius, seed=seed, dtype=z.dtype).to(z.device)
    return cross_entropy(
        embeddings,
        labels,
        weight=weight,
        normalize=normalize,
        reduction=reduction,
        gather_distributed=gather_distributed,
        tile=tile,
    )


class SimplexCrossEntropyLoss(Loss):
    """Cross-entropy with fixed weights as a module.

    The weights ``[num_classes, dim]`` are the module's buffer ``weight``.

    Args:
        num_classes: How many classes there are, at least 2 and at most dim + 1.
        dim: The length of an embedding.
        radius: The length of each weight. Raise it when the embeddings are normalised: they cannot grow then.
        seed: What turns the simplex; the same seed gives the same weights.
        normalize: Put the embeddings on the unit sphere first. A zero row stays zero and gets no gradient.
        reduction: "mean" or "sum" over the anchors of all processes, or "none" for a value per anchor.
        gather_distributed: With several processes, compare with the rows of all of them.
        tile: The side of the blocks it is computed in; "auto" is measured. It changes time and memory only.

    Call the module with ``(embeddings, labels)``; see `simplex_cross_entropy`.

    Raises:
        ValueError: For an option out of range, or if dim has no room for the simplex.

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

    def forward(self, embeddings: Tensor, labels: Any) -> Tensor:
        """The loss; see `simplex_cross_entropy` for what each input means."""
        return cross_entropy(
            embeddings,
            labels,
            weight=self.weight,
            normalize=self.normalize,
            reduction=self.reduction,
            gather_distributed=self.gather_distributed,
            tile=self.tile,
        )

    def limits(self, batch: Batch) -> Limits:
        """Chance, collapsed value and bound (Jensen bounds each sample by itself); see `Loss.limits`."""
        bound = closed_forms.cross_entropy(
            self.num_classes, batch.length(self), math.sqrt(self.num_classes) * self.radius
        )
        return classifier_limits(self, batch, self.weight, batch.class_shares(self.num_classes), bound)
