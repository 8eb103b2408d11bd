r"""Graf et al., "Dissecting Supervised Contrastive Learning": cross-entropy, its bound, and the proof of the bound.

K classes of equal size, N points ‖z_i‖ ≤ ρ, weights w_1 … w_K, ‖W‖ the Frobenius norm. A regular simplex has

    (S1)  Σ_k ζ_k = 0        (S2)  ‖ζ_k‖ = ρ        (S3)  ‖ζ_k − ζ_l‖ the same for all k ≠ l

    (1)  Theorem:     L_CE(Z, W) ≥ log( 1 + (K−1) exp(−ρ (√K/(K−1)) ‖W‖) )
         with equality iff z_n = ζ_{y_n}, ζ a regular simplex of radius ρ, and w_k = (r/ρ) ζ_k for some r > 0
    (2)  its slope:   −ρ (√K/(K−1)) · (K−1)/(e^x + K − 1),   x = ρ (√K/(K−1)) ‖W‖: always below 0
    (3)  Corollary:   L_CE + λ‖W‖² is least iff moreover r = r_W, the root of 2λ r (e^{Kρr/(K−1)} + K − 1) − ρ = 0
    (4)  the minimum  log(1 + (K−1) e^{−Kρ r_W/(K−1)}) + λ K r_W²

Along the simplex ‖W‖ = √K r, and the derivative of L_CE + λ‖W‖² in r is the left side of (3) times K/(e^{Kρr/(K−1)} + K
− 1), so that (3) is where it vanishes. (2) and (4) are not printed in the slides; they follow.

(1), (3) and (4) as functions are those of `geometry.bounds`, (S1)–(S3) those of `kontrast.simplex`.

The proof of (1) is a chain of inequalities. The slides name its parts (Jensen, Cauchy–Schwarz; "necessary and
sufficient equality conditions ⟺ simplex conditions") and print no step; the steps here are derived. Let w̄ be the mean
of the weights, v_k = w_k − w̄, and φ(t) = log(1 + (K−1) e^t), which rises and is strictly convex:

    (C0)  L_CE = (1/N) Σ_i log(1 + Σ_{c≠y_i} e^{⟨z_i, w_c − w_{y_i}⟩})
    (C1)       ≥ (1/N) Σ_i φ(m_i),   m_i = 1/(K−1) Σ_{c≠y_i} ⟨z_i, w_c − w_{y_i}⟩      Jensen over the other classes
          equal iff each point has one and the same ⟨z_i, w_c⟩ for all c ≠ y_i
    (C2)  m_i  = −K/(K−1) ⟨z_i, v_{y_i}⟩                                              an identity: centred weights
    (C3)       ≥ φ((1/N) Σ_i m_i)                                                     Jensen over the points
          equal iff all m_i are equal
    (C4)       ≥ φ(−K/(K−1) · ρ · (1/K) Σ_k ‖v_k‖)                                    Cauchy–Schwarz, ‖z_i‖ ≤ ρ
          equal iff z_i = ρ v_{y_i}/‖v_{y_i}‖ wherever v_{y_i} ≠ 0: the classes collapse, aligned to the weights
    (C5)       ≥ φ(−K/(K−1) · ρ · √((1/K) Σ_k ‖v_k‖²))                                Cauchy–Schwarz over the classes
          equal iff all v_k have the same length
    (C6)       ≥ φ(−ρ √K/(K−1) · ‖W‖)                                                 Σ_k ‖v_k‖² = ‖W‖² − K‖w̄‖²
          equal iff w̄ = 0

(C6) is the bound of the theorem. All equal: w̄ = 0 is (S1) and (C5) is (S2) of the weights; by (C4) z_i is w_{y_i}
times ρ/r, so (C1) says that ⟨w_k, w_l⟩ is the same for all l ≠ k, which with (S1) is −r²/(K−1) for every k: (S3). (C3)
is then an equality by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from kontrast import losses
from kontrast.geometry.bounds import cross_entropy as cross_entropy_bound
from kontrast.geometry.bounds import regularised_cross_entropy as regularised_minimum
from kontrast.geometry.bounds import regularised_weight_radius as weight_radius
from kontrast.simplex import vertices
from kontrast.sphere import unit
from kontrast.theory._inputs import NOISES, add_noise, normal, random_simplex, seed, worst, worst_violation
from kontrast.theory.check import check, required
from kontrast.theory.free_points import classifier, free_points, simplex_conditions

PROBLEMS = ((2, 3, 2, 1.0), (4, 5, 3, 0.5), (4, 5, 8, 2.0), (10, 3, 9, 1.0))  # classes, points of each, dimensions, ρ
RUNS = ((4, 10, 3, 1.0, 0.05), (4, 5, 6, 0.7, 0.005), (10, 3, 9, 1.0, 0.005))  # and λ
CURVES = ((4, 1.0, 0.05), (4, 1.0, 0.005), (10, 1.0, 1e-4), (3, 2.0, 0.01), (100, 0.5, 1e-3))  # classes, ρ, λ
SIZES = ((2, 3, 2), (3, 4, 2), (4, 3, 6), (7, 2, 9), (10, 2, 10))  # classes, points of each, dimensions
WIDE = ((3, 4, 6), (4, 3, 8), (7, 2, 10))  # enough dimensions for inputs that satisfy one condition alone
RADII = (0.5, 2.0)
CLEAR = 1e-6  # a strict inequality is strict by at least this

Inputs = tuple[Tensor, Tensor, Tensor, float]  # points [N, D], labels [N], weights [K, D], ρ
Step = Callable[[Tensor, Tensor, Tensor, float], float]

# --------------------------------------------------------------------------------------------- formulas of the theorem


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


# ----------------------------------------------------------------------------------------------- formulas of the proof


def loss(z: Tensor, labels: Tensor, w: Tensor, rho: float) -> float:
    """(C0), as the library has it."""
    return _loss(z, labels, w)[0]


def one_negative(t: Tensor, num_classes: int) -> Tensor:
    """φ(t) = log(1 + (K−1) e^t).

    >>> one_negative(torch.tensor(0.0), 4)  # log 4
    tensor(1.3863)
    """
    return torch.nn.functional.softplus(t + math.log(num_classes - 1), threshold=math.inf)


def mean_margins(z: Tensor, labels: Tensor, w: Tensor) -> Tensor:
    """m_i of (C1), ``[N]``."""
    k = len(w)
    logits = z @ w.T
    own_logit = logits.gather(1, labels[:, None])
    return (logits - own_logit).sum(1) / (k - 1)  # the own class adds 0


def centred_margins(z: Tensor, labels: Tensor, w: Tensor) -> Tensor:
    """(C2), ``[N]``."""
    k = len(w)
    return -k / (k - 1) * (z * centre(w)[labels]).sum(1)


def centre(w: Tensor) -> Tensor:
    """v_1 … v_K."""
    return w - w.mean(0)


def over_classes(z: Tensor, labels: Tensor, w: Tensor, rho: float) -> float:
    """(C1)."""
    return float(one_negative(mean_margins(z, labels, w), len(w)).mean())


def over_points(z: Tensor, labels: Tensor, w: Tensor, rho: float) -> float:
    """(C3)."""
    return float(one_negative(mean_margins(z, labels, w).mean(), len(w)))


def with_aligned_points(z: Tensor, labels: Tensor, w: Tensor, rho: float) -> float:
    """(C4)."""
    k = len(w)
    return float(one_negative(-k / (k - 1) * rho * centre(w).norm(dim=1).mean(), k))


def with_equal_lengths(z: Tensor, labels: Tensor, w: Tensor, rho: float) -> float:
    """(C5)."""
    k = len(w)
    return float(one_negative(-k / (k - 1) * rho * centre(w).square().sum(1).mean().sqrt(), k))


def with_centred_weights(z: Tensor, labels: Tensor, w: Tensor, rho: float) -> float:
    """(C6)."""
    return cross_entropy_bound(len(w), rho, float(w.norm()))


def steps() -> tuple[Step, ...]:
    """(C0), (C1), (C3), (C4), (C5), (C6)."""
    return loss, over_classes, over_points, with_aligned_points, with_equal_lengths, with_centred_weights


def gap(step: int, inputs: Inputs) -> float:
    """By how much inequality number ``step`` is strict: 0 is (C0) ≥ (C1), 4 is (C5) ≥ (C6)."""
    above, below = steps()[step : step + 2]
    return above(*inputs) - below(*inputs)


def gaps(inputs: Inputs) -> list[float]:
    """By how much each of the five inequalities is strict."""
    return [gap(step, inputs) for step in range(5)]


# -------------------------------------------------------------------- inputs that satisfy one equality condition alone


def in_ball(z: Tensor, rho: float) -> Tensor:
    """All points by one factor, so that the longest has length ρ."""
    return torch.mul(z, rho / z.norm(dim=1).max())


def equal_to_other_classes(k: int, n: int, d: int, rho: float, generator: torch.Generator) -> Inputs:
    """(C1): ⟨z_i, w_c⟩ = a_i for c ≠ y_i, solved for z_i; needs independent weights, d ≥ K."""
    labels, w = torch.arange(k).repeat(n), normal(generator, k, d)
    logits = normal(generator, k * n, 1).expand(-1, k).clone()
    logits[torch.arange(k * n), labels] += normal(generator, k * n)
    return in_ball(logits @ torch.linalg.pinv(w).T, rho), labels, w, rho


def equal_margins(k: int, n: int, d: int, rho: float, generator: torch.Generator) -> Inputs:
    """(C3): random points, moved along v_y until ⟨z_i, v_{y_i}⟩ is 1 for all."""
    labels, w = torch.arange(k).repeat(n), normal(generator, k, d)
    z, v = normal(generator, k * n, d), centre(w)[labels]
    z = z + v * ((1 - (z * v).sum(1)) / v.square().sum(1))[:, None]
    return in_ball(z, rho), labels, w, rho


def aligned_points(k: int, n: int, d: int, rho: float, generator: torch.Generator) -> Inputs:
    """(C4): z_i = ρ v_{y_i}/‖v_{y_i}‖ with random weights."""
    labels, w = torch.arange(k).repeat(n), normal(generator, k, d)
    v = centre(w)
    return (rho * v / v.norm(dim=1, keepdim=True))[labels], labels, w, rho


def equal_lengths(k: int, n: int, d: int, rho: float, generator: torch.Generator) -> Inputs:
    """(C5): opposite pairs of unit vectors, an equilateral triangle if K is odd, all shifted by one vector."""
    labels, triangle = torch.arange(k).repeat(n), 3 if k % 2 else 0
    half = add_noise(torch.zeros((k - triangle) // 2, d, dtype=torch.float64), 1.0, generator)
    w = torch.cat([half, -half, random_simplex(3, d, generator)[:triangle]]) + normal(generator, 1, d)
    return in_ball(normal(generator, k * n, d), rho), labels, w, rho


def centred_weights(k: int, n: int, d: int, rho: float, generator: torch.Generator) -> Inputs:
    """(C6): random weights with mean 0."""
    labels, w = torch.arange(k).repeat(n), normal(generator, k, d)
    return in_ball(normal(generator, k * n, d), rho), labels, centre(w), rho


def random_inputs(generator: torch.Generator) -> Iterator[Inputs]:
    """Points and weights from far away to nearly at the aligned simplices, points within the ball, short and long."""
    for k, n, d in SIZES:
        for rho in RADII:
            zeta, labels = random_simplex(k, d, generator), torch.arange(k).repeat(n)
            for noise in NOISES:
                for length in (0.3, 3.0):
                    z = zeta[labels] + noise * normal(generator, k * n, d)
                    yield in_ball(z, rho), labels, length * (zeta + noise * normal(generator, k, d)), rho


def measure(
    step: int, only: Callable[[int, int, int, float, torch.Generator], Inputs], generator: torch.Generator
) -> float:
    """The error of inequality number ``step`` (as in `gap`).

    It is never violated on random inputs; it is an equality, and all others are strict, on inputs that satisfy its
    condition alone; and it is strict again as soon as these are moved.
    """
    errors = [worst_violation([gap(step, inputs) for inputs in random_inputs(generator)])]
    for k, n, d in WIDE:
        for rho in RADII:
            inputs = z, labels, w, _ = only(k, n, d, rho, generator)
            result = gaps(inputs)
            errors.append(result[step])
            errors.append(required(min(gap for i, gap in enumerate(result) if i != step) > CLEAR))
            shifted = in_ball(z + 0.3 * rho * normal(generator, *z.shape), rho)
            inputs = shifted, labels, w + 0.3 * normal(generator, k, d), rho
            errors.append(required(gap(step, inputs) > CLEAR))
    return worst(errors)


# ----------------------------------------------------------------------------------------------- checks of the theorem


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
    return torch.mul(points, (radius / points.norm(dim=1, keepdim=True)).clamp(max=1.0))


@check("Graf et al., Theorem (CE)", "L_CE(Z, W) ≥ log(1 + (K−1) e^{−ρ√K‖W‖/(K−1)}) for ‖z‖ ≤ ρ")
def cross_entropy_is_above_its_bound(generator: torch.Generator) -> Iterator[float]:
    """Random points and weights, ever closer to the simplex, and all that descent passes through on its way down."""
    slacks: list[float] = []
    for k, n, d, rho in PROBLEMS:
        zeta, labels = random_simplex(k, d, generator), torch.arange(k).repeat(n)
        for noise in NOISES:
            for length in (0.1, 1.0, 5.0):
                z = _into_ball(rho * (zeta[labels] + noise * normal(generator, k * n, d)), rho)
                w = length * (zeta + noise * normal(generator, k, d))
                slacks.append(_loss(z, labels, w)[0] - cross_entropy_bound(k, rho, float(w.norm())))
        run = free_points("ce", k, n, d, radius=rho, steps=200, seed=seed(generator))
        assert run.weight_path is not None
        for w, value in zip(run.weight_path, run.values.tolist(), strict=True):
            slacks.append(value - cross_entropy_bound(k, rho, float(w.norm())))
    yield worst_violation(slacks)


@check(
    "Graf et al., Theorem (CE)",
    "L_CE = log(1 + (K−1) e^{−ρ√K‖W‖/(K−1)}) iff classes collapse to a simplex and W is one, aligned",
)
def cross_entropy_bound_is_the_simplex(generator: torch.Generator) -> Iterator[float]:
    """The error is that at the simplex; off it, in each condition of the theorem, the bound must not be reached."""
    for k in (4, 10, 100):
        for d, rho, r in ((k - 1, 1.0, 2.0), (k + 5, 0.5, 3.0), (k, 2.0, 0.5)):
            zeta, labels = random_simplex(k, d, generator), torch.arange(k).repeat(2)
            z, w = rho * zeta[labels], r * zeta
            bound = cross_entropy_bound(k, rho, float(w.norm()))
            yield abs(_loss(z, labels, w)[0] - bound)
            apart = rho * add_noise(zeta[labels], 0.3, generator)
            uneven = w * (1 + 0.3 * torch.linspace(-1, 1, k, dtype=torch.float64))[:, None]
            skew = add_noise(zeta, 0.3, generator)
            others = (
                (apart, w),  # classes not collapsed
                (0.9 * z, w),  # points inside the ball
                (z, uneven * (w.norm() / uneven.norm())),  # weights of different lengths
                (rho * skew[labels], r * skew),  # collapsed and aligned, but no simplex
                (z, w.roll(1, 0)),  # two simplices, not aligned
            )
            yield required(min(_loss(x, labels, v)[0] - bound for x, v in others) > 1e-4)


@check(
    "Graf et al., slides after Theorem (CE)",
    "the bound falls strictly with ‖W‖, by ρ√K/(K−1) · (K−1)/(e^x + K−1), x = ρ√K‖W‖/(K−1)",
)
def cross_entropy_bound_falls_with_weights(generator: torch.Generator) -> Iterator[float]:
    """The slope against autograd through the loss at the simplex; relative to the largest, ρ√K/(K−1)."""
    for k, _, _, rho in PROBLEMS:
        lengths = (8 * torch.rand(20, dtype=torch.float64, generator=generator)).sort().values / rho
        result = [_at_simplex(k, rho, r) for r in lengths.tolist()]
        formula = [cross_entropy_slope(k, rho, math.sqrt(k) * r) for r in lengths.tolist()]
        for (_, slope), by_formula in zip(result, formula, strict=True):
            yield abs(slope - by_formula) * (k - 1) / (rho * math.sqrt(k))
        values = torch.tensor([value for value, _ in result], dtype=torch.float64)
        yield required(max(formula) < 0 and bool((values.diff() < 0).all()))


@check(
    "Graf et al., Corollary (L2-regularised CE), note 3",
    "∂(L_CE + λ‖W‖²)/∂r at the simplex vanishes where 2λr (e^{Kρr/(K−1)} + K−1) = ρ",
)
def penalised_slope_is_the_radius_equation(generator: torch.Generator) -> Iterator[float]:
    """The equation's left side, times K/(e^{Kρr/(K−1)} + K − 1), against autograd; relative to the sum of its parts."""
    for k, rho, penalty in CURVES:
        for r in (4 / rho * torch.rand(10, dtype=torch.float64, generator=generator)).tolist():
            by_norm = _at_simplex(k, rho, r, penalty)[1]
            factor = k / (math.exp(k / (k - 1) * rho * r) + k - 1)
            by_equation = factor * weight_radius_equation(r, k, rho, penalty)
            yield abs(math.sqrt(k) * by_norm - by_equation) / (2 * penalty * k * r + factor * rho)


