r"""Graf et al., "Dissecting Supervised Contrastive Learning": SC, its bound, and the proof of the bound.

K classes with n points each on the sphere of radius ρ, no temperature. A batch B is a multiset of size b, l of a class:

    (1)  ℓ(Z; B)  = −Σ_{i∈B} (1[l_i > 1]/(l_i−1)) Σ_{j∈B_{y_i}\{i}} log( e^{⟨z_i, z_j⟩} / Σ_{k∈B\{i}} e^{⟨z_i, z_k⟩} )
    (2)  L_SC(Z)  = Σ_B ℓ(Z; B)                                                       over all multisets of size b
    (3)  Theorem:   L_SC ≥ Σ_{l=2}^{b} l·M_l·log( l − 1 + (b−l) e^{−Kρ²/(K−1)} )
         with equality iff the classes collapse to a regular simplex of radius ρ
    (4)  M_l      = K·C(n+l−1, l)·C(n(K−1)+b−l−1, b−l)                  pairs of a batch and a class with l in it
    (5)  ℓ(ζ; B)  = Σ_k m_k log( m_k − 1 + (b−m_k) e^{−g} ),  m_k > 1     collapsed classes, ⟨ζ_k, ζ_k⟩ − ⟨ζ_k, ζ_l⟩ = g
    (6)  one balanced batch, m of each class, mean over its elements:  ≥ log( m − 1 + (b−m) e^{−K/((K−1)τ)} )
    (7)  unit vectors at temperature τ are vectors of radius ρ, ρ² = 1/τ

For labels that are not balanced (6) has no like: the minimiser of (1) depends on the labels in the batch ("no common
minimizer for all batch-wise contributions"), while (2) has the simplex.

(3), (4), (6) as functions are those of `geometry.bounds`, (1) and (2) those of `label_configurations`. (3) with (4) is
the formula of the authors' notebook; the slides state the theorem without the value.

The proof of (3) is a chain of inequalities. The slides name its parts (Jensen, Cauchy–Schwarz) and print no step; the
steps here are derived. Let s_ij = ⟨z_i, z_j⟩ and μ_k be the class means. Of a batch B, let y be a class with l ≥ 2
elements in it and i one of them, and

    P_i = mean of s_ij over the l − 1 other elements of y in B,     Q_i = mean of s_ik over the b − l elements not of y

    (C0)  ℓ_i = log( Σ_{j∈B_y\i} e^{s_ij} + Σ_{k∈B\B_y} e^{s_ik} ) − P_i
    (C1)      ≥ log( (l−1) e^{P_i} + Σ_{k∈B\B_y} e^{s_ik} ) − P_i                        Jensen over the positives
          equal iff i has the same s_ij with all its positives
    (C2)      ≥ φ_l(Q_i − P_i),   φ_l(t) = log(l − 1 + (b−l) e^t)                        Jensen over the negatives
          equal iff i has the same s_ik with all its negatives
    (C3)  Σ_{i∈B_y} φ_l(Q_i − P_i) ≥ l φ_l(S_By),   S_By = mean of Q_i − P_i over B_y    Jensen over the anchors
          equal iff Q_i − P_i is the same for all i in B_y (or l = b)
    (C4)  Σ_{(B,y): |B_y|=l} l φ_l(S_By) ≥ l M_l φ_l(S̄_l),   S̄_l = mean of S_By          Jensen over the batches
          equal iff S_By is the same for all M_l pairs (B, y). With n ≥ 2, b ≥ 3 and l < b that is: the classes
          collapse, to points at equal angles. (A batch may have i twice, P_i = ρ², or i and j; its negatives may be of
          one class.)
    (C5)  S̄_l = (1/K) Σ_y [ ⟨μ_y, 1/(K−1) Σ_{k≠y} μ_k⟩ − (n‖μ_y‖² + ρ²)/(n+1) ]          an identity: counting
          for every l from 2 to b − 1. Of the pairs of elements of one class, over all multisets, a share of 2/(n(n+1))
          has a given point twice, and 1/(n(n+1)) a given point first and another second: the mean of s_ij over
          positives. A negative is each point of the other classes equally often.
    (C6)  Σ_y Σ_{k≠y} ⟨μ_y, μ_k⟩ = ‖Σ_k μ_k‖² − Σ_k ‖μ_k‖² ≥ −Σ_k ‖μ_k‖²                 the sum of the means
          equal iff the class means sum to 0
    (C7)  ‖μ_k‖ ≤ ρ                                                                     Cauchy–Schwarz
          equal iff the class collapses

(C5)–(C7) give S̄_l ≥ −Kρ²/(K−1), and with (C0)–(C4) L_SC ≥ Σ_l l M_l φ_l(−Kρ²/(K−1)), the bound of the theorem. All
equal: (C7) is collapse and (S2), (C6) is (S1), (C4) is (S3).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from kontrast import losses
from kontrast.geometry.bounds import batches_with
from kontrast.geometry.bounds import supcon_all_batches as all_batches_bound
from kontrast.geometry.bounds import supcon_batch as balanced_batch_bound
from kontrast.sphere import unit
from kontrast.theory._inputs import NOISES, add_noise, normal, on_sphere, random_simplex, seed, worst, worst_violation
from kontrast.theory.check import check, required
from kontrast.theory.free_points import class_means, deviation, free_points, slope
from kontrast.theory.label_configurations import (
    all_batches,
    all_batches_loss,
    batch_loss,
    configuration_value,
    configurations,
    minimise_all_batches,
    minimise_configuration,
)

SUMS = ((3, 3, 4, 1.0), (3, 2, 5, 1.0), (4, 2, 4, 1.3), (2, 3, 4, 2.0), (3, 3, 9, 1.0), (3, 2, 9, 1.0))  # K, n, b, ρ
BATCHES = ((2, 5), (4, 2), (4, 7), (10, 3))  # classes, elements of each
TEMPERATURES = (0.1, 0.3, 1.0)
MARGIN = 0.01
SMALL_SUMS = ((2, 2, 4), (3, 2, 4), (3, 3, 3), (4, 2, 3), (3, 2, 5))  # K, n, b, for the steps of the proof
RADII = (0.7, 1.5)
CLEAR = 1e-6  # a strict inequality is strict by at least this, an anchor on average

Batch = tuple[Tensor, Tensor]  # points [b, D], labels [b]

# ----------------------------------------------------------------------------------------------- formulas of the proof


class Batches:
    """Batches of one size, ``points [..., b, D]`` with ``labels [..., b]``; values are per anchor, ``[..., b]``.

    Elements that are alone in their class have no term: `anchor` is False there and every value 0.
    """

    def __init__(self, points: Tensor, labels: Tensor) -> None:
        b = labels.shape[-1]
        same = labels[..., :, None] == labels[..., None, :]
        itself = torch.eye(b, dtype=torch.bool)
        self.s = points @ points.mT
        self.positive, self.negative = same & ~itself, ~same
        self.members = same.sum(-1)  # l
        self.anchor = self.members > 1
        self.positives, self.negatives = self.members - 1, b - self.members
        self.same = same.double()

    def over_anchors(self, values: Tensor) -> Tensor:
        """The mean of values over the anchors of each one's class in its batch."""
        mean: Tensor = (self.same @ values[..., None])[..., 0] / self.members
        return mean


