r"""NT-Xent as lightly (1.6) computes it, without its memory bank.

out0 and out1 are put on the unit sphere and make 2N vectors z; j(i) is the other view of i, s_ik = ⟨z_i, z_k⟩:

    (1)  L = −(1/2N) Σ_i log( e^{s_{i,j(i)}/τ} / Σ_{k≠i} e^{s_ik/τ} )

which is kontrast's own `NTXentLoss` with ``gather_distributed=False``.

Deviates: with ``gather_distributed=True`` every rank returns the mean over all ranks' anchors, there the mean over
its own; the gradients after DDP's averaging are the same, and uneven batches are right. Half precision is computed
in float32 and the result rounded to half; under autocast it stays float32, as there. A zero row gets a zero gradient,
there one multiplied by 1e12. A temperature below zero is an error, there it turns the similarities round. There is no
memory bank: `kontrast.losses.InfoNCELoss` takes the negatives of a queue as an argument.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from kontrast import losses
from kontrast.checks import rows, same_shape

SMALLEST = 1e-8  # what lightly takes for a division by zero


class NTXentLoss(losses.NTXentLoss):
    """NT-Xent over both views as anchors, in lightly's signature.

    Args:
        temperature: τ.
        memory_bank_size: 0, or (0, dim): there is no memory bank.
        gather_distributed: Whether the candidates are the rows of all processes.

    Raises:
        ValueError: A temperature of 0, a memory bank, or no torch.distributed to gather with.

    >>> NTXentLoss(temperature=1.0)(torch.eye(2), torch.eye(2))  # log(e + 2) − 1
    tensor(0.5514)
    """

    def __init__(
        self,
        temperature: float = 0.5,
        memory_bank_size: int | Sequence[int] = 0,
        gather_distributed: bool = False,
    ) -> None:
        if abs(temperature) < SMALLEST:
            raise ValueError(f"Illegal temperature: abs({temperature}) < 1e-8")
        _check_no_bank(memory_bank_size)
        if gather_distributed and not torch.distributed.is_available():
            raise ValueError(
                "gather_distributed is True but torch.distributed is not available: pass gather_distributed=False, "
                "or install a torch with distributed support"
            )
        super().__init__(temperature, gather_distributed=gather_distributed)

    def forward(self, out0: Tensor, out1: Tensor) -> Tensor:
        """``out0 [N, D]``, ``out1 [N, D]`` → a scalar in the precision of ``out0``, or float32 under autocast."""
        same_shape("out0", rows("out0", out0), "out1", rows("out1", out1))
        value = super().forward(out0, out1)  # (1)
        return value if torch.is_autocast_enabled(out0.device.type) else value.to(out0.dtype)


def _check_no_bank(size: int | Sequence[int]) -> None:
    entries = [size] if isinstance(size, int) else list(size)
    if entries != [0] and not (len(entries) == 2 and entries[0] == 0 and entries[1] >= 0):
        raise ValueError(
            f"memory_bank_size is {size!r}; only 0 or (0, dim), no memory bank, is supported here. Keep the bank "
            f"yourself and pass its rows: kontrast.losses.InfoNCELoss(temperature)(out0, out1, negatives=bank)"
        )
