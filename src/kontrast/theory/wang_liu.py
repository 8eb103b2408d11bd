r"""Wang & Liu, "Understanding the Behaviour of Contrastive Loss": gradients and limits.

With the hard and the simple loss, and, from the supplement, the entropy of the relative penalty.

s_ii is anchor i's similarity to its positive, s_ij, j ≠ i, those to its N − 1 negatives; L is InfoNCE, and
P_ik = e^{s_ik/τ} / Σ_k e^{s_ik/τ} its softmax. Numbers are the paper's:

    (3)  L_simple = −s_ii + λ Σ_{j≠i} s_ij
    (4)  ∂L/∂s_ii = −(1/τ) Σ_{k≠i} P_ik,   ∂L/∂s_ij = P_ij/τ,   so |∂L/∂s_ii| = Σ_j |∂L/∂s_ij|
    (5)  r_i(s_ij) = |∂L/∂s_ij| / |∂L/∂s_ii| = e^{s_ij/τ} / Σ_{k≠i} e^{s_ik/τ}
    (6)  τ → 0⁺:  L → max(s_max − s_ii, 0)/τ
    (7)  τ → ∞:   L → log N − ((N−1)/(Nτ)) s_ii + (1/(Nτ)) Σ_{k≠i} s_ik
    (8)  the hard loss's r_i: (5) over the negatives with s_ij ≥ s_α, and 0 below
    (9)  the hard loss: InfoNCE over those negatives

(6), times τ, and (7) are `losses.cold_limit` and `losses.hot_limit`. How fast the limits are reached, with m the number
of similarities (positive included) that share the largest value and δ the distance from it to the next smaller one:

    (a)  τ log m ≤ τL − τ·(6) ≤ τ log m + τ ((N−m)/m) e^{−δ/τ}
    (b)  L − (7) = Var(s)/(2τ²) + O(τ⁻³),   the variance over all N similarities

Deviates: by (a), L itself tends to (6) only where the largest similarity is unique; otherwise it stays log m above.
Times τ the limit always holds, and that is what `cold_limit` is. The text gives λ no value: (7) is (3) up to scale
and a constant for λ = 1/(N−1), and for no other.

The supplement: the entropy of r rises with the temperature. s_l are an anchor's similarities to its negatives; numbers
are the supplement's, with an S before them here; sums run over the negatives:

    (S1)  r_l = e^{s_l/τ} / Σ e^{s/τ}
    (S2)  P_l = e^{s_l/τ}
    (S3)  H(r) = −Σ r log r = −ΣP log P / ΣP + log ΣP
    (S4)  ∂H/∂P_l = −log P_l / ΣP + ΣP log P / (ΣP)²
    (S5)  ∂P_l/∂(1/τ) = τ P_l log P_l
    (S6)  ∂H/∂(1/τ) = τ [(ΣP log P)² − ΣP·ΣP log²P] / (ΣP)²
    (S7)  ΣP·ΣP log²P ≥ (ΣP log P)², with equality only where all P are equal; hence ∂H/∂(1/τ) ≤ 0

and, which is (S6) with log P = s/τ written out but not in the paper,

    (S8)  dH/dτ = Var_r(s)/τ³.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.special import entr

from kontrast.geometry.entropy import penalty_entropy
from kontrast.losses import HardContrastiveLoss, InfoNCELoss, SimpleContrastiveLoss, cold_limit, hot_limit
from kontrast.theory._inputs import as_keys, key_slopes, largest, largest_error, random_similarities, ratios
from kontrast.theory.check import check, required

TEMPERATURES = (0.05, 0.07, 0.1, 0.2, 0.3, 0.5, 1.0)
PAPER_TEMPERATURES = (0.05, 0.07, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # those the paper trains with
COLD = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 1e-3)
HOT = (8.0, 16.0, 32.0, 64.0, 128.0, 1e6)
STEP = 1e-3  # of finite differences, as a share of the temperature

# ------------------------------------------------------------------------------------------- formulas, main text


def positive_slope(positive: Tensor, negatives: Tensor, *, temperature: float) -> Tensor:
    """(4): ∂L/∂s_ii, from the similarities ``[...]`` and ``[..., N − 1]``.

    >>> positive_slope(torch.tensor(0.5), torch.tensor([0.0, 0.0]), temperature=0.5)  # −(1/τ)·2/(2 + e)
    tensor(-0.8478)
    """
    return -negative_slope(positive, negatives, temperature=temperature).sum(-1)


def negative_slope(positive: Tensor, negatives: Tensor, *, temperature: float) -> Tensor:
    """(4): ∂L/∂s_ij.

    >>> negative_slope(torch.tensor(0.5), torch.tensor([0.0, 0.0]), temperature=0.5)
    tensor([0.4239, 0.4239])
    """
    positive_term, terms = (positive / temperature).exp()[..., None], (negatives / temperature).exp()
    return terms / (positive_term + terms.sum(-1, keepdim=True)) / temperature


def relative_penalty(negatives: Tensor, *, temperature: float) -> Tensor:
    """(5): how the negatives share out the gradient.

    >>> relative_penalty(torch.tensor([0.0, 0.5]), temperature=0.5)  # 1/(1 + e), e/(1 + e)
    tensor([0.2689, 0.7311])
    """
    e = (negatives / temperature).exp()
    return e / e.sum(-1, keepdim=True)


def hard_relative_penalty(negatives: Tensor, *, temperature: float, hard_negatives: int) -> Tensor:
    """(8): (5) over the nearest negatives, renormalised, and 0 for the others.

    >>> hard_relative_penalty(torch.tensor([0.0, 0.5, -1.0]), temperature=0.5, hard_negatives=2)
    tensor([0.2689, 0.7311, 0.0000])
    """
    threshold = negatives.topk(hard_negatives, -1).values[..., -1:]
    nearest = (negatives / temperature).exp() * (negatives >= threshold)
    return nearest / nearest.sum(-1, keepdim=True)


def cold_excess(positive: Tensor, negatives: Tensor, *, temperature: float) -> tuple[Tensor, Tensor]:
    """(a): the least and the most by which τL exceeds τ·(6).

    >>> cold_excess(torch.tensor(1.0), torch.tensor([0.5, 0.0]), temperature=0.5)  # m = 1, δ = 0.5: 0 … 0.5·2/e
    (tensor(0.), tensor(0.3679))
    """
    s = torch.cat([positive[..., None], negatives], -1)
    top = s == s.amax(-1, keepdim=True)
    m = top.sum(-1).to(s.dtype)
    below = s.amax(-1) - s.masked_fill(top, -torch.inf).amax(-1)
    least = temperature * m.log()
    return least, least + temperature * (s.shape[-1] - m) / m * (-below / temperature).exp()


def hot_excess(positive: Tensor, negatives: Tensor, *, temperature: float) -> Tensor:
    """(b): by how much L exceeds (7), to leading order.

    >>> hot_excess(torch.tensor(1.0), torch.tensor([-1.0]), temperature=10.0)  # the variance is 1
    tensor(0.0050)
    """
    s = torch.cat([positive[..., None], negatives], -1)
    return s.var(-1, correction=0) / (2 * temperature**2)


def simple_loss(positive: Tensor, negatives: Tensor) -> Tensor:
    """(3) with λ = 1/(N−1).

    >>> simple_loss(torch.tensor(0.9), torch.tensor([0.0, 0.5]))
    tensor(-0.6500)
    """
    return -positive + negatives.sum(-1) / negatives.shape[-1]


# ------------------------------------------------------------------------------------------ formulas, supplement


def weights(similarities: Tensor, *, temperature: float | Tensor) -> Tensor:
    """(S2): P_l, along the last dimension.

    >>> weights(torch.tensor([0.0, 0.5]), temperature=0.5)
    tensor([1.0000, 2.7183])
    """
    return (similarities / temperature).exp()


def entropy(p: Tensor) -> Tensor:
    """(S3): H of P/ΣP.

    >>> entropy(torch.tensor([2.0, 2.0, 2.0, 2.0]))  # log 4
    tensor(1.3863)
    """
    return -(p * p.log()).sum(-1) / p.sum(-1) + p.sum(-1).log()


def entropy_by_weight(p: Tensor) -> Tensor:
    """(S4): ∂H/∂P_l for every l.

    >>> entropy_by_weight(torch.tensor([1.0, math.e]))  # e/(1 + e)², −1/(1 + e)²
    tensor([ 0.1966, -0.0723])
    """
    total = p.sum(-1, keepdim=True)
    return -p.log() / total + (p * p.log()).sum(-1, keepdim=True) / total**2


def weight_by_inverse_temperature(p: Tensor, *, temperature: float) -> Tensor:
    """(S5): ∂P_l/∂(1/τ).

    >>> weight_by_inverse_temperature(torch.tensor([1.0, math.e]), temperature=0.5)  # s P = 0.5 e
    tensor([0.0000, 1.3591])
    """
    return temperature * p * p.log()


def cauchy(p: Tensor) -> tuple[Tensor, Tensor]:
    """Both sides of (S7): ΣP·ΣP log²P and (ΣP log P)².

    >>> cauchy(torch.tensor([1.0, math.e]))  # (1 + e)·e ≥ e²
    (tensor(10.1073), tensor(7.3891))
    """
    return p.sum(-1) * (p * p.log() ** 2).sum(-1), (p * p.log()).sum(-1) ** 2


def entropy_by_inverse_temperature(p: Tensor, *, temperature: float) -> Tensor:
    """(S6): ∂H/∂(1/τ).

    >>> entropy_by_inverse_temperature(torch.tensor([1.0, math.e]), temperature=0.5)  # −(e/2)/(1 + e)²
    tensor(-0.0983)
    """
    larger, smaller = cauchy(p)
    return temperature * (smaller - larger) / p.sum(-1) ** 2


def entropy_by_temperature(similarities: Tensor, *, temperature: float) -> Tensor:
    """(S8): dH/dτ.

    >>> entropy_by_temperature(torch.tensor([0.0, 0.5]), temperature=0.5)  # (S6) times −1/τ²
    tensor(0.3932)
    """
    r = (similarities / temperature).softmax(-1)  # (S1)
    mean = (r * similarities).sum(-1, keepdim=True)
    return (r * (similarities - mean) ** 2).sum(-1) / temperature**3


# -------------------------------------------------------------------------------------------- checks, supplement


def _random_negatives(generator: torch.Generator) -> Iterator[tuple[Tensor, float]]:
    """Similarities to n negatives, and a temperature."""
    for n in (2, 7, 40):
        for tau in PAPER_TEMPERATURES:
            yield random_similarities(generator, 30, n), tau


def _library_entropy(s: Tensor, tau: float | list[float]) -> Tensor:
    """H as `geometry.penalty_entropy` finds it."""
    return penalty_entropy(*as_keys(torch.zeros(len(s), dtype=s.dtype), s), temperature=tau, normalize=False)


@check("Wang & Liu, supplement (3)", "−Σ r log r = −ΣP log P/ΣP + log ΣP")
def entropy_closed_form(generator: torch.Generator) -> Iterator[float]:
    """Against −Σ r log r, summed up as it stands, and against `geometry.penalty_entropy`."""
    for s, tau in _random_negatives(generator):
        r, result = (s / tau).softmax(1), entropy(weights(s, temperature=tau))
        yield largest_error(result, entr(r).sum(1))
        yield largest_error(result, _library_entropy(s, tau))


@check("Wang & Liu, supplement (4)", "∂H/∂P_l = −log P_l/ΣP + ΣP log P/(ΣP)²")
def entropy_slope_by_weight(generator: torch.Generator) -> Iterator[float]:
    """Against autograd through the entropy of P/ΣP; as P_l ∂H/∂P_l, since P goes up to e²⁰ and (S4) with 1/P."""
    for s, tau in _random_negatives(generator):
        p = weights(s, temperature=tau).requires_grad_()
        (slope,) = torch.autograd.grad(entr(p / p.sum(1, keepdim=True)).sum(), p)
        yield largest_error(p * entropy_by_weight(p), p * slope)


@check("Wang & Liu, supplement (5)", "∂P_l/∂(1/τ) = τ P_l log P_l")
def weight_slope_by_inverse_temperature(generator: torch.Generator) -> Iterator[float]:
    """Against autograd through e^{s·(1/τ)}."""
    for s, tau in _random_negatives(generator):
        inverse = torch.full_like(s, 1 / tau).requires_grad_()
        (slope,) = torch.autograd.grad((s * inverse).exp().sum(), inverse)
        yield largest_error(weight_by_inverse_temperature(weights(s, temperature=tau), temperature=tau), slope)


@check("Wang & Liu, supplement (6)", "∂H/∂(1/τ) = τ[(ΣP log P)² − ΣP·ΣP log²P]/(ΣP)²")
def entropy_slope_by_inverse_temperature(generator: torch.Generator) -> Iterator[float]:
    """Against autograd from H to 1/τ, and against the chain rule over (S4) and (S5)."""
    for s, tau in _random_negatives(generator):
        inverse = torch.full((len(s), 1), 1 / tau, dtype=s.dtype).requires_grad_()
        (slope,) = torch.autograd.grad(entr((s * inverse).softmax(1)).sum(), inverse)
        p = weights(s, temperature=tau)
        result = entropy_by_inverse_temperature(p, temperature=tau)
        chain = (entropy_by_weight(p) * weight_by_inverse_temperature(p, temperature=tau)).sum(1)
        yield largest_error(result, slope[:, 0])
        yield largest_error(result, chain)


@check("Wang & Liu, supplement (7)", "ΣP·ΣP log²P ≥ (ΣP log P)², equal only where all P are")
def cauchy_inequality(generator: torch.Generator) -> Iterator[float]:
    """Against Lagrange's identity, by which the difference is ½ Σ_jl P_j P_l (log P_j − log P_l)², relative to the
    larger side. Wherever the difference is larger than rounding, the inequality is strict and ∂H/∂(1/τ) < 0."""
    for s, tau in _random_negatives(generator):
        p, log_p = weights(s, temperature=tau), s / tau
        larger, smaller = cauchy(p)
        pairs = p[:, :, None] * p[:, None] * (log_p[:, :, None] - log_p[:, None]) ** 2
        difference = pairs.sum((1, 2)) / 2
        yield largest((larger - smaller - difference) / larger)
        visible = difference > 1e-12 * larger
        slope = entropy_by_inverse_temperature(p, temperature=tau)
        yield required(bool((larger > smaller)[visible].all() and (slope < 0)[visible].all() and visible.sum() > 15))
        larger, smaller = cauchy(weights(s[:, :1].expand_as(s), temperature=tau))
        yield largest((larger - smaller) / larger)


@check("Wang & Liu, supplement section 2", "H(r) rises strictly with τ; where all s are equal H = log n")
def entropy_rises_with_temperature(generator: torch.Generator) -> Iterator[float]:
    """Over the paper's temperatures and hotter ones."""
    grid = (*PAPER_TEMPERATURES, 2.0, 5.0, 10.0)
    for n in (3, 10, 100):
        s = random_similarities(generator, 100, n)
        result = torch.stack([entropy(weights(s, temperature=tau)) for tau in grid], 1)
        yield required(bool((result.diff(dim=1) > 0).all()))
        yield largest_error(result, _library_entropy(s, list(grid)))
        equal = s[:, :1].expand_as(s)
        for tau in grid:
            flat = entropy(weights(equal, temperature=tau))
            yield largest_error(flat, torch.full_like(flat, math.log(n)))


