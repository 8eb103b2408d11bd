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
from kontrast.engine import Tile, hide_both, hide_diagonal, hide_index, log_normaliser, pair_square
from kontrast.losses._base import Core, Loss, Options
from kontrast.losses._limits import Batch, Limits, anchor_limits


@full_precision
def nt_xent(
    view1: Tensor,
    view2: Tensor,
    *,
    temperature: float | Tensor = 0.1,
    normalize: bool = True,
    reduction: str = "mean",
    gather_distributed: bool = True,
    tile: Tile = "auto",
) -> Tensor:
    """NT-Xent over both views as anchors.

    Args:
        view1: ``[N, D]``, one view of each instance.
        view2: ``[N, D]``, the other.
        temperature: τ, a number above 0, or a scalar tensor, which may be learned.
        normalize: Put the rows on the unit sphere first. A zero row stays zero and gets no gradient.
        reduction: "mean" or "sum" over the anchors of all processes, or "none" for a value per anchor.
        gather_distributed: With several processes, compare with the rows of all of them.
        tile: The side of the blocks it is computed in; "auto" is measured. It changes time and memory only.

    Returns:
        A scalar, or with ``reduction="none"`` the values ``[N, 2]``.

    Raises:
        ValueError: For inputs or options that do not fit; it says which and what would.

    >>> nt_xent(torch.eye(2), torch.eye(2), temperature=1.0)  # log(e + 2) − 1
    tensor(0.5514)
    """
    options = Options(
        temperature, normalize=normalize, reduction=reduction, gather_distributed=gather_distributed, tile=tile
    )
    view1, view2 = rows("view1", view1), rows("view2", view2)
    same_shape("view1", view1, "view2", view2)
    z = options.rows(torch.cat(same_dtype(view1, view2)))
    n = len(view1)
    counts = [2 * n for n in options.counts(view1, "view1")]
    first, second = z.chunk(2)
    positive = ((first * second).sum(1) / options.tau).repeat(2)
    everyone, start = options.gather(z, counts)
    bounded = options.is_bounded(z, everyone)
    core: Core
    if bounded and options.processes == 1:
        x, scale = options.scaled(z, power=0.5)
        other = hide_both(hide_diagonal(n), hide_diagonal(-n))
        core = lambda weight: pair_square(x, positive, other, scale=scale, weight=weight, tile=options.tile)  # noqa: E731
    else:
        x, scale = options.scaled(z)
        other = hide_index(torch.arange(start, start + 2 * n, device=z.device).roll(n))
        hide = hide_both(hide_diagonal(start), other)
        core = lambda weight: log_normaliser(  # noqa: E731
            x, everyone, positive, hide=hide, slot=True, scale=scale, bounded=bounded, weight=weight, tile=options.tile
        )

    def values(z: Tensor, tau: float | Tensor) -> Tensor:
        return reference(*z.chunk(2), temperature=tau).T.flatten()

    value = options.reduce(core, z, counts=counts, twin=options.twin(values, z, pairs=len(z) * len(everyone)))
    return value.view(2, -1).T if reduction == "none" else value


class NTXentLoss(Loss):
    """NT-Xent as a module; `nt_xent` is its function.

    Args:
        temperature: τ, a number above 0, or a scalar tensor, which may be learned.
        normalize: Put the rows on the unit sphere first. A zero row stays zero and gets no gradient.
        reduction: "mean" or "sum" over the anchors of all processes, or "none" for a value per anchor.
        gather_distributed: With several processes, compare with the rows of all of them.
        tile: The side of the blocks it is computed in; "auto" is measured. It changes time and memory only.

    Call the module with ``(view1, view2)``; see `nt_xent`.

    Raises:
        ValueError: For an option out of range.

    >>> views = torch.eye(2)
    >>> NTXentLoss(temperature=1.0)(views, views)  # log(e + 2) − 1
    tensor(0.5514)
    """

    function = staticmethod(nt_xent)

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
        self.temperature = temperature

    def forward(self, view1: Tensor, view2: Tensor) -> Tensor:
        """The loss; see `nt_xent` for what each input means."""
        return nt_xent(view1, view2, **self.settings)

    def limits(self, batch: Batch) -> Limits:
        """Chance, collapsed value and bound; see `Loss.limits`."""
        pairs = batch.need("num_pairs", "num_pairs", self)
        limits = anchor_limits(self, batch, 1, 2 * pairs - 2, -1 / max(pairs - 1, 1))
        return limits.scaled(2 * pairs if self.reduction == "sum" else 1)


def reference(view1: Tensor, view2: Tensor, *, temperature: float | Tensor) -> Tensor:
    """(1) with all similarities at once, per anchor, ``[N, 2]``; rows are taken as they are."""
    z = torch.cat([view1, view2])
    n = len(view1)
    logits = (z @ z.T / temperature).fill_diagonal_(-torch.inf)
    other = torch.arange(2 * n, device=z.device).roll(n)
    per_anchor = -logits.log_softmax(1)[torch.arange(2 * n), other]  # (1)
    return per_anchor.view(2, n).T
