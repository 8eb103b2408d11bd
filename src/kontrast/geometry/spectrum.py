r"""The spectrum of embeddings: how many dimensions they use, and whether they have collapsed.

σ_1 ≥ … ≥ σ_D are the singular values of the N×D matrix of features, p_k = σ_k/Σσ:

    (1)  effective rank (RankMe) = exp(−Σ_k p_k log p_k)            1 … min(N, D)
    (2)  stable rank = Σσ_k²/σ_1²                                    1 … min(N, D)
    (3)  spread = 1 − ‖mean of the unit rows‖²                       0 (all equal) … 1
    (4)  complete collapse: spread < 1e−3;   dimensional collapse: more than a tenth of the centred features'
         directions are dead, a variance below 1e−4 of the mean over directions

((1): Garrido et al.; Roy & Vetterli. (4): the two kinds Jing et al. tell apart; the limits are ours.)

All are 0 for features that are 0 (centred: all equal).

Deviates: RankMe adds 1e−7 to each p_k; here p log p is 0 at p = 0. At D = 2,048 and rank 1 theirs is 1.003.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from kontrast.geometry._rows import as_rows, measure, parts, warn_if_few
from kontrast.geometry.estimate import Record, jackknife, jackknife_errors
from kontrast.sphere import sized


@dataclass(frozen=True, kw_only=True, eq=False)
class Spectrum(Record):
    """Singular values and the ranks computed from them.

    Attributes:
        singular_values: σ, ``[min(N, D)]``, in descending order.
        effective_rank: (1).
        stable_rank: (2).
        rank: How many singular values are above 1e−6 of the largest.
        explained_first: σ_1²/Σσ².

    >>> spectrum(torch.eye(8)).rank
    8
    """

    singular_values: Tensor
    effective_rank: float
    stable_rank: float
    rank: int
    explained_first: float


@dataclass(frozen=True)
class Collapse:
    """Whether features have collapsed, and the evidence. It is true if they have.

    Attributes:
        kind: "none", "dimensional" or "complete".
        spread: (3).
        dead: How many directions have no variance.
        dim: How many dimensions the features have.

    >>> bool(Collapse("dimensional", 0.9, dead=12, dim=16))
    True
    """

    kind: str
    spread: float
    dead: int
    dim: int

    def __bool__(self) -> bool:
        return self.kind != "none"


@measure
def spectrum(features: Any, *, center: bool = False, normalize: bool = True, with_error: bool = False) -> Spectrum:
    """The singular values of features and their ranks (1), (2).

    Args:
        features: Rows ``[N, D]``.
        center: Whether the mean is subtracted first.
        normalize: Whether rows are scaled to length one.
        with_error: Whether to fill ``errors`` by the jackknife.

    Returns:
        The spectrum.

    Raises:
        ValueError: ``features`` has no rows, or holds NaN or infinity.

    >>> result = spectrum(torch.eye(8).repeat(10, 1))
    >>> round(result.effective_rank, 4), result.rank
    (8.0, 8)
    """
    x, size = sized(as_rows("features", features, normalize=normalize, any_size=True))
    warn_if_few(len(x), x.shape[1], "rows for the rank of features of this many dimensions")
    result = _spectrum(x, center)
    if size != 1:
        result = replace(result, singular_values=result.singular_values * size)
    if not with_error:
        return result
    return replace(result, errors=_errors(x, center))


@measure
def collapse(features: Any, *, normalize: bool = True) -> Collapse:
    """Whether features have collapsed, by (3) and (4).

    Args:
        features: Rows ``[N, D]``.
        normalize: Whether rows are scaled to length one.

    Returns:
        The kind of collapse and its evidence.

    Raises:
        ValueError: ``features`` has no rows, or holds NaN or infinity.

    >>> x = torch.randn(500, 16, generator=torch.Generator().manual_seed(0))
    >>> collapse(x).kind, collapse(x[:, :4] @ torch.randn(4, 16)).kind, collapse(torch.ones(500, 16)).kind
    ('none', 'dimensional', 'complete')
    """
    x, _ = sized(as_rows("features", features, normalize=normalize, any_size=True))
    warn_if_few(len(x), x.shape[1], "rows for the rank of features of this many dimensions")
    moments = _moments(x)
    _, total, gram = moments
    square = float(gram.trace()) / len(x)
    spread = max(0.0, 1 - float((total / len(x)).square().sum()) / square) if square else 0.0
    about_mean = _from_moments(*moments, center=True) if _by_moments(x) else _spectrum(x, center=True)
    variances = about_mean.singular_values.square()
    possible = min(x.shape[1], len(x) - 1)
    dead = possible - int((variances[:possible] > 1e-4 * variances.sum() / max(possible, 1)).sum())
    kind = "complete" if spread < 1e-3 else "dimensional" if dead > 0.1 * possible else "none"
    return Collapse(kind, spread, dead, x.shape[1])


def _spectrum(x: Tensor, center: bool) -> Spectrum:
    if _by_moments(x):
        return _from_moments(*_moments(x), center)
    x = x.double()
    mean = x.mean(0) * center
    sigma: Tensor = torch.linalg.svdvals(x - mean)
    return _from_singular_values(sigma, noise=1e-13 * float(mean.norm()) * len(x) ** 0.5)


def _errors(x: Tensor, center: bool, groups: int = 20) -> dict[str, float]:
    """Errors by the jackknife; for many rows each group's moments are subtracted from the total, in one pass."""
    if len(x) <= 2.2 * x.shape[1]:
        return jackknife(lambda part: _spectrum(part, center), x, groups=groups)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0)).to(x.device)
    moments = [_moments(x[order[g::groups]]) for g in range(groups)]
    n, total, gram = sum(m[0] for m in moments), sum(m[1] for m in moments), sum(m[2] for m in moments)
    rest = [_from_moments(n - m[0], total - m[1], gram - m[2], center).scalars() for m in moments]
    return jackknife_errors(rest)