@check("Wang & Liu, supplement (6)", "dH/dτ = Var_r(s)/τ³")
def entropy_slope_is_variance(generator: torch.Generator) -> Iterator[float]:
    """Against autograd from H to τ."""
    for s, tau in _random_negatives(generator):
        t = torch.full((len(s), 1), tau, dtype=s.dtype).requires_grad_()
        (slope,) = torch.autograd.grad(entr((s / t).softmax(1)).sum(), t)
        yield largest_error(entropy_by_temperature(s, temperature=tau), slope[:, 0])


@check("Wang & Liu, supplement (6)", "∂H/∂τ of geometry.penalty_entropy = Var_r(s)/τ³", tolerance=1e-9)
def penalty_entropy_slope_is_variance(generator: torch.Generator) -> Iterator[float]:
    """Central differences of fourth order: their own error is about 1e-10 here."""
    for s, tau in _random_negatives(generator):
        h = STEP * tau
        back2, back, on, on2 = _library_entropy(s, [tau - 2 * h, tau - h, tau + h, tau + 2 * h]).unbind(1)
        slope = (8 * (on - back) - (on2 - back2)) / (12 * h)
        yield largest_error(entropy_by_temperature(s, temperature=tau), slope)


# --------------------------------------------------------------------------------------------- checks, main text


