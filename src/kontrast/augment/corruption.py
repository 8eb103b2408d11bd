"""Marginal corruption of feature vectors: some entries are replaced by the same feature's value in random rows.

    (1)  ⌊rate·D⌋ entries of each vector, chosen at random, are replaced by that feature's value in a random row of the
         reference, another row for each entry

(SCARF, Bahri et al. 2022, Algorithm 1 with its rate of 0.6. Drawing an entry of the reference column is drawing from
the empirical marginal distribution of the feature, so corrupted values are ones the feature has.) With probability 1 −
p a vector stays unchanged. It needs the reference rows, so a recipe cannot name it; `kontrast.sklearn` uses it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from kontrast.augment.operation import Operation, Params, Size, bernoulli, vector_length
from kontrast.checks import number


@dataclass(frozen=True)
class MarginalCorruption(Operation):
    """Replace random entries by values of the same feature in other rows (1).

    Args:
        reference: ``[N, D]`` floats to take values from, such as the training features.
        rate: the share of entries that are replaced.
        p: the probability that a vector is changed.

    Raises:
        ValueError: a value outside its range.

    >>> reference = torch.tensor([[1.0, 10.0, 100.0], [2.0, 20.0, 200.0]])
    >>> MarginalCorruption(reference, rate=0.7)(torch.zeros(2, 3), torch.Generator().manual_seed(1))
    tensor([[  0.,  20., 200.],
            [  1.,  10.,   0.]])
    """

    reference: Tensor = field(repr=False)
    rate: float = 0.6
    p: float = 1.0

    def __post_init__(self) -> None:
        r = self.reference
        if not isinstance(r, Tensor) or r.ndim != 2 or not r.numel() or not r.is_floating_point():
            kind = f"{r.dtype} of shape {list(r.shape)}" if isinstance(r, Tensor) else type(r).__name__
            raise ValueError(f"reference must be a matrix of floats [N, D] with the features' values, got {kind}")
        number("rate", self.rate, least=0.0, most=1.0)
        number("p", self.p, least=0.0, most=1.0)

    def _draw(self, n: int, size: Size, generator: torch.Generator | None) -> Params:
        dim = vector_length("MarginalCorruption", size)
        if dim != self.reference.shape[1]:
            raise ValueError(f"vectors of length {dim}, but the reference has shape {list(self.reference.shape)}")
        count = int(self.rate * dim + 1e-9)  # 0.7·10 is 6.999… in floating point
        rank = torch.rand(n, dim, generator=generator).argsort(1).argsort(1)
        row = torch.randint(len(self.reference), (n, dim), generator=generator)
        return Params(n, {"on": bernoulli(n, self.p, generator), "corrupted": rank < count, "row": row})

    def _apply(self, images: Tensor, params: Params) -> Tensor:
        values = self.reference.float().gather(0, params["row"].to(self.reference.device)).to(images.device)
        mask = (params["corrupted"] & params["on"][:, None]).to(images.device)
        return images.copy_(torch.where(mask, values, images))