@check("Graf et al., Corollary (L2-regularised CE)", "bound + λ‖W‖² has one minimum, at ‖W‖ = √K r_W")
def penalty_fixes_the_weights(generator: torch.Generator) -> Iterator[float]:
    """r_W against bisection on the slope of the loss at the simplex, relative; the curve falls before, rises after."""
    for k, rho, penalty in CURVES:
        low, high = 0.0, rho / (2 * penalty)
        while high - low > 1e-14 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if _at_simplex(k, rho, middle, penalty)[1] > 0 else (middle, high)
        r = weight_radius(k, rho, penalty)
        yield abs(r / high - 1)
        at = (3 * torch.rand(30, dtype=torch.float64, generator=generator)).sort().values
        curve = torch.tensor([_at_simplex(k, rho, x * r, penalty)[0] for x in at.tolist()], dtype=torch.float64)
        steps, after = curve.diff(), at >= 1
        yield required(bool((steps[~after[1:]] < 0).all() and (steps[after[:-1]] > 0).all()))


@check(
    "Graf et al., Corollary (L2-regularised CE), Numerical Simulation",
    "points and weights minimising L_CE + λ‖W‖² form aligned simplices of radius ρ and r_W",
    tolerance=1e-9,
)
def penalised_cross_entropy_finds_the_simplex(generator: torch.Generator) -> Iterator[float]:
    """Gradient descent from a random start; deviations from the simplex, from r_W and from the minimum's value."""
    for k, n, d, rho, penalty in RUNS:
        run = free_points("ce-l2", k, n, d, radius=rho, weight_penalty=penalty, seed=seed(generator))
        assert run.weight_radius is not None
        assert run.weight_deviation is not None
        yield abs(run.weight_radius / weight_radius(k, rho, penalty) - 1)
        yield abs(run.loss - regularised_minimum(k, rho, penalty))
        yield run.deviation.largest
        yield run.weight_deviation.largest