def mean_positive(on: Batches) -> Tensor:
    """P_i."""
    return (on.s * on.positive).sum(-1) / on.positives.clamp(min=1)


def mean_negative(on: Batches) -> Tensor:
    """Q_i; 0 where there is no negative."""
    return (on.s * on.negative).sum(-1) / on.negatives.clamp(min=1)


def phi(on: Batches, t: Tensor) -> Tensor:
    """φ_l(t) = log(l − 1 + (b−l) e^t), for each anchor with its l."""
    value = (on.positives.clamp(min=1) + on.negatives * t.exp()).log()
    return torch.where(on.anchor, value, 0.0)


def values(on: Batches) -> Tensor:
    """(C0)."""
    logits = on.s.masked_fill(~(on.positive | on.negative), -torch.inf)
    return torch.where(on.anchor, logits.logsumexp(-1) - mean_positive(on), 0.0)


def over_positives(on: Batches) -> Tensor:
    """(C1)."""
    p = mean_positive(on)
    together = on.positives.clamp(min=1) * p.exp() + (on.s.exp() * on.negative).sum(-1)
    return torch.where(on.anchor, together.log() - p, 0.0)


def over_negatives(on: Batches) -> Tensor:
    """(C2)."""
    return phi(on, mean_negative(on) - mean_positive(on))