def _random(generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor, float]]:
    """Similarities to the positive ``[A]`` and to the negatives ``[A, N − 1]``, and a temperature."""
    for n in (1, 7, 40):
        for tau in TEMPERATURES:
            yield random_similarities(generator, 30), random_similarities(generator, 30, n), tau


def _info_nce(tau: float) -> InfoNCELoss:
    return InfoNCELoss(tau, normalize=False, reduction="none")


@check("Wang & Liu (4)", "∂L/∂s_ii = −(1/τ) Σ P_ik and ∂L/∂s_ij = P_ij/τ")
def infonce_gradient(generator: torch.Generator) -> Iterator[float]:
    """Against the backward of InfoNCELoss."""
    for positive, negatives, tau in _random(generator):
        by_positive, by_negative = key_slopes(_info_nce(tau), positive, negatives)
        yield largest_error(positive_slope(positive, negatives, temperature=tau), by_positive)
        yield largest_error(negative_slope(positive, negatives, temperature=tau), by_negative)


@check("Wang & Liu (4)", "|∂L/∂s_ii| = Σ_j |∂L/∂s_ij|")
def gradient_balance(generator: torch.Generator) -> Iterator[float]:
    """The backward of InfoNCELoss with itself, and with the formula."""
    for positive, negatives, tau in _random(generator):
        by_positive, by_negative = key_slopes(_info_nce(tau), positive, negatives)
        total = by_negative.abs().sum(1)
        formula = positive_slope(positive, negatives, temperature=tau).abs()
        yield largest_error(by_positive.abs(), total)
        yield largest_error(formula, total)