@check(
    "Graf et al., S1–S3; CE-fix after Mettes et al.",
    "the fixed weights have mean 0, equal norms and equal distances; random unit weights do not",
)
def fixed_weights_are_a_simplex(generator: torch.Generator) -> Iterator[float]:
    """S1–S3 in float64; and they are the weights of the loss, which holds them in its own precision."""
    for k, d in ((2, 1), (4, 3), (10, 9), (10, 512), (100, 128)):
        position = seed(generator)
        weights = vertices(k, d, seed=position, dtype=torch.float64)
        distances = torch.pdist(weights)
        yield from simplex_conditions(weights)
        yield float((distances - distances.mean()).abs().max())
        of_loss = losses.SimplexCrossEntropyLoss(k, d, seed=position).weight.double()
        yield required(float((of_loss - weights).abs().max()) < 1e-6)
        if k > 2:
            yield required(simplex_conditions(unit(normal(generator, k, d)))[2] > 0.1)


# ------------------------------------------------------------------------------------------------- checks of the proof


@check(
    "Graf et al., proof of Theorem (CE), Jensen",
    "L_CE ≥ mean_i φ(m_i), m_i = mean_{c≠y} ⟨z_i, w_c − w_y⟩; equal iff ⟨z_i, w_c⟩ is one number for all c ≠ y",
    conditions="φ(t) = log(1 + (K−1)e^t)",
)
def cross_entropy_jensen_over_classes(generator: torch.Generator) -> Iterator[float]:
    """(C0) ≥ (C1)."""
    yield measure(0, equal_to_other_classes, generator)