def mean_gap(on: Batches) -> Tensor:
    """S_By, given to each anchor of y in B."""
    return on.over_anchors(mean_negative(on) - mean_positive(on))


def over_anchors(on: Batches) -> Tensor:
    """(C3), an l-th of it for each of the l anchors."""
    return phi(on, mean_gap(on))


def over_batches(on: Batches) -> Tensor:
    """(C4), an equal part of it for each anchor; ``on`` holds all batches."""
    gap, mean = mean_gap(on), torch.zeros_like(on.s[..., 0])
    for size in range(2, on.members.shape[-1] + 1):
        there = on.members == size
        mean = torch.where(there, gap[there].mean(), mean)
    return phi(on, mean)


def gap_of_class_means(points: Tensor, labels: Tensor) -> float:
    """(C5): S̄_l from the class means, for points ``[nK, D]`` of equal length."""
    means = class_means(points, labels)
    k, n, rho = len(means), len(points) // len(means), float(points[0].norm())
    repulsion = (means * (means.sum(0) - means)).sum(1) / (k - 1)
    attraction = (n * means.square().sum(1) + rho**2) / (n + 1)
    return float((repulsion - attraction).mean())


def gap_with_centred_means(points: Tensor, labels: Tensor) -> float:
    """(C5) with (C6): ‖Σ_k μ_k‖² put to 0."""
    squares, n = class_means(points, labels).square().sum(1), len(labels) // (int(labels.max()) + 1)
    k, rho = len(squares), float(points[0].norm())
    return float((-squares / (k - 1) - (n * squares + rho**2) / (n + 1)).mean())


def gap_at_collapse(points: Tensor, labels: Tensor) -> float:
    """(C5) with (C6) and (C7): −Kρ²/(K−1)."""
    k = int(labels.max()) + 1
    return -k / (k - 1) * float(points[0].norm()) ** 2


def total(num_classes: int, per_class: int, batch_size: int, gap: float) -> float:
    """Σ_l l M_l φ_l(gap): what (C4) is where S̄_l is the same for every l."""
    b = batch_size
    sizes = range(2, b + 1)
    return math.fsum(
        size * batches_with(num_classes, per_class, b, size) * math.log(size - 1 + (b - size) * math.exp(gap))
        for size in sizes
    )


# ------------------------------------------------------------------------------------------------- inputs of the proof


def every_batch(points: Tensor, labels: Tensor, batch_size: int) -> Batches:
    """All multisets of ``batch_size`` from these points."""
    index = multisets(len(points), batch_size)
    return Batches(points[index], labels[index])


@functools.cache
def multisets(num_points: int, batch_size: int) -> Tensor:
    """Each multiset of so many of 0 … num_points − 1, one a row."""
    return torch.tensor(list(itertools.combinations_with_replacement(range(num_points), batch_size)))


def single_batches(generator: torch.Generator) -> Iterator[Batches]:
    """Random points and labels: batches of one class, of lonely elements, of many classes; short and long vectors."""
    for b, d, k in ((4, 2, 2), (6, 3, 2), (9, 4, 3), (12, 16, 5)):
        for rho in (*RADII, 3.0):
            labels = torch.randint(k, (20, b), generator=generator)
            yield Batches(rho * on_sphere(generator, 20, b, d), labels)


def balanced_points(generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor, int]]:
    """Points ``[nK, D]``, labels and batch size: random ones, ever closer to the simplex, classes collapsed or not."""
    for (k, n, b), rho in itertools.product(SMALL_SUMS, RADII):
        labels = torch.arange(k).repeat(n)
        for noise in NOISES:
            zeta = random_simplex(k, k + 1, generator)
            yield rho * add_noise(zeta[labels], noise, generator), labels, b
            yield rho * add_noise(zeta, noise, generator)[labels], labels, b


def at_equal_angles(num: int, frame: Tensor, common: float) -> Tensor:
    """``num`` unit vectors at equal angles within orthonormal rows ``frame [num, D]``; more ``common``, closer."""
    return unit(frame + common * frame.sum(0))


def frames(generator: torch.Generator, *sizes: int) -> list[Tensor]:
    """Orthonormal rows in random directions, all orthogonal to each other."""
    basis = torch.linalg.qr(normal(generator, sum(sizes) + 1, sum(sizes) + 1)).Q
    return list(basis[: sum(sizes)].split(list(sizes)))