@check("Wang & Liu (5)", "|∂L/∂s_ij|/|∂L/∂s_ii| = e^{s_ij/τ}/Σ_{k≠i} e^{s_ik/τ}, a distribution")
def relative_penalty_is_boltzmann(generator: torch.Generator) -> Iterator[float]:
    """The ratio of what InfoNCELoss's backward yields; the positive does not enter."""
    for positive, negatives, tau in _random(generator):
        by_positive, by_negative = key_slopes(_info_nce(tau), positive, negatives)
        r = relative_penalty(negatives, temperature=tau)
        yield largest_error(r, by_negative.abs() / by_positive.abs()[:, None])
        yield largest_error(r.sum(1), torch.ones_like(positive))


@check("Wang & Liu (6)", "τ → 0⁺: τL → max(s_max − s_ii, 0), within τ log N")
def infonce_cold_limit(generator: torch.Generator) -> Iterator[float]:
    """The distance from the limit at the lowest temperature (with the largest similarity ahead by 0.05 or more), and at
    every temperature how far it is outside (a). Ties, where it falls with τ alone, are counted in (a) too."""
    for n in (1, 7, 40):
        positive, negatives = random_similarities(generator, 2000), random_similarities(generator, 2000, n)
        top = torch.cat([positive[:, None], negatives], 1).topk(2, 1).values
        clear = top[:, 0] - top[:, 1] > 0.05
        positive, negatives = positive[clear], negatives[clear]
        yield required(bool((positive > negatives.amax(1)).any() and (positive < negatives.amax(1)).any()))
        distances = []
        for tau in COLD:
            distances.append(excess := _above_cold(positive, negatives, tau))
            yield _outside(excess, *cold_excess(positive, negatives, temperature=tau))
            ties = torch.where(negatives < 0, negatives, negatives.amax(1, keepdim=True))
            excess = _above_cold(positive, ties, tau)
            yield _outside(excess, *cold_excess(positive, ties, temperature=tau))
        yield required(all(ratio > 1 for ratio in ratios([largest(d) for d in distances[:-1]])))
        yield largest(distances[-1])


