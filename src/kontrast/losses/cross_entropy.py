r"""Cross-entropy with a linear classifier without bias, and penalties on its weights: their norm, their energy.

Embeddings z_i with labels y_i, weights w_1 … w_K:

    (1)  L_i = −log( e^{⟨z_i, w_{y_i}⟩} / Σ_c e^{⟨z_i, w_c⟩} )
    (2)  L   = (1/N) Σ_i L_i + λ ‖W‖_F² + μ E_s(W)

(Graf et al.; E_s is the hyperspherical energy of Liu et al. 2018, equations in `kontrast.energy`.) The minimum of (1)
over points in a ball and weights of a given norm is a regular simplex for both, and E_s is smallest there too: μ draws
the weights to where cross-entropy alone would bring them in the end, and does not see their length.

Deviates: λ multiplies ‖W‖² as in the paper's theorem; the authors' toy code has weight decay, λ/2·‖W‖². The
embeddings are not normalised unless asked, as in the paper, and there is no bias.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from kontrast import closed_forms
from kontrast.autograd import Twin, full_precision
from kontrast.checks import integer_labels, number, rows, same_dtype, whole_number
from kontrast.energy import energy
from kontrast.energy import energy_power as checked_power
from kontrast.losses._base import Loss
from kontrast.losses._limits import Batch, Limits, classifier_limits
from kontrast.losses._softmax import hide_index, log_normaliser
from kontrast.losses._tiles import Tile, in_range, largest_logit


class CrossEntropyLoss(Loss):
    """Cross-entropy with learned weights ``[num_classes, dim]``; they are the module's parameter ``weight``.

    The penalties λ‖W‖² (``weight_penalty``) and μE_s(W) (``energy_penalty``; s is ``energy_power``) are added once to
    the mean and the sum, and left out of "none".

    >>> loss = CrossEntropyLoss(num_classes=2, dim=2)
    >>> with torch.no_grad():
    ...     _ = loss.weight.copy_(torch.eye(2))
    >>> loss(torch.tensor([[1.0, 0.0]]), torch.tensor([0]))  # log(1 + e⁻¹)
    tensor(0.3133, grad_fn=<...>)
    """

    weight: Tensor

    def __init__(
        self,
        num_classes: int,
        dim: int,
        weight_penalty: float = 0.0,
        *,
        energy_penalty: float = 0.0,
        energy_power: float = 2.0,
        normalize: bool = False,
        reduction: str = "mean",
        gather_distributed: bool = True,
        tile: Tile = "auto",
    ) -> None:
        super().__init__(normalize=normalize, reduction=reduction, gather_distributed=gather_distributed, tile=tile)
        self.num_classes = whole_number("num_classes", num_classes, least=2)
        self.dim = whole_number("dim", dim, least=1)
        self.weight_penalty = number("weight_penalty", weight_penalty, least=0.0)
        self.energy_penalty = number("energy_penalty", energy_penalty, least=0.0)
        self.energy_power = checked_power(energy_power)
        self.weight = nn.Parameter(torch.empty(self.num_classes, self.dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """The weights as a fresh ``nn.Linear`` has them: uniform in ±1/√dim."""
        bound = 1 / math.sqrt(self.dim)
        nn.init.uniform_(self.weight, -bound, bound)

    def limits(self, batch: Batch) -> Limits:
        """Chance, collapsed value and bound with the weights as they are, penalties included; see `Loss.limits`."""
        w = self.weight.detach().double()
        norm = float(w.norm())
        shares = batch.class_shares(self.num_classes)
        bound = closed_forms.cross_entropy_any(shares, batch.length(self), norm)
        limits = classifier_limits(self, batch, self.weight, shares, bound)
        if self.reduction == "none":
            return limits
        repulsion = float(energy(w, self.energy_power)) if self.energy_penalty else 0.0
        penalties = self.weight_penalty * norm**2 + self.energy_penalty * repulsion
        return Limits(*(x + penalties for x in limits))

    @full_precision
    def forward(self, embeddings: Tensor, labels: Any) -> Tensor:
        """``embeddings [N, dim]``, ``labels [N]`` in 0 … num_classes − 1 → a scalar, or ``[N]``."""
        value = classify(self, embeddings, labels, self.weight)
        if self.reduction == "none":
            return value
        w = self.weight.to(value.dtype)
        if self.weight_penalty:
            value = value + self.weight_penalty * w.square().sum()  # (2)
        if self.energy_penalty:
            value = value + self.energy_penalty * energy(w, self.energy_power)  # (2)
        return value


def classify(loss: Loss, embeddings: Tensor, labels: Any, weight: Tensor) -> Tensor:
    """(1) with these weights, reduced as the loss says."""
    z = rows("embeddings", embeddings)
    k, dim = weight.shape
    if z.shape[1] != dim:
        raise ValueError(f"embeddings have shape {list(z.shape)}; this loss was made for dim={dim}: give [N, {dim}]")
    counts = loss._counts(z, "embeddings")
    labels = integer_labels("labels", labels, len(z), z.device)
    if len(labels) and not (int(labels.min()) >= 0 and int(labels.max()) < k):
        raise ValueError(
            f"labels run from {int(labels.min())} to {int(labels.max())}; with num_classes={k} they must be in "
            f"0 … {k - 1}"
        )
    z, w = same_dtype(z, rows("weight", weight))
    z = loss._rows(z)
    positive = (z * w.index_select(0, labels)).sum(1)
    bounded = in_range(largest_logit(z.detach(), w.detach()), k, z.dtype)

    def core(anchor_weight: Tensor | None) -> Tensor:
        return log_normaliser(  # (1)
            z,
            w,
            positive,
            hide=hide_index(labels),
            slot=True,
            scale=1.0,
            bounded=bounded,
            weight=anchor_weight,
            tile=loss.tile,
        )

    def values(z: Tensor, w: Tensor) -> Tensor:
        return reference(z, labels, weight=w)

    return loss._reduce(core, z, counts=counts, twin=Twin(values, (z, w), len(z) * k))


def reference(embeddings: Tensor, labels: Tensor, *, weight: Tensor) -> Tensor:
    """(1) per anchor with all logits at once; rows are taken as they are, the penalties are left out."""
    return -(embeddings @ weight.T).log_softmax(1)[torch.arange(len(labels)), labels]  # (1)
