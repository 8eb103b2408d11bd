r"""Augmentations of feature vectors x [n, D].

    (1)  Gaussian noise:        x ← x + std·ε,  ε ~ N(0, 1) for each entry
    (2)  feature dropout:       each entry becomes 0 with probability ``rate``; the others stay (no rescaling)
    (3)  marginal corruption:   ⌊rate·D⌋ entries of each vector, chosen at random, are replaced by that feature's value
                                in a random row of the reference, another row for each entry

((3): SCARF, Bahri et al. 2022, Algorithm 1 with its rate of 0.6. Drawing an entry of the reference column is drawing
from the empirical marginal distribution of the feature, so corrupted values are ones the feature has.)

With probability 1 − p a vector stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from kontrast.augment._inputs import Size, number
from kontrast.augment.operation import Operation, Params, chosen


def _length(operation: str, size: Size) -> int:
    if len(size) != 1:
        raise ValueError(f"{operation} takes vectors [n, D], whose size is (D,); got size {tuple(size)}")
    return int(size[0])


@dataclass(frozen=True)
class GaussianNoise(Operation):
    """Gaussian noise (1) of standard deviation ``std``, in the features' units: standardised ones after a `Normalize`.

    >>> x = torch.zeros(1000, 8)
    >>> round(float(GaussianNoise(0.5)(x, torch.Generator().manual_seed(0)).std()), 2)
    0.5
    """

    std: float = 0.1
    p: float = 1.0

    def __post_init__(self) -> None:
        number("std", self.std, least=0.0)
        number("p", self.p, least=0.0, most=1.0)

    def _draw(self, n: int, size: Size, generator: torch.Generator | None) -> Params:
        noise = torch.randn(n, _length("GaussianNoise", size), generator=generator)
        return Params(n, {"on": chosen(n, self.p, generator), "noise": noise})

    def _apply(self, images: Tensor, params: Params) -> Tensor:
        scale = self.std * params["on"].float()[:, None]
        return images.add_((params["noise"] * scale).to(images.device))


@dataclass(frozen=True)
class FeatureDropout(Operation):
    """Feature dropout (2): each entry becomes 0 with probability ``rate``.

    >>> x = torch.ones(1000, 8)
    >>> round(float(FeatureDropout(0.2)(x, torch.Generator().manual_seed(0)).mean()), 2)
    0.8
    """

    rate: float = 0.2
    p: float = 1.0

    def __post_init__(self) -> None:
        number("rate", self.rate, least=0.0, most=1.0)
        number("p", self.p, least=0.0, most=1.0)

    def _draw(self, n: int, size: Size, generator: torch.Generator | None) -> Params:
        dropped = torch.rand(n, _length("FeatureDropout", size), generator=generator) < self.rate
        return Params(n, {"on": chosen(n, self.p, generator), "dropped": dropped})

    def _apply(self, images: Tensor, params: Params) -> Tensor:
        dropped = params["dropped"] & params["on"][:, None]
        return images.masked_fill_(dropped.to(images.device), 0.0)


@dataclass(frozen=True)
class MarginalCorruption(Operation):
    """(3) with values from ``reference [N, D]``, the training features say.

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
            seen = f"{r.dtype} of shape {list(r.shape)}" if isinstance(r, Tensor) else type(r).__name__
            raise ValueError(f"reference must be a matrix of floats [N, D] with the features' values, got {seen}")
        number("rate", self.rate, least=0.0, most=1.0)
        number("p", self.p, least=0.0, most=1.0)

    def _draw(self, n: int, size: Size, generator: torch.Generator | None) -> Params:
        dim = _length("MarginalCorruption", size)
        if dim != self.reference.shape[1]:
            raise ValueError(f"vectors of length {dim}, but the reference has shape {list(self.reference.shape)}")
        count = int(self.rate * dim + 1e-9)  # 0.7·10 is 6.999… in floating point
        rank = torch.rand(n, dim, generator=generator).argsort(1).argsort(1)
        row = torch.randint(len(self.reference), (n, dim), generator=generator)
        return Params(n, {"on": chosen(n, self.p, generator), "corrupted": rank < count, "row": row})

    def _apply(self, images: Tensor, params: Params) -> Tensor:
        values = self.reference.float().gather(0, params["row"].to(self.reference.device)).to(images.device)
        corrupted = (params["corrupted"] & params["on"][:, None]).to(images.device)
        return images.copy_(torch.where(corrupted, values, images))