def _above_cold(positive: Tensor, negatives: Tensor, tau: float) -> Tensor:
    keys = as_keys(positive, negatives)
    value: Tensor = _info_nce(tau)(*keys)
    return tau * value - cold_limit(*keys)


def _outside(result: Tensor, least: Tensor, most: Tensor) -> float:
    return largest(torch.maximum(least - result, result - most).clamp(min=0))


@check("Wang & Liu (7)", "τ → ∞: L → log N − (N−1)/(Nτ) s_ii + 1/(Nτ) Σ s_ik, as 1/τ²")
def infonce_hot_limit(generator: torch.Generator) -> Iterator[float]:
    """The distance from the limit at the highest temperature; on the way it falls by four with each doubling, and is
    the variance of (b) to within 1/τ of it."""
    for n in (1, 7, 40):
        positive, negatives = random_similarities(generator, 200), random_similarities(generator, 200, n)
        keys = as_keys(positive, negatives)
        distances = []
        for tau in HOT:
            distance = _info_nce(tau)(*keys) - hot_limit(*keys, temperature=tau)
            distances.append(largest(distance))
            if tau < HOT[-1]:
                leading = hot_excess(positive, negatives, temperature=tau)
                yield required(bool(((distance - leading).abs() <= leading / tau + 1e-14).all()))
        yield required(all(3.5 < ratio < 4.5 for ratio in ratios(distances[:-1])))
        yield distances[-1]


