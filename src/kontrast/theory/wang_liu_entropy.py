r"""Wang & Liu, supplement section 2: the entropy of the relative penalty rises with the temperature.

s_l are an anchor's similarities to its negatives; numbers are the supplement's, sums run over the negatives:

    (1)  r_l = e^{s_l/τ} / Σ e^{s/τ}
    (2)  P_l = e^{s_l/τ}
    (3)  H(r) = −Σ r log r = −ΣP log P / ΣP + log ΣP
    (4)  ∂H/∂P_l = −log P_l / ΣP + ΣP log P / (ΣP)²
    (5)  ∂P_l/∂(1/τ) = τ P_l log P_l
    (6)  ∂H/∂(1/τ) = τ [(ΣP log P)² − ΣP·ΣP log²P] / (ΣP)²
    (7)  ΣP·ΣP log²P ≥ (ΣP log P)², with equality only where all P are equal; hence ∂H/∂(1/τ) ≤ 0

and, which is (6) with log P = s/τ written out but not in the paper,

    (8)  dH/dτ = Var_r(s)/τ³.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.special import entr

from kontrast.geometry.entropy import penalty_entropy
from kontrast.theory._check import check, required
from kontrast.theory._similarities import as_keys, largest, largest_error, spread

TEMPERATURES = (0.05, 0.07, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # those the paper trains with
STEP = 1e-3  # of finite differences, as a share of the temperature

# ------------------------------------------------------------------------------------------------- the formulas


def weights(similarities: Tensor, *, temperature: float | Tensor) -> Tensor:
    """(2): P_l, along the last dimension.

    >>> weights(torch.tensor([0.0, 0.5]), temperature=0.5)
    tensor([1.0000, 2.7183])
    """
    return (similarities / temperature).exp()


def entropy(p: Tensor) -> Tensor:
    """(3): H of P/ΣP.

    >>> entropy(torch.tensor([2.0, 2.0, 2.0, 2.0]))  # log 4
    tensor(1.3863)
    """
    return -(p * p.log()).sum(-1) / p.sum(-1) + p.sum(-1).log()


def entropy_by_weight(p: Tensor) -> Tensor:
    """(4): ∂H/∂P_l for every l.

    >>> entropy_by_weight(torch.tensor([1.0, math.e]))  # e/(1 + e)², −1/(1 + e)²
    tensor([ 0.1966, -0.0723])
    """
    total = p.sum(-1, keepdim=True)
    return -p.log() / total + (p * p.log()).sum(-1, keepdim=True) / total**2


def weight_by_inverse_temperature(p: Tensor, *, temperature: float) -> Tensor:
    """(5): ∂P_l/∂(1/τ).

    >>> weight_by_inverse_temperature(torch.tensor([1.0, math.e]), temperature=0.5)  # s P = 0.5 e
    tensor([0.0000, 1.3591])
    """
    return temperature * p * p.log()


def cauchy(p: Tensor) -> tuple[Tensor, Tensor]:
    """Both sides of (7): ΣP·ΣP log²P and (ΣP log P)².

    >>> cauchy(torch.tensor([1.0, math.e]))  # (1 + e)·e ≥ e²
    (tensor(10.1073), tensor(7.3891))
    """
    return p.sum(-1) * (p * p.log() ** 2).sum(-1), (p * p.log()).sum(-1) ** 2


def entropy_by_inverse_temperature(p: Tensor, *, temperature: float) -> Tensor:
    """(6): ∂H/∂(1/τ).

    >>> entropy_by_inverse_temperature(torch.tensor([1.0, math.e]), temperature=0.5)  # −(e/2)/(1 + e)²
    tensor(-0.0983)
    """
    larger, smaller = cauchy(p)
    return temperature * (smaller - larger) / p.sum(-1) ** 2


def entropy_by_temperature(similarities: Tensor, *, temperature: float) -> Tensor:
    """(8): dH/dτ.

    >>> entropy_by_temperature(torch.tensor([0.0, 0.5]), temperature=0.5)  # (6) times −1/τ²
    tensor(0.3932)
    """
    r = (similarities / temperature).softmax(-1)  # (1)
    mean = (r * similarities).sum(-1, keepdim=True)
    return (r * (similarities - mean) ** 2).sum(-1) / temperature**3


# --------------------------------------------------------------------------------------------------- the checks


def _random(generator: torch.Generator) -> Iterator[tuple[Tensor, float]]:
    """Similarities to n negatives, and a temperature."""
    for n in (2, 7, 40):
        for tau in TEMPERATURES:
            yield spread(generator, 30, n), tau


def _measured(s: Tensor, tau: float | list[float]) -> Tensor:
    """H as `geometry.penalty_entropy` finds it."""
    return penalty_entropy(*as_keys(torch.zeros(len(s), dtype=s.dtype), s), temperature=tau, normalize=False)


@check("Wang & Liu, supplement (3)", "−Σ r log r = −ΣP log P/ΣP + log ΣP", tolerance=1e-12)
def entropy_closed_form(generator: torch.Generator) -> float:
    """Against −Σ r log r, summed up as it stands, and against `geometry.penalty_entropy`."""
    error = 0.0
    for s, tau in _random(generator):
        r, found = (s / tau).softmax(1), entropy(weights(s, temperature=tau))
        error = max(error, largest_error(found, entr(r).sum(1)), largest_error(found, _measured(s, tau)))
    return error


@check("Wang & Liu, supplement (4)", "∂H/∂P_l = −log P_l/ΣP + ΣP log P/(ΣP)²", tolerance=1e-12)
def entropy_slope_by_weight(generator: torch.Generator) -> float:
    """Against autograd through the entropy of P/ΣP; as P_l ∂H/∂P_l, since P goes up to e²⁰ and (4) with 1/P."""
    error = 0.0
    for s, tau in _random(generator):
        p = weights(s, temperature=tau).requires_grad_()
        (slope,) = torch.autograd.grad(entr(p / p.sum(1, keepdim=True)).sum(), p)
        error = max(error, largest_error(p * entropy_by_weight(p), p * slope))
    return error


@check("Wang & Liu, supplement (5)", "∂P_l/∂(1/τ) = τ P_l log P_l", tolerance=1e-12)
def weight_slope_by_inverse_temperature(generator: torch.Generator) -> float:
    """Against autograd through e^{s·(1/τ)}."""
    error = 0.0
    for s, tau in _random(generator):
        inverse = torch.full_like(s, 1 / tau).requires_grad_()
        (slope,) = torch.autograd.grad((s * inverse).exp().sum(), inverse)
        error = max(
            error, largest_error(weight_by_inverse_temperature(weights(s, temperature=tau), temperature=tau), slope)
        )
    return error


@check("Wang & Liu, supplement (6)", "∂H/∂(1/τ) = τ[(ΣP log P)² − ΣP·ΣP log²P]/(ΣP)²", tolerance=1e-12)
def entropy_slope_by_inverse_temperature(generator: torch.Generator) -> float:
    """Against autograd from H to 1/τ, and against the chain rule over (4) and (5)."""
    error = 0.0
    for s, tau in _random(generator):
        inverse = torch.full((len(s), 1), 1 / tau, dtype=s.dtype).requires_grad_()
        (slope,) = torch.autograd.grad(entr((s * inverse).softmax(1)).sum(), inverse)
        p = weights(s, temperature=tau)
        found = entropy_by_inverse_temperature(p, temperature=tau)
        chain = (entropy_by_weight(p) * weight_by_inverse_temperature(p, temperature=tau)).sum(1)
        error = max(error, largest_error(found, slope[:, 0]), largest_error(found, chain))
    return error


@check("Wang & Liu, supplement (7)", "ΣP·ΣP log²P ≥ (ΣP log P)², equal only where all P are", tolerance=1e-12)
def cauchy_inequality(generator: torch.Generator) -> float:
    """Against Lagrange's identity, by which the difference is ½ Σ_jl P_j P_l (log P_j − log P_l)², relative to the
    larger side. Wherever rounding leaves a difference to be seen, the inequality is strict and ∂H/∂(1/τ) < 0."""
    error = 0.0
    for s, tau in _random(generator):
        p, log_p = weights(s, temperature=tau), s / tau
        larger, smaller = cauchy(p)
        pairs = p[:, :, None] * p[:, None] * (log_p[:, :, None] - log_p[:, None]) ** 2
        difference = pairs.sum((1, 2)) / 2
        error = max(error, largest((larger - smaller - difference) / larger))
        seen = difference > 1e-12 * larger
        slope = entropy_by_inverse_temperature(p, temperature=tau)
        error += required(bool((larger > smaller)[seen].all() and (slope < 0)[seen].all() and seen.sum() > 15))
        larger, smaller = cauchy(weights(s[:, :1].expand_as(s), temperature=tau))
        error = max(error, largest((larger - smaller) / larger))
    return error


@check(
    "Wang & Liu, supplement section 2", "H(r) rises strictly with τ; where all s are equal H = log n", tolerance=1e-12
)
def entropy_rises_with_temperature(generator: torch.Generator) -> float:
    """Over the paper's temperatures and hotter ones."""
    error, grid = 0.0, (*TEMPERATURES, 2.0, 5.0, 10.0)
    for n in (3, 10, 100):
        s = spread(generator, 100, n)
        found = torch.stack([entropy(weights(s, temperature=tau)) for tau in grid], 1)
        error += required(bool((found.diff(dim=1) > 0).all()))
        error = max(error, largest_error(found, _measured(s, list(grid))))
        equal = s[:, :1].expand_as(s)
        for tau in grid:
            flat = entropy(weights(equal, temperature=tau))
            error = max(error, largest_error(flat, torch.full_like(flat, math.log(n))))
    return error