def equal_positives(generator: torch.Generator, rho: float) -> Batch:
    """(C1) alone: three elements of each of three classes at equal angles, each class in a frame of its own."""
    groups = [at_equal_angles(3, torch.linalg.qr(normal(generator, 5, 3)).Q.T, 0.5 * c) for c in range(3)]
    return rho * torch.cat(groups), torch.arange(3).repeat_interleave(3)


def equal_negatives(generator: torch.Generator, rho: float) -> Batch:
    """(C2) alone: a part common to all, and a random direction in a plane that belongs to the class."""
    common, *planes = frames(generator, 1, 2, 2, 2)
    directions = [on_sphere(generator, 3, 2) @ plane for plane in planes]
    return rho * unit(0.7 * common + torch.cat(directions)), torch.arange(3).repeat_interleave(3)


def equal_anchors(generator: torch.Generator, rho: float) -> Batch:
    """(C3) alone: each class is one random vector, its coordinates shifted round in two groups of four."""
    starts = on_sphere(generator, 3, 8).view(3, 2, 4)
    orbits = torch.stack([starts.roll(shift, -1) for shift in range(4)], 1)  # [class, shift, 2, 4]
    return rho * orbits.reshape(12, 8), torch.arange(3).repeat_interleave(4)


def move_one_point(points: Tensor, generator: torch.Generator) -> Tensor:
    """Unit points, the first one random_simplex by a right angle in a random direction."""
    first, direction = points[:1], normal(generator, 1, points.shape[1])
    return torch.cat([unit(direction - (direction * first).sum() * first), points[1:]])


def class_rotations(k: int, n: int, generator: torch.Generator) -> Tensor:
    """(C6) alone: unit points of a class are those of the one before, random_simplex by 2π/K in each of two planes."""
    first, angle = torch.view_as_complex(normal(generator, n, 2, 2)), 2 * math.pi / k
    turns = torch.stack([first * complex(math.cos(angle * c), math.sin(angle * c)) for c in range(k)], 1)
    return unit(torch.view_as_real(turns).reshape(n * k, 4))  # in the order of labels 0 … K−1, 0 … K−1, …


def gaps(on: Batches) -> list[Tensor]:
    """By how much (C1), (C2) and (C3) are strict for each anchor; (C3) for each class, as a mean over its anchors."""
    return [
        values(on) - over_positives(on),
        over_positives(on) - over_negatives(on),
        on.over_anchors(over_negatives(on)) - over_anchors(on),
    ]


def mean_gaps(on: Batches) -> list[float]:
    """By how much (C1), (C2), (C3) and (C4) are strict in the sum over all batches, per anchor."""
    anchors = on.anchor.sum()
    result = [*gaps(on), over_anchors(on) - over_batches(on)]
    return [float(gap.sum() / anchors) for gap in result]


def measure(step: int, only: Callable[[torch.Generator, float], Batch], generator: torch.Generator) -> float:
    """The error of inequality 0, 1 or 2, which is (C1), (C2) or (C3).

    It is violated for no anchor (no class) of any batch; it is an equality, and the other two are strict, for batches
    that satisfy its condition alone; and it is strict again as soon as these are moved.
    """
    slacks = [gaps(on)[step] for on in single_batches(generator)]
    slacks += [gaps(every_batch(*inputs))[step] for inputs in itertools.islice(balanced_points(generator), 0, None, 7)]
    errors = [worst_violation(torch.cat([slack.flatten() for slack in slacks]).tolist())]
    for rho in RADII:
        for _ in range(5):
            points, labels = only(generator, rho)
            result = gaps(Batches(points, labels))
            errors.append(float(result[step].abs().max()))
            errors.append(required(all(float(gap.mean()) > CLEAR for i, gap in enumerate(result) if i != step)))
            shifted = Batches(rho * add_noise(points / rho, 0.5, generator), labels)
            errors.append(required(float(gaps(shifted)[step].mean()) > CLEAR))
    return worst(errors)


# ----------------------------------------------------------------------------------------------- checks of the theorem


def _supcon(z: Tensor, labels: Tensor, temperature: float = 1.0, reduction: str = "sum") -> float:
    """SupCon as the library has it, on rows as they are."""
    return float(losses.SupConLoss(temperature, normalize=False, reduction=reduction)(z, labels))


