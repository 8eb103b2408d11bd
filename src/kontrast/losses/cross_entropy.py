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
from kontrast.engine import Tile, hide_index, in_range, largest_logit, log_normaliser
from kontrast.losses._base import Loss, Options
from kontrast.losses._limits import Batch, Limits, classifier_limits


@full_precision
def cross_entropy(
    embeddings: Tensor,
    labels: Any,
    *,
    weight: Tensor,
    weight_penalty: float = 0.0,
    energy_penalty: float = 0.0,
    energy_power: float = 2.0,
    normalize: bool = False,
    reduction: str = "mean",
    gather_distributed: bool = True,
    tile: Tile = "auto",
) -> Tensor:
    """Cross-entropy of a linear classifier without bias, and penalties on its weights.

    Args:
        embeddings: ``[N, dim]``.
        labels: ``[N]``, integers in 0 … num_classes − 1.
        weight: ``[num_classes, dim]``, the classifier's weights. They get a gradient if they require one.
        weight_penalty: λ, at least 0: λ‖W‖² is added once to the mean and the sum, and left out of "none".
        energy_penalty: μ, at least 0: μE_s(W) is added in the same way.
        energy_power: s, from 0 to 10.
        normalize: Put the embeddings on the unit sphere first. A zero row stays zero and gets no gradient.
        reduction: "mean" or "sum" over the anchors of all processes, or "none" for a value per anchor.
        gather_distributed: With several processes, compare with the rows of all of them.
        tile: The side of the blocks it is computed in; "auto" is measured. It changes time and memory only.

    Returns:
        A scalar, or with ``reduction="none"`` the values ``[N]``.

    Raises:
        ValueError: For inputs or options that do not fit; it says which and what would.

    >>> cross_entropy(torch.tensor([[1.0, 0.0]]), torch.tensor([0]), weight=torch.eye(2))  # log(1 + e⁻¹)
    tensor(0.3133)
    """
    options = Options(normalize=normalize, reduction=reduction, gather_distributed=gather_distributed, tile=tile)
    penalty = number("weight_penalty", weight_penalty, least=0.0)
    repulsion = number("energy_penalty", energy_penalty, least=0.0)
    power = checked_power(energy_power)
    z = rows("embeddings", embeddings)
    k, dim = weight.shape
    if z.shape[1] != dim:
        raise ValueError(f"embeddings have shape {list(z.shape)}; this loss was made for dim={dim}: give [N, {dim}]")
    counts = options.counts(z, "embeddings")
    labels = integer_labels("labels", labels, len(z), z.device)
    if len(labels) and not (int(labels.min()) >= 0 and int(labels.max()) < k):
        raise ValueError(
            f"labels run from {int(labels.min())} to {int(labels.max())}; with num_classes={k} they must be in "
            f"0 … {k - 1}"
        )
    z, w = same_dtype(z, rows("weight", weight))
    z = options.rows(z)
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
            tile=options.tile,
        )

    def values(z: Tensor, w: Tensor) -> Tensor:
        return reference(z, labels, weight=w)

    value = options.reduce(core, z, counts=counts, twin=Twin(values, (z, w), len(z) * k))
    if reduction == "none":
        return value
    w = weight.to(value.dtype)
    if penalty:
        value = value + penalty * w.square().sum()  # (2)
    if repulsion:
        value = value + repulsion * energy(w, power)  # (2)
    return value


class CrossEntropyLoss(Loss):
    """Cross-entropy with learned weights as a module; `cross_entropy` is its function.

    The weights ``[num_classes, dim]`` are the module's parameter ``weight``.

    Args:
        num_classes: How many classes there are, at least 2.
        dim: The length of an embedding.
        weight_penalty: λ, at least 0: λ‖W‖² is added once to the mean and the sum, and left out of "none".
        energy_penalty: μ, at least 0: μE_s(W) is added in the same way.
        energy_power: s, from 0 to 10.
        normalize: Put the embeddings on the unit sphere first. A zero row stays zero and gets no gradient.
        reduction: "mean" or "sum" over the anchors of all processes, or "none" for a value per anchor.
        gather_distributed: With several processes, compare with the rows of all of them.
        tile: The side of the blocks it is computed in; "auto" is measured. It changes time and memory only.

    Call the module with ``(embeddings, labels)``; see `cross_entropy`.

    Raises:
        ValueError: For an option out of range.

    >>> loss = CrossEntropyLoss(num_classes=2, dim=2)
    >>> with torch.no_grad():
    ...     _ = loss.weight.copy_(torch.eye(2))
    >>> loss(torch.tensor([[1.0, 0.0]]), torch.tensor([0]))  # log(1 + e⁻¹)
    tensor(0.3133, grad_fn=<...>)
    """

    weight: Tensor
    function = staticmethod(cross_entropy)

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

    def forward(self, embeddings: Tensor, labels: Any) -> Tensor:
        """The loss; see `cross_entropy` for what each input means."""
        return cross_entropy(embeddings, labels, **self.settings)

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


def reference(embeddings: Tensor, labels: Tensor, *, weight: Tensor) -> Tensor:
    """(1) per anchor with all logits at once; rows are taken as they are, the penalties are left out."""
    return -(embeddings @ weight.T).log_softmax(1)[torch.arange(len(labels)), labels]  # (1)
