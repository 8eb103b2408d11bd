r"""Graf et al., "Dissecting Supervised Contrastive Learning": the inequalities behind the bound of cross-entropy.

The slides name its parts (Jensen, Cauchy–Schwarz; "necessary and sufficient equality conditions ⟺ simplex conditions")
and print no step; the steps here are derived. K classes of equal size, N points ‖z_i‖ ≤ ρ, weights w_1 … w_K with mean
w̄, v_k = w_k − w̄, and φ(t) = log(1 + (K−1) e^t), which rises and is strictly convex:

    (0)  L_CE = (1/N) Σ_i log(1 + Σ_{c≠y_i} e^{⟨z_i, w_c − w_{y_i}⟩})
    (1)       ≥ (1/N) Σ_i φ(m_i),   m_i = 1/(K−1) Σ_{c≠y_i} ⟨z_i, w_c − w_{y_i}⟩      Jensen over the other classes
         equal iff each point has one and the same ⟨z_i, w_c⟩ for all c ≠ y_i
    (2)  m_i  = −K/(K−1) ⟨z_i, v_{y_i}⟩                                              an identity: centred weights
    (3)       ≥ φ((1/N) Σ_i m_i)                                                     Jensen over the points
         equal iff all m_i are equal
    (4)       ≥ φ(−K/(K−1) · ρ · (1/K) Σ_k ‖v_k‖)                                    Cauchy–Schwarz, ‖z_i‖ ≤ ρ
         equal iff z_i = ρ v_{y_i}/‖v_{y_i}‖ wherever v_{y_i} ≠ 0: the classes collapse, aligned to the weights
    (5)       ≥ φ(−K/(K−1) · ρ · √((1/K) Σ_k ‖v_k‖²))                                Cauchy–Schwarz over the classes
         equal iff all v_k have the same length
    (6)       ≥ φ(−ρ √K/(K−1) · ‖W‖)                                                 Σ_k ‖v_k‖² = ‖W‖² − K‖w̄‖²
         equal iff w̄ = 0

(6) is the bound of the theorem. All equal: w̄ = 0 is (S1) and (5) is (S2) of the weights; by (4) z_i is w_{y_i} times
ρ/r, so (1) says that ⟨w_k, w_l⟩ is the same for all l ≠ k, which with (S1) is −r²/(K−1) for every k: (S3). (3) is then
an equality by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from kontrast.geometry.bounds import cross_entropy as cross_entropy_bound
from kontrast.theory._about_simplex import NOISES, normal, shaken, turned, worst, worst_violation
from kontrast.theory._check import check, required
from kontrast.theory._objective import classifier
from kontrast.theory._threads import one_thread

SIZES = ((2, 3, 2), (3, 4, 2), (4, 3, 6), (7, 2, 9), (10, 2, 10))  # classes, points of each, dimensions
WIDE = ((3, 4, 6), (4, 3, 8), (7, 2, 10))  # room for what satisfies one condition alone
RADII = (0.5, 2.0)
CLEAR = 1e-6  # an inequality that must be strict is so by at least this

Inputs = tuple[Tensor, Tensor, Tensor, float]  # points [N, D], labels [N], weights [K, D], ρ
Step = Callable[[Tensor, Tensor, Tensor, float], float]

# ------------------------------------------------------------------------------------------------- the formulas


def loss(z: Tensor, labels: Tensor, w: Tensor, rho: float) -> float:
    """(0), as the library has it."""
    made = classifier(*w.shape)
    with torch.no_grad():
        made.weight.copy_(w)
        return float(made(z, labels))


def one_negative(t: Tensor, num_classes: int) -> Tensor:
    """φ(t) = log(1 + (K−1) e^t).

    >>> one_negative(torch.tensor(0.0), 4)  # log 4
    tensor(1.3863)
    """
    return torch.nn.functional.softplus(t + math.log(num_classes - 1), threshold=math.inf)


def mean_margins(z: Tensor, labels: Tensor, w: Tensor) -> Tensor:
    """m_i of (1), ``[N]``."""
    k = len(w)
    logits = z @ w.T
    own = logits.gather(1, labels[:, None])
    return (logits - own).sum(1) / (k - 1)  # the own class adds 0


def centred_margins(z: Tensor, labels: Tensor, w: Tensor) -> Tensor:
    """(2), ``[N]``."""
    k = len(w)
    return -k / (k - 1) * (z * centred(w)[labels]).sum(1)


def centred(w: Tensor) -> Tensor:
    """v_1 … v_K."""
    return w - w.mean(0)


def over_classes(z: Tensor, labels: Tensor, w: Tensor, rho: float) -> float:
    """(1)."""
    return float(one_negative(mean_margins(z, labels, w), len(w)).mean())


def over_points(z: Tensor, labels: Tensor, w: Tensor, rho: float) -> float:
    """(3)."""
    return float(one_negative(mean_margins(z, labels, w).mean(), len(w)))


def with_aligned_points(z: Tensor, labels: Tensor, w: Tensor, rho: float) -> float:
    """(4)."""
    k = len(w)
    return float(one_negative(-k / (k - 1) * rho * centred(w).norm(dim=1).mean(), k))


def with_equal_lengths(z: Tensor, labels: Tensor, w: Tensor, rho: float) -> float:
    """(5)."""
    k = len(w)
    return float(one_negative(-k / (k - 1) * rho * centred(w).square().sum(1).mean().sqrt(), k))


def with_centred_weights(z: Tensor, labels: Tensor, w: Tensor, rho: float) -> float:
    """(6)."""
    return cross_entropy_bound(len(w), rho, float(w.norm()))


def steps() -> tuple[Step, ...]:
    """(0), (1), (3), (4), (5), (6)."""
    return loss, over_classes, over_points, with_aligned_points, with_equal_lengths, with_centred_weights


def gap(step: int, inputs: Inputs) -> float:
    """What inequality number ``step`` loses: 0 is (0) ≥ (1), 4 is (5) ≥ (6)."""
    above, below = steps()[step : step + 2]
    return above(*inputs) - below(*inputs)


def gaps(inputs: Inputs) -> list[float]:
    """What each of the five inequalities loses."""
    return [gap(step, inputs) for step in range(5)]


# -------------------------------------------------------------- inputs that satisfy one equality condition alone


def in_ball(z: Tensor, rho: float) -> Tensor:
    """All points by one factor, so that the longest has length ρ."""
    scaled: Tensor = z * (rho / z.norm(dim=1).max())
    return scaled


def equal_to_other_classes(k: int, n: int, d: int, rho: float, generator: torch.Generator) -> Inputs:
    """(1): ⟨z_i, w_c⟩ = a_i for c ≠ y_i, solved for z_i; needs independent weights, d ≥ K."""
    labels, w = torch.arange(k).repeat(n), normal(generator, k, d)
    logits = normal(generator, k * n, 1).expand(-1, k).clone()
    logits[torch.arange(k * n), labels] += normal(generator, k * n)
    return in_ball(logits @ torch.linalg.pinv(w).T, rho), labels, w, rho


def equal_margins(k: int, n: int, d: int, rho: float, generator: torch.Generator) -> Inputs:
    """(3): random points, moved along v_y until ⟨z_i, v_{y_i}⟩ is 1 for all."""
    labels, w = torch.arange(k).repeat(n), normal(generator, k, d)
    z, v = normal(generator, k * n, d), centred(w)[labels]
    z = z + v * ((1 - (z * v).sum(1)) / v.square().sum(1))[:, None]
    return in_ball(z, rho), labels, w, rho


def aligned_points(k: int, n: int, d: int, rho: float, generator: torch.Generator) -> Inputs:
    """(4): z_i = ρ v_{y_i}/‖v_{y_i}‖ with random weights."""
    labels, w = torch.arange(k).repeat(n), normal(generator, k, d)
    v = centred(w)
    return (rho * v / v.norm(dim=1, keepdim=True))[labels], labels, w, rho


def equal_lengths(k: int, n: int, d: int, rho: float, generator: torch.Generator) -> Inputs:
    """(5): opposite pairs of unit vectors, an equilateral triangle if K is odd, all shifted by one vector."""
    labels, triangle = torch.arange(k).repeat(n), 3 if k % 2 else 0
    half = shaken(torch.zeros((k - triangle) // 2, d, dtype=torch.float64), 1.0, generator)
    w = torch.cat([half, -half, turned(3, d, generator)[:triangle]]) + normal(generator, 1, d)
    return in_ball(normal(generator, k * n, d), rho), labels, w, rho


def centred_weights(k: int, n: int, d: int, rho: float, generator: torch.Generator) -> Inputs:
    """(6): random weights with mean 0."""
    labels, w = torch.arange(k).repeat(n), normal(generator, k, d)
    return in_ball(normal(generator, k * n, d), rho), labels, centred(w), rho


def random_inputs(generator: torch.Generator) -> Iterator[Inputs]:
    """Points and weights from far away to nearly at the aligned simplices, points within the ball, short and long."""
    for k, n, d in SIZES:
        for rho in RADII:
            zeta, labels = turned(k, d, generator), torch.arange(k).repeat(n)
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
            found = gaps(inputs)
            errors.append(found[step])
            errors.append(required(min(gap for i, gap in enumerate(found) if i != step) > CLEAR))
            moved = in_ball(z + 0.3 * rho * normal(generator, *z.shape), rho), labels, w + 0.3 * normal(generator, k, d)
            errors.append(required(gap(step, (*moved, rho)) > CLEAR))
    return worst(errors)


# --------------------------------------------------------------------------------------------------- the checks


@check(
    "Graf et al., proof of Theorem (CE), Jensen",
    "L_CE ≥ mean_i φ(m_i), m_i = mean_{c≠y} ⟨z_i, w_c − w_y⟩; equal iff ⟨z_i, w_c⟩ is one number for all c ≠ y",
    tolerance=1e-12,
    conditions="φ(t) = log(1 + (K−1)e^t)",
)
@one_thread()
def cross_entropy_jensen_over_classes(generator: torch.Generator) -> float:
    """(0) ≥ (1)."""
    return measure(0, equal_to_other_classes, generator)


@check(
    "Graf et al., proof of Theorem (CE)",
    "mean_{c≠y} ⟨z, w_c − w_y⟩ = −K/(K−1) ⟨z, w_y − w̄⟩",
    tolerance=1e-12,
)
@one_thread()
def margins_are_of_centred_weights(generator: torch.Generator) -> float:
    """(2), relative to the largest |z|·|w|."""
    errors = []
    for z, labels, w, _ in random_inputs(generator):
        scale = float(z.norm(dim=1).max() * w.norm(dim=1).max())
        errors.append(float((mean_margins(z, labels, w) - centred_margins(z, labels, w)).abs().max()) / scale)
    return worst(errors)


@check(
    "Graf et al., proof of Theorem (CE), Jensen",
    "mean_i φ(m_i) ≥ φ(mean_i m_i), equal iff all m_i are equal",
    tolerance=1e-12,
    conditions="φ(t) = log(1 + (K−1)e^t)",
)
@one_thread()
def cross_entropy_jensen_over_points(generator: torch.Generator) -> float:
    """(1) ≥ (3)."""
    return measure(1, equal_margins, generator)


@check(
    "Graf et al., proof of Theorem (CE), Cauchy–Schwarz",
    "mean_i ⟨z_i, w_y − w̄⟩ ≤ ρ mean_k ‖w_k − w̄‖, equal iff z_i = ρ (w_y − w̄)/‖w_y − w̄‖: collapse, alignment",
    tolerance=1e-12,
    conditions="‖z‖ ≤ ρ, balanced labels",
)
@one_thread()
def cross_entropy_cauchy_schwarz_of_points(generator: torch.Generator) -> float:
    """(3) ≥ (4); where a centred weight is 0 the points of its class are free."""
    errors = [measure(2, aligned_points, generator)]
    for k, n, d in WIDE:
        z, labels, w, rho = aligned_points(k, n, d, 1.0, generator)
        w[0] = w[1:].mean(0)  # v_0 = 0
        z = rho * torch.nn.functional.normalize(centred(w), dim=1)[labels]
        z[labels == 0] = in_ball(normal(generator, n, d), rho)
        errors.append(gap(2, (z, labels, w, rho)))
    return worst(errors)


@check(
    "Graf et al., proof of Theorem (CE), Cauchy–Schwarz",
    "mean_k ‖w_k − w̄‖ ≤ √mean_k ‖w_k − w̄‖², equal iff all centred weights are equally long",
    tolerance=1e-12,
)
@one_thread()
def cross_entropy_cauchy_schwarz_of_lengths(generator: torch.Generator) -> float:
    """(4) ≥ (5)."""
    return measure(3, equal_lengths, generator)


@check(
    "Graf et al., proof of Theorem (CE)",
    "Σ_k ‖w_k − w̄‖² = ‖W‖² − K‖w̄‖² ≤ ‖W‖², equal iff the weights have mean 0",
    tolerance=1e-12,
)
@one_thread()
def cross_entropy_centring(generator: torch.Generator) -> float:
    """(5) ≥ (6), and the identity, relative."""
    errors = [measure(4, centred_weights, generator)]
    for _, _, w, _ in random_inputs(generator):
        spread, whole = centred(w).square().sum(), w.square().sum()
        errors.append(float((spread - whole + len(w) * w.mean(0).square().sum()) / whole))
    return worst(errors)


@check(
    "Graf et al., Proof Idea (CE)",
    "all equality conditions hold iff (S1), (S2), (S3), collapse and alignment do; the gaps sum to L_CE − bound",
    tolerance=1e-12,
)
@one_thread()
def cross_entropy_chain_is_the_simplex(generator: torch.Generator) -> float:
    """No gap at the aligned simplices; with any one condition broken there is one, and its place is the condition's."""
    errors = []
    for k, n, d in WIDE:
        for rho in RADII:
            zeta, labels = turned(k, d, generator), torch.arange(k).repeat(n)
            z, w = rho * zeta[labels], 2 * zeta
            errors += gaps((z, labels, w, rho))
            uneven = w * torch.linspace(0.5, 1.5, k, dtype=torch.float64)[:, None]
            bent = shaken(zeta, 0.3, generator)
            inside = 0.9 * z
            apart = rho * shaken(zeta[labels], 0.3, generator)
            for elsewhere, opened in (
                ((z, labels, w + normal(generator, 1, d), rho), {4}),  # not S1: what is lost is the mean, (6)
                ((rho * zeta[labels], labels, uneven, rho), {3}),  # not S2: (5)
                ((rho * bent[labels], labels, 2 * bent, rho), {0}),  # not S3: (1)
                ((apart, labels, w, rho), {0, 2}),  # not collapsed: (1), (4)
                ((inside, labels, w, rho), {2}),  # within the ball: (4)
                ((z, labels, w.roll(1, 0), rho), {0, 2}),  # not aligned: (1), (4)
            ):
                found = gaps(elsewhere)
                errors.append(math.fsum(found) - (loss(*elsewhere) - with_centred_weights(*elsewhere)))
                errors.append(required(all(found[i] > CLEAR for i in opened)))
    return worst(errors)
