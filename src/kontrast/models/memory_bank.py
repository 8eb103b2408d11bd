r"""A memory bank: one slot per training sample, moved towards the sample's feature each time it is seen.

    (1)  v_i ← (m v_i + (1 − m) f_i) / ‖m v_i + (1 − m) f_i‖           f_i the unit feature of sample i
    (2)  v ~ U(−a, a) at first, a = 1/√(dim/3), so that E‖v‖² = 1

(Wu et al. 2018; Wang & Liu use dim = 128 and m = 0.5, and update after the optimiser's step.) The loss sees the bank as
negatives of which one is the anchor itself: ``loss(query, bank.keys(indices), bank.rows, own_index=indices)``.

Deviates: where an index comes twice in a batch (or on two ranks) the mean of its features enters (1), so that neither
order nor ranks matter; the published code leaves it to chance which one remains. With several processes every rank
updates with the features of all, so the banks stay identical.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from kontrast import distributed
from kontrast.models._options import fraction, positive
from kontrast.models._rows import unit_rows


class MemoryBank(nn.Module):
    """``rows [num_samples, dim]``, saved in state_dict; ``generator`` draws them at first (its own, seeded 0, if None).

    >>> bank = MemoryBank(4, dim=2)
    >>> bank.rows[0] = torch.tensor([0.0, 1.0])
    >>> bank.update(torch.tensor([0]), torch.tensor([[5.0, 0.0]]))
    >>> bank.keys(torch.tensor([0]))
    tensor([[0.7071, 0.7071]])
    """

    rows: Tensor

    def __init__(
        self,
        num_samples: int,
        dim: int = 128,
        momentum: float = 0.5,
        *,
        gather_distributed: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        fraction("momentum", momentum)
        self.momentum, self.gather_distributed = momentum, gather_distributed
        generator = generator or torch.Generator().manual_seed(0)
        num_samples, dim = positive("num_samples", num_samples), positive("dim", dim)
        a = 1 / math.sqrt(dim / 3)
        rows = torch.rand(num_samples, dim, generator=generator)
        self.register_buffer("rows", rows.mul_(2 * a).sub_(a))  # (2)

    def __len__(self) -> int:
        return len(self.rows)

    def keys(self, indices: Tensor) -> Tensor:
        """The slots of the samples ``indices [N]`` → ``[N, dim]``, a copy."""
        return self.rows[self._checked(indices)]

    @torch.no_grad()
    def update(self, indices: Tensor, features: Tensor) -> None:
        """(1) for ``indices [N]`` and ``features [N, dim]`` (of any length); every rank must call it."""
        indices = self._checked(indices)
        if features.shape != (len(indices), self.rows.shape[1]):
            raise ValueError(
                f"features of shape {list(features.shape)}: "
                f"{len(indices)} indices into this bank need [{len(indices)}, {self.rows.shape[1]}]"
            )
        features = unit_rows(features.detach().to(self.rows.dtype))
        if self.gather_distributed:
            counts = distributed.row_counts(features)
            features, indices = distributed.gather(features, counts), distributed.gather(indices, counts)
        slots, place, times = torch.unique(indices, return_inverse=True, return_counts=True)
        mean = features.new_zeros(len(slots), features.shape[1]).index_add_(0, place, features) / times[:, None]
        m = self.momentum
        self.rows[slots] = unit_rows(m * self.rows[slots] + (1 - m) * mean)  # (1)

    def _checked(self, indices: Tensor) -> Tensor:
        if indices.ndim != 1 or indices.is_floating_point() or indices.dtype == torch.bool:
            raise ValueError(
                f"indices are {indices.dtype} of shape {list(indices.shape)}; whole numbers [N] are expected"
            )
        if len(indices):
            least, most = (int(end) for end in indices.aminmax())
            if least < 0 or most >= len(self):
                raise ValueError(f"indices run over {least} … {most}, but this bank has slots 0 … {len(self) - 1}")
        return indices.to(self.rows.device, torch.int64)

    def extra_repr(self) -> str:
        """Its size and rule."""
        return f"num_samples={len(self)}, dim={self.rows.shape[1]}, momentum={self.momentum}"