@check("Wang & Liu (3), (7)", "(7) = log N + (N−1)/(Nτ) L_simple, with λ = 1/(N−1)")
def simple_loss_is_hot_limit(generator: torch.Generator) -> Iterator[float]:
    """(7) and SimpleContrastiveLoss against the formula."""
    for positive, negatives, tau in _random(generator):
        keys, n = as_keys(positive, negatives), 1 + negatives.shape[1]
        simple = simple_loss(positive, negatives)
        yield largest_error(SimpleContrastiveLoss(normalize=False, reduction="none")(*keys), simple)
        affine = math.log(n) + (n - 1) / (n * tau) * simple
        yield largest_error(affine, hot_limit(*keys, temperature=tau))


@check("Wang & Liu (3), (7)", "τ → ∞: (Nτ/(N−1)) ∂L/∂s → ∂L_simple/∂s, as 1/τ")
def infonce_gradient_becomes_simple(generator: torch.Generator) -> Iterator[float]:
    """The largest difference of InfoNCELoss's backward from the slopes of (3), −1 and 1/(N−1), at τ = 10¹³."""
    for n in (2, 8, 41):
        positive, negatives = (
            random_similarities(generator, 50).requires_grad_(),
            random_similarities(generator, 50, n - 1).requires_grad_(),
        )
        simple = torch.autograd.grad(simple_loss(positive, negatives).sum(), (positive, negatives))
        distances = []
        for tau in (1e2, 1e3, 1e4, 1e13):
            slopes = key_slopes(_info_nce(tau), positive.detach(), negatives.detach())
            scale = n * tau / (n - 1)
            distances.append(max(largest_error(scale * a, b) for a, b in zip(slopes, simple, strict=True)))
        yield required(all(9 < ratio < 11 for ratio in ratios(distances[:-1])))
        yield distances[-1]


@check("Wang & Liu (8), (9)", "the hard loss's |∂L/∂s_ij|/|∂L/∂s_ii| is r_i over the kept negatives")
def hard_relative_penalty_is_renormalised(generator: torch.Generator) -> Iterator[float]:
    """Against the backward of HardContrastiveLoss; it sums to 1, and what is not kept gets nothing."""
    for positive, negatives, tau in _random(generator):
        for k in {1, (negatives.shape[1] + 1) // 2, negatives.shape[1]}:
            loss = HardContrastiveLoss(tau, k, normalize=False, reduction="none")
            by_positive, by_negative = key_slopes(loss, positive, negatives)
            r = hard_relative_penalty(negatives, temperature=tau, hard_negatives=k)
            yield largest_error(r, by_negative.abs() / by_positive.abs()[:, None])
            yield largest_error(r.sum(1), torch.ones_like(positive))
            yield required(bool(((by_negative > 0).sum(1) == k).all()))