@check("Graf et al., proof of Theorem (CE)", "mean_{c≠y} ⟨z, w_c − w_y⟩ = −K/(K−1) ⟨z, w_y − w̄⟩")
def margins_are_of_centred_weights(generator: torch.Generator) -> Iterator[float]:
    """(C2), relative to the largest |z|·|w|."""
    for z, labels, w, _ in random_inputs(generator):
        scale = float(z.norm(dim=1).max() * w.norm(dim=1).max())
        yield float((mean_margins(z, labels, w) - centred_margins(z, labels, w)).abs().max()) / scale


@check(
    "Graf et al., proof of Theorem (CE), Jensen",
    "mean_i φ(m_i) ≥ φ(mean_i m_i), equal iff all m_i are equal",
    conditions="φ(t) = log(1 + (K−1)e^t)",
)
def cross_entropy_jensen_over_points(generator: torch.Generator) -> Iterator[float]:
    """(C1) ≥ (C3)."""
    yield measure(1, equal_margins, generator)


@check(
    "Graf et al., proof of Theorem (CE), Cauchy–Schwarz",
    "mean_i ⟨z_i, w_y − w̄⟩ ≤ ρ mean_k ‖w_k − w̄‖, equal iff z_i = ρ (w_y − w̄)/‖w_y − w̄‖: collapse, alignment",
    conditions="‖z‖ ≤ ρ, balanced labels",
)
def cross_entropy_cauchy_schwarz_of_points(generator: torch.Generator) -> Iterator[float]:
    """(C3) ≥ (C4); where a centred weight is 0 the points of its class are free."""
    yield measure(2, aligned_points, generator)
    for k, n, d in WIDE:
        z, labels, w, rho = aligned_points(k, n, d, 1.0, generator)
        w[0] = w[1:].mean(0)  # v_0 = 0
        z = rho * torch.nn.functional.normalize(centre(w), dim=1)[labels]
        z[labels == 0] = in_ball(normal(generator, n, d), rho)
        yield gap(2, (z, labels, w, rho))


