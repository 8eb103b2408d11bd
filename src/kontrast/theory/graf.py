r"""Graf et al., "Dissecting Supervised Contrastive Learning": cross-entropy.

K classes of equal size, points ‖z_n‖ ≤ ρ, weights w_1 … w_K, ‖W‖ the Frobenius norm. A regular simplex has

    (S1)  Σ_k ζ_k = 0        (S2)  ‖ζ_k‖ = ρ        (S3)  ‖ζ_k − ζ_l‖ the same for all k ≠ l

    (1)  Theorem:     L_CE(Z, W) ≥ log( 1 + (K−1) exp(−ρ (√K/(K−1)) ‖W‖) )
         with equality iff z_n = ζ_{y_n}, ζ a regular simplex of radius ρ, and w_k = (r/ρ) ζ_k for some r > 0
    (2)  its slope:   −ρ (√K/(K−1)) · (K−1)/(e^x + K − 1),   x = ρ (√K/(K−1)) ‖W‖: always below 0
    (3)  Corollary:   L_CE + λ‖W‖² is least iff moreover r = r_W, the root of 2λ r (e^{Kρr/(K−1)} + K − 1) − ρ = 0
    (4)  the minimum  log(1 + (K−1) e^{−Kρ r_W/(K−1)}) + λ K r_W²

Along the simplex ‖W‖ = √K r, and the derivative of L_CE + λ‖W‖² in r is the left side of (3) times K/(e^{Kρr/(K−1)} + K
− 1), so that (3) is where it vanishes. (2) and (4) are not printed in the slides; they follow.

(1), (3) and (4) as functions are those of `geometry.bounds`, (S1)–(S3) those of `kontrast.simplex`.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from kontrast import losses
from kontrast.geometry.bounds import cross_entropy as cross_entropy_bound
from kontrast.geometry.bounds import regularised_cross_entropy as regularised_minimum
from kontrast.geometry.bounds import regularised_weight_radius as weight_radius
from kontrast.simplex import vertices
from kontrast.sphere import unit
from kontrast.theory._about_simplex import NOISES, normal, seed, shaken, turned, worst, worst_violation
from kontrast.theory._check import check, required
from kontrast.theory._deviation import simplex_conditions
from kontrast.theory._objective import classifier
from kontrast.theory._threads import one_thread
from kontrast.theory.free_points import free_points

PROBLEMS = ((2, 3, 2, 1.0), (4, 5, 3, 0.5), (4, 5, 8, 2.0), (10, 3, 9, 1.0))  # classes, points of each, dimensions, ρ
RUNS = ((4, 10, 3, 1.0, 0.05), (4, 5, 6, 0.7, 0.005), (10, 3, 9, 1.0, 0.005))  # and λ
CURVES = ((4, 1.0, 0.05), (4, 1.0, 0.005), (10, 1.0, 1e-4), (3, 2.0, 0.01), (100, 0.5, 1e-3))  # classes, ρ, λ

# ------------------------------------------------------------------------------------------------- the formulas


def cross_entropy_slope(num_classes: int, radius: float, weight_norm: float) -> float:
    """(2): how fast the bound falls with ‖W‖.

    >>> round(cross_entropy_slope(4, radius=1.0, weight_norm=2.0), 4)  # −(2/3) · 3/(e^{4/3} + 3)
    -0.2944
    """
    k = num_classes
    factor = radius * math.sqrt(k) / (k - 1)
    return -factor * (k - 1) / (math.exp(factor * weight_norm) + k - 1)


def weight_radius_equation(r: float, num_classes: int, radius: float, penalty: float) -> float:
    """(3): below 0 for weights shorter than r_W, above 0 for longer ones.

    >>> abs(weight_radius_equation(2.6583, num_classes=4, radius=1.0, penalty=0.005)) < 1e-4
    True
    """
    k = num_classes
    return 2 * penalty * r * (math.exp(k / (k - 1) * radius * r) + k - 1) - radius


# --------------------------------------------------------------------------------------------------- the checks


def _loss(points: Tensor, labels: Tensor, weights: Tensor, penalty: float = 0.0) -> tuple[float, float]:
    """Cross-entropy as the library has it, and its derivative in ‖W‖."""
    k, d = weights.shape
    loss = classifier(k, d, penalty)
    with torch.no_grad():
        loss.weight.copy_(weights)
    value = loss(points, labels)
    (slope,) = torch.autograd.grad(value, loss.weight)
    return float(value.detach()), float((slope * weights).sum() / weights.norm())


def _at_simplex(k: int, radius: float, r: float, penalty: float = 0.0) -> tuple[float, float]:
    """The same at the simplex, one point a class, weights of length r."""
    zeta = vertices(k, dtype=torch.float64)
    return _loss(radius * zeta, torch.arange(k), r * zeta, penalty)


def _into_ball(points: Tensor, radius: float) -> Tensor:
    shrunk: Tensor = points * (radius / points.norm(dim=1, keepdim=True)).clamp(max=1.0)
    return shrunk


@check("Graf et al., Theorem (CE)", "L_CE(Z, W) ≥ log(1 + (K−1) e^{−ρ√K‖W‖/(K−1)}) for ‖z‖ ≤ ρ", tolerance=1e-12)
@one_thread()
def cross_entropy_is_above_its_bound(generator: torch.Generator) -> float:
    """Random points and weights, ever closer to the simplex, and all that descent passes through on its way down."""
    slacks: list[float] = []
    for k, n, d, rho in PROBLEMS:
        zeta, labels = turned(k, d, generator), torch.arange(k).repeat(n)
        for noise in NOISES:
            for length in (0.1, 1.0, 5.0):
                z = _into_ball(rho * (zeta[labels] + noise * normal(generator, k * n, d)), rho)
                w = length * (zeta + noise * normal(generator, k, d))
                slacks.append(_loss(z, labels, w)[0] - cross_entropy_bound(k, rho, float(w.norm())))
        run = free_points("ce", k, n, d, radius=rho, steps=200, seed=seed(generator))
        assert run.weight_path is not None
        for w, value in zip(run.weight_path, run.values.tolist(), strict=True):
            slacks.append(value - cross_entropy_bound(k, rho, float(w.norm())))
    return worst_violation(slacks)


@check(
    "Graf et al., Theorem (CE)",
    "L_CE = log(1 + (K−1) e^{−ρ√K‖W‖/(K−1)}) iff classes collapse to a simplex and W is one, aligned",
    tolerance=1e-12,
)
@one_thread()
def cross_entropy_bound_is_the_simplex(generator: torch.Generator) -> float:
    """The error is that at the simplex; off it, in each condition of the theorem, the bound must not be reached."""
    errors: list[float] = []
    for k in (4, 10, 100):
        for d, rho, r in ((k - 1, 1.0, 2.0), (k + 5, 0.5, 3.0), (k, 2.0, 0.5)):
            zeta, labels = turned(k, d, generator), torch.arange(k).repeat(2)
            z, w = rho * zeta[labels], r * zeta
            bound = cross_entropy_bound(k, rho, float(w.norm()))
            errors.append(abs(_loss(z, labels, w)[0] - bound))
            spread = rho * shaken(zeta[labels], 0.3, generator)
            uneven = w * (1 + 0.3 * torch.linspace(-1, 1, k, dtype=torch.float64))[:, None]
            bent = shaken(zeta, 0.3, generator)
            elsewhere = (
                (spread, w),  # classes not collapsed
                (0.9 * z, w),  # points inside the ball
                (z, uneven * (w.norm() / uneven.norm())),  # weights of different lengths
                (rho * bent[labels], r * bent),  # collapsed and aligned, but no simplex
                (z, w.roll(1, 0)),  # two simplices, not aligned
            )
            errors.append(required(min(_loss(x, labels, v)[0] - bound for x, v in elsewhere) > 1e-4))
    return worst(errors)


@check(
    "Graf et al., slides after Theorem (CE)",
    "the bound falls strictly with ‖W‖, by ρ√K/(K−1) · (K−1)/(e^x + K−1), x = ρ√K‖W‖/(K−1)",
    tolerance=1e-12,
)
@one_thread()
def cross_entropy_bound_falls_with_weights(generator: torch.Generator) -> float:
    """The slope against autograd through the loss at the simplex; relative to the largest, ρ√K/(K−1)."""
    errors: list[float] = []
    for k, _, _, rho in PROBLEMS:
        lengths = (8 * torch.rand(20, dtype=torch.float64, generator=generator)).sort().values / rho
        found = [_at_simplex(k, rho, r) for r in lengths.tolist()]
        formula = [cross_entropy_slope(k, rho, math.sqrt(k) * r) for r in lengths.tolist()]
        for (_, slope), expected in zip(found, formula, strict=True):
            errors.append(abs(slope - expected) * (k - 1) / (rho * math.sqrt(k)))
        values = torch.tensor([value for value, _ in found], dtype=torch.float64)
        errors.append(required(max(formula) < 0 and bool((values.diff() < 0).all())))
    return worst(errors)


@check(
    "Graf et al., Corollary (L2-regularised CE), note 3",
    "∂(L_CE + λ‖W‖²)/∂r at the simplex vanishes where 2λr (e^{Kρr/(K−1)} + K−1) = ρ",
    tolerance=1e-12,
)
@one_thread()
def penalised_slope_is_the_radius_equation(generator: torch.Generator) -> float:
    """The equation's left side, times K/(e^{Kρr/(K−1)} + K − 1), against autograd; relative to the sum of its parts."""
    errors: list[float] = []
    for k, rho, penalty in CURVES:
        for r in (4 / rho * torch.rand(10, dtype=torch.float64, generator=generator)).tolist():
            by_norm = _at_simplex(k, rho, r, penalty)[1]
            factor = k / (math.exp(k / (k - 1) * rho * r) + k - 1)
            expected = factor * weight_radius_equation(r, k, rho, penalty)
            errors.append(abs(math.sqrt(k) * by_norm - expected) / (2 * penalty * k * r + factor * rho))
    return worst(errors)