@check("Wang & Liu, supplement (6)", "dH/dτ = Var_r(s)/τ³", tolerance=1e-12)
def entropy_slope_is_variance(generator: torch.Generator) -> float:
    """Against autograd from H to τ."""
    error = 0.0
    for s, tau in _random(generator):
        t = torch.full((len(s), 1), tau, dtype=s.dtype).requires_grad_()
        (slope,) = torch.autograd.grad(entr((s / t).softmax(1)).sum(), t)
        error = max(error, largest_error(entropy_by_temperature(s, temperature=tau), slope[:, 0]))
    return error


@check("Wang & Liu, supplement (6)", "∂H/∂τ of geometry.penalty_entropy = Var_r(s)/τ³", tolerance=1e-9)
def penalty_entropy_slope_is_variance(generator: torch.Generator) -> float:
    """Central differences of fourth order: their own error is about 1e-10 here."""
    error = 0.0
    for s, tau in _random(generator):
        h = STEP * tau
        back2, back, on, on2 = _measured(s, [tau - 2 * h, tau - h, tau + h, tau + 2 * h]).unbind(1)
        slope = (8 * (on - back) - (on2 - back2)) / (12 * h)
        error = max(error, largest_error(entropy_by_temperature(s, temperature=tau), slope))
    return error