def _by_moments(x: Tensor) -> bool:
    """Whether there are so many rows that the D×D products are cheaper."""
    return len(x) > 2 * x.shape[1]


def _moments(x: Tensor) -> tuple[int, Tensor, Tensor]:
    """The number of rows, their sum ``[D]`` and the sum of their products ``[D, D]``, in float64."""
    total = torch.zeros(x.shape[1], dtype=torch.float64, device=x.device)
    gram = torch.zeros(x.shape[1], x.shape[1], dtype=torch.float64, device=x.device)
    for _, part in parts(x):
        total += part.sum(0)
        gram.addmm_(part.T, part)
    return len(x), total, gram


def _from_moments(n: int, total: Tensor, gram: Tensor, center: bool) -> Spectrum:
    """Spectrum from the D×D products, which resolve singular values down to 1e−8 of the largest."""
    mean = total / n * center
    squares: Tensor = torch.linalg.eigvalsh(gram - n * torch.outer(mean, mean))
    noise = 1e-7 * float(mean.norm()) * n**0.5
    return _from_singular_values(squares.clamp(min=0).sqrt().flip(0), noise=noise)


def _from_singular_values(sigma: Tensor, *, noise: float) -> Spectrum:
    """``noise``: rounding error that subtracting the mean leaves; singular values below it count as 0."""
    sigma = torch.where(sigma > noise, sigma, 0.0)
    if float(sigma.sum()) == 0:  # nothing there, or nothing about the mean
        return Spectrum(singular_values=sigma, effective_rank=0.0, stable_rank=0.0, rank=0, explained_first=0.0)
    p = sigma / sigma.sum()
    energy = sigma.square()
    return Spectrum(
        singular_values=sigma,
        effective_rank=float(torch.special.entr(p).sum().exp()),
        stable_rank=float(energy.sum() / energy[0]),
        rank=int((sigma > 1e-6 * sigma[0]).sum()),
        explained_first=float(energy[0] / energy.sum()),
    )
