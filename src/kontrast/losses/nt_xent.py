r"""NT-Xent, the loss of SimCLR.

Two views of each of N instances make 2N unit vectors z; j(i) is the other view of i's instance and every
vector but i itself is a candidate:

    (1)  L_i = −log( e^{s_{i,j(i)}/τ} / Σ_{k≠i} e^{s_ik/τ} )

(Chen et al., SimCLR. It is SupCon without labels on two views, and InfoNCE in which each anchor also sees the
other anchors.)

Deviates: with several processes the positive is found by the gathered place of its instance, so uneven batches
are right; SimCLR's code assumes equal ones.
"""

from __future__ import annotations

import torch
from torch import Tensor

from kontrast.autograd import full_precision
from kontrast.checks import rows, same_dtype, same_shape
from kontrast.losses._base import Core, Loss
from kontrast.losses._limits import Batch, Limits, anchor_limits
from kontrast.losses._softmax import hide_both, hide_diagonal, hide_index, log_normaliser, pair_square
from kontrast.losses._tiles import Tile


class NTXentLoss(Loss):
    """NT-Xent over both views as anchors.

    >>> views = torch.eye(2)
    >>> NTXentLoss(temperature=1.0)(views, views)  # log(e + 2) − 1
    tensor(0.5514)
    """

    def __init__(
        self,
        temperature: float | Tensor = 0.1,
        *,
        normalize: bool = True,
        reduction: str = "mean",
        gather_distributed: bool = True,
        tile: Tile = "auto",
    ) -> None:
        super().__init__(normalize=normalize, reduction=reduction, gather_distributed=gather_distributed, tile=tile)
        self._set_temperature(temperature)

    def limits(self, batch: Batch) -> Limits:
        """Chance, collapsed value and bound; see `Loss.limits`."""
        pairs = batch.need("num_pairs", "num_pairs", self)
        limits = anchor_limits(self, batch, 1, 2 * pairs - 2, -1 / max(pairs - 1, 1))
        return limits.scaled(2 * pairs if self.reduction == "sum" else 1)

    @full_precision
    def forward(self, view1: Tensor, view2: Tensor) -> Tensor:
        """``view1 [N, D]``, ``view2 [N, D]`` → a scalar, or ``[N, 2]``."""
        view1, view2 = rows("view1", view1), rows("view2", view2)
        same_shape("view1", view1, "view2", view2)
        z = self._rows(torch.cat(same_dtype(view1, view2)))
        counts = [2 * n for n in self._counts(view1, "view1")]
        tau, now = self._tau()
        first, second = z.chunk(2)
        positive = ((first * second).sum(1) / tau).repeat(2)
        everyone, start = self._gather(z, counts)
        bounded = self._bounded(z, everyone, now)

        n = len(view1)
        if bounded and not self._together:
            x, scale = self._scaled(z, power=0.5)
            other = hide_both(hide_diagonal(n), hide_diagonal(-n))
            core: Core = lambda weight: pair_square(  # noqa: E731
                x, positive, other, scale=scale, weight=weight, tile=self.tile
            )
        else:
            x, scale = self._scaled(z)
            other = hide_index(torch.arange(start, start + 2 * n, device=z.device).roll(n))
            hide = hide_both(hide_diagonal(start), other)
            core = lambda weight: log_normaliser(  # noqa: E731
                x, everyone, positive, hide=hide, slot=True, scale=scale, bounded=bounded, weight=weight, tile=self.tile
            )

        def values(z: Tensor, tau: float | Tensor) -> Tensor:
            return reference(*z.chunk(2), temperature=tau).T.flatten()

        value = self._reduce(core, z, counts=counts, twin=self._dense_form(values, z, pairs=len(z) * len(everyone)))
        return value.view(2, -1).T if self.reduction == "none" else value


def reference(view1: Tensor, view2: Tensor, *, temperature: float | Tensor) -> Tensor:
    """(1) with all similarities at once, per anchor, ``[N, 2]``; rows are taken as they are."""
    z = torch.cat([view1, view2])
    n = len(view1)
    logits = (z @ z.T / temperature).fill_diagonal_(-torch.inf)
    other = torch.arange(2 * n, device=z.device).roll(n)
    per_anchor = -logits.log_softmax(1)[torch.arange(2 * n), other]  # (1)
    return per_anchor.view(2, n).T