@check("Graf et al., definition of L_SC", "SC on radius ρ = SupCon on unit vectors at τ = 1/ρ²")
def temperature_is_a_radius(generator: torch.Generator) -> Iterator[float]:
    """(1) on z/√τ against the loss on z; labels of any kind, lonely ones too; relative."""
    for b, d, k in ((2, 3, 1), (7, 2, 3), (20, 8, 4), (30, 16, 20)):
        labels = torch.randint(k, (b,), generator=generator)
        z = on_sphere(generator, b, d)
        for tau in (0.05, *TEMPERATURES, 10.0):
            value = float(batch_loss(z / math.sqrt(tau), labels))
            yield (_supcon(z, labels, tau) - value) / max(1.0, abs(value))


@check(
    "Graf et al., notebook (value of the SC bound)",
    "M_l = K·C(n+l−1, l)·C(n(K−1)+b−l−1, b−l) pairs of a batch and a class with l in it",
    tolerance=0.0,
)
def batches_are_counted(generator: torch.Generator) -> Iterator[float]:
    """Against counting; sizes at random, every l from 0 to b."""
    for _ in range(6):
        k, n, b = (int(torch.randint(low, high, (1,), generator=generator)) for low, high in ((2, 5), (1, 4), (2, 6)))
        result: Counter[int] = Counter()
        for batch in itertools.combinations_with_replacement(range(k * n), b):
            inside = Counter(i // n for i in batch)
            result.update(inside[c] for c in range(k))
        yield from [result[size] - batches_with(k, n, b, size) for size in range(b + 1)]


@check(
    "Graf et al., Theorem (SC)",
    "L_SC over all multiset batches is Σ_l l·M_l·log(l−1+(b−l)e^{−Kρ²/(K−1)}) at the simplex",
)
def all_batches_bound_is_the_simplex(generator: torch.Generator) -> Iterator[float]:
    """Against the sum over every batch, with the simplex in a random position and in more dimensions; relative."""
    for k, n, b, rho in SUMS:
        labels = torch.arange(k).repeat(n)
        for d in (k - 1, k + 3):
            value = float(all_batches_loss(rho * random_simplex(k, d, generator)[labels], labels, b))
            yield all_batches_bound(k, n, b, rho) / value - 1


@check(
    "Graf et al., Theorem (SC)",
    "L_SC > Σ_l l·M_l·log(l−1+(b−l)e^{−Kρ²/(K−1)}) for points on the sphere off the simplex",
)
def all_batches_are_above_their_bound(generator: torch.Generator) -> Iterator[float]:
    """Random points, ever closer to the simplex, their classes collapsed or not; relative to the bound."""
    slacks, clear = [], []
    for k, n, b, rho in SUMS[:4]:
        labels = torch.arange(k).repeat(n)
        loss, bound = all_batches(labels, b), all_batches_bound(k, n, b, rho)
        for d, noise in itertools.product((k, k + 3), NOISES):
            zeta = random_simplex(k, d, generator)
            points = [add_noise(zeta[labels], noise, generator) for _ in range(5)]
            points.append(add_noise(zeta, noise, generator)[labels])
            result = [float(loss(rho * z)) / bound - 1 for z in points]
            slacks += result
            clear += result if k > 2 and noise >= 0.1 else []  # two classes may be opposite again by chance
    yield worst_violation(slacks) + required(min(clear) > 1e-9)


@check(
    "Graf et al., Theorem (SC)",
    "points minimising L_SC over all batches form a regular simplex of radius ρ",
    tolerance=1e-10,
)
def all_batches_find_the_simplex(generator: torch.Generator) -> Iterator[float]:
    """Minimised from random points: deviations from the bound (relative) and the simplex; the slope there vanishes."""
    for (k, n, b, rho), d in zip((*SUMS[:4], SUMS[4]), (2, 4, 3, 2, 2), strict=True):
        result = minimise_all_batches(k, n, b, d, radius=rho, starts=2, seed=seed(generator))
        bound = all_batches_bound(k, n, b, rho)
        yield result.value / bound - 1
        yield deviation(result.points, result.labels, rho).largest
        labels = torch.arange(k).repeat(n)
        yield slope(all_batches(labels, b), rho * random_simplex(k, d, generator)[labels]) / bound


@check(
    "Graf et al., Theory – Challenges",
    "no points minimise every batch: each label configuration has a minimiser of its own",
    tolerance=1e-10,
    conditions="K = 3, b = 9 on the circle",
)
def batches_have_no_common_minimiser(generator: torch.Generator) -> Iterator[float]:
    """(5) against the loss at the simplex and against the minima that are known; the others are lower than the simplex
    by a margin, and no two arrangements of three classes are alike."""
    k, b = 3, 9
    zeta = random_simplex(k, 2, generator)
    arrangements = []
    for counts in configurations(k, b):
        result = minimise_configuration(counts, 2, starts=3, seed=seed(generator))
        at_simplex, opposite = configuration_value(counts, k / (k - 1)), configuration_value(counts, 2.0)
        yield _supcon(zeta[result.labels], result.labels) - at_simplex
        yield required(result.value > opposite - 1e-9)
        if counts[1] <= 1 or counts[2] == 0:  # one class with others or without, or two classes
            yield result.value - opposite
        elif counts == (3, 3, 3):
            yield result.value - at_simplex
        if counts[0] != b and counts != (3, 3, 3):
            yield required(at_simplex - result.value > MARGIN)
        if min(counts) > 0:
            arrangements.append(result.cosines[torch.triu_indices(k, k, 1).unbind()].sort().values)
    for one, other in itertools.combinations(arrangements, 2):
        yield required(float((one - other).abs().max()) > MARGIN)


@check(
    "Graf et al., Theorem (SC), one balanced batch",
    "SupCon ≥ log(m−1+(b−m)e^{−K/((K−1)τ)}) with m of each of K classes, and equal only at the simplex",
)
def balanced_batch_bound_is_the_simplex(generator: torch.Generator) -> Iterator[float]:
    """The error at the simplex, and any violation off it; there it must not be reached."""
    errors, slacks, clear = [], [], []
    for (k, m), tau in itertools.product(BATCHES, TEMPERATURES):
        bound, labels = balanced_batch_bound(k, m, tau), torch.arange(k).repeat(m)
        for d, noise in itertools.product((k, k + 5), NOISES):
            zeta = random_simplex(k, d, generator)
            errors.append(_supcon(zeta[labels], labels, tau, "mean") - bound)
            points = add_noise(zeta[labels], noise, generator), add_noise(zeta, noise, generator)[labels]
            result = [_supcon(z, labels, tau, "mean") - bound for z in points]
            slacks += result
            clear += result if k > 2 and noise >= 0.1 else []
    yield worst(errors) + worst_violation(slacks) + required(min(clear) > 1e-9)


@check(
    "Graf et al., Theorem (SC), Numerical Simulation",
    "points minimising SC as one balanced batch form a regular simplex",
    tolerance=1e-9,
    conditions="τ from 0.3",
)
def supcon_finds_the_simplex(generator: torch.Generator) -> Iterator[float]:
    """Gradient descent from random points, K = 4 on S² among them; deviations from simplex and bound."""
    for k, n, d, tau in ((4, 20, 3, 0.3), (3, 4, 2, 0.5), (10, 3, 12, 0.3)):
        run = free_points("sc", k, n, d, temperature=tau, seed=seed(generator))
        yield run.loss - balanced_batch_bound(k, n, tau)
        yield run.deviation.largest


# ------------------------------------------------------------------------------------------------- checks of the proof


@check(
    "Graf et al., proof of Theorem (SC), Jensen",
    "Σ_j e^{s_ij} ≥ (l−1) e^{mean s_ij} over an anchor's positives, equal iff all these s_ij are equal",
)
def supcon_jensen_over_positives(generator: torch.Generator) -> Iterator[float]:
    """(C0) ≥ (C1) within ℓ_i; (C0) summed over all batches is the loss."""
    yield measure(0, equal_positives, generator)
    for points, labels, b in itertools.islice(balanced_points(generator), 0, None, 9):
        whole = float(all_batches_loss(points, labels, b))
        yield float(values(every_batch(points, labels, b)).sum()) / whole - 1


@check(
    "Graf et al., proof of Theorem (SC), Jensen",
    "Σ_k e^{s_ik} ≥ (b−l) e^{mean s_ik} over an anchor's negatives, equal iff all these s_ik are equal",
)
def supcon_jensen_over_negatives(generator: torch.Generator) -> Iterator[float]:
    """(C1) ≥ (C2) within ℓ_i."""
    yield measure(1, equal_negatives, generator)


@check(
    "Graf et al., proof of Theorem (SC), Jensen",
    "mean φ(Q_i − P_i) ≥ φ(mean (Q_i − P_i)) over a class in a batch, equal iff all Q_i − P_i are equal",
    conditions="φ(t) = log(l−1+(b−l)e^t), P and Q an anchor's mean s with its positives and negatives",
)
def supcon_jensen_over_anchors(generator: torch.Generator) -> Iterator[float]:
    """(C2) ≥ (C3)."""
    yield measure(2, equal_anchors, generator)


@check(
    "Graf et al., proof of Theorem (SC), Jensen",
    "mean φ(S_By) ≥ φ(mean S_By) over all batches with l of a class, equal iff collapsed at equal angles",
    conditions="n ≥ 2, b ≥ 3; S_By the mean of Q_i − P_i over the class in the batch",
)
def supcon_jensen_over_batches(generator: torch.Generator) -> Iterator[float]:
    """(C3) ≥ (C4); equal angles whose vectors do not sum to 0 are enough; collapse alone, or equal means, are not."""
    yield worst_violation([mean_gaps(every_batch(*inputs))[3] for inputs in balanced_points(generator)])
    for (k, n, b), rho in itertools.product(SMALL_SUMS, RADII):
        labels = torch.arange(k).repeat(n)
        (frame,) = frames(generator, k)
        zeta = rho * at_equal_angles(k, frame, 0.4)
        yield mean_gaps(every_batch(zeta[labels], labels, b))[3]
        yield required(gap_of_class_means(zeta[labels], labels) - gap_with_centred_means(zeta[labels], labels) > CLEAR)
        apart = rho * add_noise(zeta[labels] / rho, 0.5, generator)
        yield required(mean_gaps(every_batch(apart, labels, b))[3] > CLEAR)
        if k > 2:  # two classes have one angle
            skew = zeta.clone()
            skew[0] = rho * unit(zeta[:2].sum(0))
            yield required(mean_gaps(every_batch(skew[labels], labels, b))[3] > CLEAR)


@check(
    "Graf et al., proof of Theorem (SC)",
    "over all batches with l of a class, mean S = mean_y [mean_{k≠y} ⟨μ_y, μ_k⟩ − (n‖μ_y‖² + ρ²)/(n+1)], any l < b",
)
def supcon_batches_average_to_class_means(generator: torch.Generator) -> Iterator[float]:
    """(C5) against counting, for each l; a whole batch of one class has no negatives, and only the second part."""
    for (k, n, b), rho in itertools.product((*SMALL_SUMS, (2, 1, 4), (2, 4, 3)), RADII):
        labels = torch.arange(k).repeat(n)
        points = rho * on_sphere(generator, k * n, 3)
        on = every_batch(points, labels, b)
        result = mean_gap(on)
        by_means = gap_of_class_means(points, labels)
        yield from [float(result[on.members == size].mean()) - by_means for size in range(2, b)]
        squares = class_means(points, labels).square().sum(1)
        yield float(result[on.members == b].mean() + (n * squares.mean() + rho**2) / (n + 1))


@check(
    "Graf et al., proof of Theorem (SC)",
    "Σ_{k≠l} ⟨μ_k, μ_l⟩ = ‖Σ_k μ_k‖² − Σ_k ‖μ_k‖² ≥ −Σ_k ‖μ_k‖², equal iff the class means sum to 0",
)
def supcon_means_sum(generator: torch.Generator) -> Iterator[float]:
    """(C6): the identity by pairs, the mean gap before and after, and means that sum to 0 and nothing else."""
    errors, slacks = [], []
    for points, labels, _ in balanced_points(generator):
        means = class_means(points, labels)
        k = len(means)
        pairs = math.fsum(float(means[i] @ means[j]) for i, j in itertools.permutations(range(k), 2))
        errors.append(pairs - float(means.sum(0).square().sum() - means.square().sum()))
        slack = gap_of_class_means(points, labels) - gap_with_centred_means(points, labels)
        errors.append(slack - float(means.sum(0).square().sum()) / (k * (k - 1)))
        slacks.append(slack)
    for (k, n, b), rho in itertools.product(SMALL_SUMS, RADII):
        labels = torch.arange(k).repeat(n)
        points = rho * class_rotations(k, n, generator)
        errors.append(gap_of_class_means(points, labels) - gap_with_centred_means(points, labels))
        errors.append(required(gap_with_centred_means(points, labels) - gap_at_collapse(points, labels) > CLEAR))
        errors.append(required(mean_gaps(every_batch(points, labels, b))[3] > CLEAR))
        shifted = rho * unit(points / rho + 0.5 * on_sphere(generator, 1, 4))
        errors.append(required(gap_of_class_means(shifted, labels) - gap_with_centred_means(shifted, labels) > CLEAR))
    yield worst(errors) + worst_violation(slacks)


@check(
    "Graf et al., proof of Theorem (SC), Cauchy–Schwarz",
    "‖μ_k‖ ≤ ρ, so the mean of S over all batches is ≥ −Kρ²/(K−1) if Σμ = 0; equal iff the classes collapse",
)
def supcon_class_means_are_inside(generator: torch.Generator) -> Iterator[float]:
    """(C7): collapsed to random points, which do not sum to 0 and are at unequal angles; and points apart."""
    errors, slacks = [], []
    for points, labels, _ in balanced_points(generator):
        slacks.append(gap_with_centred_means(points, labels) - gap_at_collapse(points, labels))
    for (k, n, b), rho in itertools.product(SMALL_SUMS, RADII):
        labels = torch.arange(k).repeat(n)
        points = rho * on_sphere(generator, k, 4)[labels]
        errors.append(gap_with_centred_means(points, labels) - gap_at_collapse(points, labels))
        errors.append(required(gap_of_class_means(points, labels) - gap_with_centred_means(points, labels) > CLEAR))
        if k > 2:  # two classes have one angle
            errors.append(required(mean_gaps(every_batch(points, labels, b))[3] > CLEAR))
        apart = rho * add_noise(points / rho, 0.3, generator)
        errors.append(required(gap_with_centred_means(apart, labels) - gap_at_collapse(apart, labels) > CLEAR))
    yield worst(errors) + worst_violation(slacks)


@check(
    "Graf et al., Proof Idea (SC)",
    "all equality conditions hold iff (S1), (S2), (S3) and collapse do; the gaps sum to L_SC − bound",
)
def supcon_chain_is_the_simplex(generator: torch.Generator) -> Iterator[float]:
    """L_SC from step to step down to the bound; relative to it. No gap at the simplex; off it the condition's own."""
    for (k, n, b), rho in itertools.product(SMALL_SUMS, RADII):
        labels, bound = torch.arange(k).repeat(n), all_batches_bound(k, n, b, rho)
        zeta = random_simplex(k, k, generator)
        (frame,) = frames(generator, k)
        places = [
            (zeta[labels], set()),
            (at_equal_angles(k, frame, 0.4)[labels], {4}),  # not S1: the sum of the means, (C6)
            (move_one_point(zeta[labels], generator), {0, 3, 5}),  # not collapsed: (C1), (C4), (C7)
        ]
        if k > 2:
            skew = torch.cat([unit(zeta[:2].sum(0, keepdim=True)), zeta[1:]])
            places.append((skew[labels], {3}))  # not S3: (C4)
        for points, strict in places:
            result = descent(rho * points, labels, b)
            steps = [above - below for above, below in itertools.pairwise(result)]
            scale = abs(bound)
            yield result[0] / float(all_batches_loss(rho * points, labels, b)) - 1
            yield result[-1] / bound - 1
            yield worst_violation(steps) / scale
            yield required(all(steps[i] > CLEAR * scale for i in strict))
            yield from [] if strict else [step / scale for step in steps]


def descent(points: Tensor, labels: Tensor, batch_size: int) -> list[float]:
    """L_SC, and what it is at least after (C1), (C2), (C3), (C4), (C6) and (C7)."""
    on = every_batch(points, labels, batch_size)
    k, n = int(labels.max()) + 1, len(labels) // (int(labels.max()) + 1)
    by_batch = [values(on), over_positives(on), over_negatives(on), over_anchors(on), over_batches(on)]
    by_means = [gap_with_centred_means(points, labels), gap_at_collapse(points, labels)]
    return [*(float(x.sum()) for x in by_batch), *(total(k, n, batch_size, gap) for gap in by_means)]