@check(
    "Graf et al., proof of Theorem (CE), Cauchy–Schwarz",
    "mean_k ‖w_k − w̄‖ ≤ √mean_k ‖w_k − w̄‖², equal iff all centred weights are equally long",
)
def cross_entropy_cauchy_schwarz_of_lengths(generator: torch.Generator) -> Iterator[float]:
    """(C4) ≥ (C5)."""
    yield measure(3, equal_lengths, generator)


@check("Graf et al., proof of Theorem (CE)", "Σ_k ‖w_k − w̄‖² = ‖W‖² − K‖w̄‖² ≤ ‖W‖², equal iff the weights have mean 0")
def cross_entropy_centring(generator: torch.Generator) -> Iterator[float]:
    """(C5) ≥ (C6), and the identity, relative."""
    yield measure(4, centred_weights, generator)
    for _, _, w, _ in random_inputs(generator):
        variation, whole = centre(w).square().sum(), w.square().sum()
        yield float((variation - whole + len(w) * w.mean(0).square().sum()) / whole)


@check(
    "Graf et al., Proof Idea (CE)",
    "all equality conditions hold iff (S1), (S2), (S3), collapse and alignment do; the gaps sum to L_CE − bound",
)
def cross_entropy_chain_is_the_simplex(generator: torch.Generator) -> Iterator[float]:
    """No gap at the aligned simplices; with any one condition broken there is one, and its place is the condition's."""
    for k, n, d in WIDE:
        for rho in RADII:
            zeta, labels = random_simplex(k, d, generator), torch.arange(k).repeat(n)
            z, w = rho * zeta[labels], 2 * zeta
            yield from gaps((z, labels, w, rho))
            uneven = w * torch.linspace(0.5, 1.5, k, dtype=torch.float64)[:, None]
            skew = add_noise(zeta, 0.3, generator)
            apart = rho * add_noise(zeta[labels], 0.3, generator)
            for inputs, strict in (
                ((z, labels, w + normal(generator, 1, d), rho), {4}),  # not S1: what is lost is the mean, (C6)
                ((rho * zeta[labels], labels, uneven, rho), {3}),  # not S2: (C5)
                ((rho * skew[labels], labels, 2 * skew, rho), {0}),  # not S3: (C1)
                ((apart, labels, w, rho), {0, 2}),  # not collapsed: (C1), (C4)
                ((0.9 * z, labels, w, rho), {2}),  # within the ball: (C4)
                ((z, labels, w.roll(1, 0), rho), {0, 2}),  # not aligned: (C1), (C4)
            ):
                result = gaps(inputs)
                yield math.fsum(result) - (loss(*inputs) - with_centred_weights(*inputs))
                yield required(all(result[i] > CLEAR for i in strict))