@check(
    "Graf et al., Corollary (L2-regularised CE)",
    "bound + λ‖W‖² has one minimum, at ‖W‖ = √K r_W",
    tolerance=1e-12,
)
@one_thread()
def penalty_fixes_the_weights(generator: torch.Generator) -> float:
    """r_W against bisection on the slope of the loss at the simplex, relative; the curve falls before, rises after."""
    errors: list[float] = []
    for k, rho, penalty in CURVES:
        low, high = 0.0, rho / (2 * penalty)
        while high - low > 1e-14 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if _at_simplex(k, rho, middle, penalty)[1] > 0 else (middle, high)
        r = weight_radius(k, rho, penalty)
        errors.append(abs(r / high - 1))
        at = (3 * torch.rand(30, dtype=torch.float64, generator=generator)).sort().values
        curve = torch.tensor([_at_simplex(k, rho, x * r, penalty)[0] for x in at.tolist()], dtype=torch.float64)
        steps, after = curve.diff(), at >= 1
        errors.append(required(bool((steps[~after[1:]] < 0).all() and (steps[after[:-1]] > 0).all())))
    return worst(errors)


@check(
    "Graf et al., Corollary (L2-regularised CE), Numerical Simulation",
    "points and weights minimising L_CE + λ‖W‖² form aligned simplices of radius ρ and r_W",
    tolerance=1e-9,
)
@one_thread()
def penalised_cross_entropy_finds_the_simplex(generator: torch.Generator) -> float:
    """Gradient descent from a random start; deviations from the simplex, from r_W and from the minimum's value."""
    errors: list[float] = []
    for k, n, d, rho, penalty in RUNS:
        run = free_points("ce-l2", k, n, d, radius=rho, weight_penalty=penalty, seed=seed(generator))
        assert run.weight_radius is not None
        assert run.weight_deviation is not None
        errors.append(abs(run.weight_radius / weight_radius(k, rho, penalty) - 1))
        errors.append(abs(run.loss - regularised_minimum(k, rho, penalty)))
        errors.extend((run.deviation.largest, run.weight_deviation.largest))
    return worst(errors)


@check(
    "Graf et al., S1–S3; CE-fix after Mettes et al.",
    "the fixed weights have mean 0, equal norms and equal distances; random unit weights do not",
    tolerance=1e-12,
)
@one_thread()
def fixed_weights_are_a_simplex(generator: torch.Generator) -> float:
    """S1–S3 in float64; and they are the weights of the loss, which holds them in its own precision."""
    errors: list[float] = []
    for k, d in ((2, 1), (4, 3), (10, 9), (10, 512), (100, 128)):
        chosen = seed(generator)
        weights = vertices(k, d, seed=chosen, dtype=torch.float64)
        distances = torch.pdist(weights)
        errors.extend((*simplex_conditions(weights), float((distances - distances.mean()).abs().max())))
        held = losses.SimplexCrossEntropyLoss(k, d, seed=chosen).weight.double()
        errors.append(required(float((held - weights).abs().max()) < 1e-6))
        if k > 2:
            errors.append(required(simplex_conditions(unit(normal(generator, k, d)))[2] > 0.1))
    return worst(errors)
