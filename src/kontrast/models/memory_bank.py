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
from kontrast.checks import number, size
from kontrast.sphere import unit_rows


class MemoryBank(nn.Module):
    """A memory bank ``rows [num_samples, dim]``, saved in state_dict.

    Args:
        num_samples: How many training samples there are.
        dim: The length of a feature.
        momentum: m of (1), from 0 to 1.
        gather_distributed: Whether every rank updates with the features of all.
        generator: It draws (2); one with seed 0 if left out, the same on every rank.

    Raises:
        ValueError: A number is outside its range.

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
        self.momentum = number("momentum", momentum, least=0.0, most=1.0)
        self.gather_distributed = gather_distributed
        generator = generator or torch.Generator().manual_seed(0)
        num_samples = size("num_samples", num_samples)
        dim = size("dim", dim)
        a = 1 / math.sqrt(dim / 3)
        rows = torch.rand(num_samples, dim, generator=generator)
        self.register_buffer("rows", rows.mul_(2 * a).sub_(a))  # (2)

    def __len__(self) -> int:
        return len(self.rows)

    def keys(self, indices: Tensor) -> Tensor:
        """The slots of samples: ``indices [N]`` → a copy ``[N, dim]``; an index outside the bank is a ValueError."""
        return self.rows[self._check_indices(indices)]

    @torch.no_grad()
    def update(self, indices: Tensor, features: Tensor) -> None:
        """Move the slots towards these features (1). Every rank must call it.

        Args:
            indices: ``[N]``, the samples.
            features: ``[N, dim]``; only their directions count.

        Raises:
            ValueError: A shape is wrong, or an index is outside the bank.
        """
        indices = self._check_indices(indices)
        if features.shape != (len(indices), self.rows.shape[1]):
            raise ValueError(
                f"features has shape {list(features.shape)}: must be [{len(indices)}, {self.rows.shape[1]}], a row for "
                "each index"
            )
        features = unit_rows(features.detach().to(self.rows.dtype))
        if self.gather_distributed:
            counts = distributed.row_counts(features)
            features, indices = distributed.gather(features, counts), distributed.gather(indices, counts)
        slots, place, times = torch.unique(indices, return_inverse=True, return_counts=True)
        mean = features.new_zeros(len(slots), features.shape[1]).index_add_(0, place, features) / times[:, None]
        m = self.momentum
        self.rows[slots] = unit_rows(m * self.rows[slots] + (1 - m) * mean)  # (1)

    def _check_indices(self, indices: Tensor) -> Tensor:
        if indices.ndim != 1 or indices.is_floating_point() or indices.dtype == torch.bool:
            raise ValueError(f"indices has shape {list(indices.shape)} and {indices.dtype}: must be whole numbers [N]")
        if len(indices):
            least, most = (int(end) for end in indices.aminmax())
            if least < 0 or most >= len(self):
                raise ValueError(f"indices={least} … {most}: must be within the slots 0 … {len(self) - 1} of the bank")
        return indices.to(self.rows.device, torch.int64)

    def extra_repr(self) -> str:
        return f"num_samples={len(self)}, dim={self.rows.shape[1]}, momentum={self.momentum}"
