r"""ReSSL: the online network learns the target's relations to the other samples.

z¹ = online, z² = target (no gradient), unit rows. Over the candidates k, which are the other target rows of the
batch, or the rows of a queue,

    (1)  s_ik = softmax_k ⟨z²_i, z²_k⟩/τ_m
    (2)  p_ik = softmax_k ⟨z¹_i, z²_k⟩/τ
    (3)  L_i = −Σ_k s_ik log p_ik

τ_m < τ makes the target sharper than what is learned. There is no positive slot: an anchor's own target row is in
neither distribution. (Zheng et al., ReSSL; as a part of SCE in its supplement, section B.)

Deviates: the authors' code knows only the queue form; in the batch form self is masked in both softmaxes, as the
SCE supplement writes L_ReSSL. An anchor with nobody to relate to (a batch of one) has the value 0.
"""

from __future__ import annotations

import functools
import math

import torch
from torch import Tensor

from kontrast.autograd import full_precision
from kontrast.checks import number
from kontrast.engine import Tile
from kontrast.losses._base import Options
from kontrast.losses._limits import Batch, Limits
from kontrast.losses._relations import RelationLoss, Relations


@full_precision
def ressl(
    online: Tensor,
    target: Tensor,
    queue: Tensor | None = None,
    *,
    temperature: float | Tensor = 0.1,
    target_temperature: float = 0.04,
    normalize: bool = True,
    reduction: str = "mean",
    gather_distributed: bool = True,
    tile: Tile = "auto",
) -> Tensor:
    """Cross-entropy between the target's and the online network's relations.

    Args:
        online: ``[N, D]``, the rows that learn.
        target: ``[N, D]``, the target network's rows of the same samples. They get no gradient.
        queue: ``[K, D]``, the candidates. None: the target rows of the batch are.
        temperature: τ, a number above 0, or a scalar tensor, which may be learned.
        target_temperature: τ_m, a number above 0; the smaller, the sharper the target.
        normalize: Put the rows on the unit sphere first. A zero row stays zero and gets no gradient.
        reduction: "mean" or "sum" over the anchors of all processes, or "none" for a value per anchor.
        gather_distributed: With several processes, compare with the rows of all of them.
        tile: The side of the blocks it is computed in; "auto" is measured. It changes time and memory only.

    Returns:
        A scalar, or with ``reduction="none"`` the values ``[N]``.

    Raises:
        ValueError: For inputs or options that do not fit; it says which and what would.

    >>> ressl(torch.eye(3), torch.eye(3), temperature=1.0, target_temperature=1.0)  # two equal candidates: log 2
    tensor(0.6931)
    """
    options = Options(
        temperature, normalize=normalize, reduction=reduction, gather_distributed=gather_distributed, tile=tile
    )
    target_tau = number("target_temperature", target_temperature, above=0.0)
    relations = Relations.of(options, online, target, queue)
    core = relations.relate(target_tau, own_slot=False)  # (3)
    return relations.reduce(core, functools.partial(reference, target_temperature=target_tau))


class ReSSLLoss(RelationLoss):
    """ReSSL as a module; `ressl` is its function.

    Args:
        temperature: τ, a number above 0, or a scalar tensor, which may be learned.
        target_temperature: τ_m, a number above 0; the smaller, the sharper the target.
        normalize: Put the rows on the unit sphere first. A zero row stays zero and gets no gradient.
        reduction: "mean" or "sum" over the anchors of all processes, or "none" for a value per anchor.
        gather_distributed: With several processes, compare with the rows of all of them.
        tile: The side of the blocks it is computed in; "auto" is measured. It changes time and memory only.

    Call the module with ``(online, target, queue=None)``; see `ressl`.

    Raises:
        ValueError: For an option out of range.

    >>> online, target = torch.eye(3), torch.eye(3)
    >>> ReSSLLoss(temperature=1.0, target_temperature=1.0)(online, target)  # two equal candidates: log 2
    tensor(0.6931)
    """

    function = staticmethod(ressl)

    def __init__(
        self,
        temperature: float | Tensor = 0.1,
        target_temperature: float = 0.04,
        *,
        normalize: bool = True,
        reduction: str = "mean",
        gather_distributed: bool = True,
        tile: Tile = "auto",
    ) -> None:
        super().__init__(normalize=normalize, reduction=reduction, gather_distributed=gather_distributed, tile=tile)
        self.temperature = temperature
        self.target_temperature = number("target_temperature", target_temperature, above=0.0)

    def limits(self, batch: Batch) -> Limits:
        """Chance, collapsed value and bound, which is the mean entropy of the target; see `Loss.limits`."""
        others = sum(batch.candidates(self))
        chance = math.log(max(others, 1))
        batch.check_entropy(others)
        return Limits(chance, chance, float(batch.target_entropy)).scaled(batch.terms(self))


def reference(
    online: Tensor,
    target: Tensor,
    queue: Tensor | None = None,
    *,
    temperature: float | Tensor,
    target_temperature: float,
) -> Tensor:
    """(3) with all similarities at once, per anchor; rows are taken as they are."""
    target = target.detach()
    others = target if queue is None else queue.detach()
    logits, targets = online @ others.T / temperature, target @ others.T / target_temperature
    if queue is None:
        logits, targets = (m.fill_diagonal_(-torch.inf) for m in (logits, targets))
    s = targets.softmax(1).nan_to_num(0.0)  # (1); a row that relates to nothing is zero
    log_p = logits.log_softmax(1)  # (2)
    return -(s * log_p.masked_fill(s == 0, 0.0)).sum(1)  # (3)
