r"""Graf et al., "Dissecting Supervised Contrastive Learning": the inequalities behind the bound of SC.

The slides name its parts (Jensen, Cauchy–Schwarz) and print no step; the steps here are derived. K classes with n
points each on the sphere of radius ρ, s_ij = ⟨z_i, z_j⟩, μ_k the class means. Of a batch B of size b (a multiset), let
y be a class with l ≥ 2 elements in it and i one of them, and

    P_i = mean of s_ij over the l − 1 other elements of y in B,     Q_i = mean of s_ik over the b − l elements not of y

    (0)  ℓ_i = log( Σ_{j∈B_y\i} e^{s_ij} + Σ_{k∈B\B_y} e^{s_ik} ) − P_i
    (1)      ≥ log( (l−1) e^{P_i} + Σ_{k∈B\B_y} e^{s_ik} ) − P_i                        Jensen over the positives
         equal iff i has the same s_ij with all its positives
    (2)      ≥ φ_l(Q_i − P_i),   φ_l(t) = log(l − 1 + (b−l) e^t)                        Jensen over the negatives
         equal iff i has the same s_ik with all its negatives
    (3)  Σ_{i∈B_y} φ_l(Q_i − P_i) ≥ l φ_l(S_By),   S_By = mean of Q_i − P_i over B_y    Jensen over the anchors
         equal iff Q_i − P_i is the same for all i in B_y (or l = b)
    (4)  Σ_{(B,y): |B_y|=l} l φ_l(S_By) ≥ l M_l φ_l(S̄_l),   S̄_l = mean of S_By          Jensen over the batches
         equal iff S_By is the same for all M_l pairs (B, y). With n ≥ 2, b ≥ 3 and l < b that is: the classes collapse,
         to points at equal angles. (A batch may have i twice, P_i = ρ², or i and j; its negatives may be of one class.)
    (5)  S̄_l = (1/K) Σ_y [ ⟨μ_y, 1/(K−1) Σ_{k≠y} μ_k⟩ − (n‖μ_y‖² + ρ²)/(n+1) ]          an identity: counting
         for every l from 2 to b − 1. Of the pairs of elements of one class, over all multisets, a share of 2/(n(n+1))
         has a given point twice, and 1/(n(n+1)) a given point first and another second: the mean of s_ij over
         positives. A negative is each point of the other classes equally often.
    (6)  Σ_y Σ_{k≠y} ⟨μ_y, μ_k⟩ = ‖Σ_k μ_k‖² − Σ_k ‖μ_k‖² ≥ −Σ_k ‖μ_k‖²                 the sum of the means
         equal iff the class means sum to 0
    (7)  ‖μ_k‖ ≤ ρ                                                                     Cauchy–Schwarz
         equal iff the class collapses

(5)–(7) give S̄_l ≥ −Kρ²/(K−1), and with (0)–(4) L_SC ≥ Σ_l l M_l φ_l(−Kρ²/(K−1)), the bound of the theorem. All equal:
(7) is collapse and (S2), (6) is (S1), (4) is (S3).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from kontrast.geometry.bounds import batches_with
from kontrast.geometry.bounds import supcon_all_batches as all_batches_bound
from kontrast.sphere import unit
from kontrast.theory._about_simplex import NOISES, normal, shaken, turned, worst, worst_violation
from kontrast.theory._all_batches import all_batches_loss
from kontrast.theory._check import check, required
from kontrast.theory._deviation import class_means
from kontrast.theory._similarities import on_sphere
from kontrast.theory._threads import one_thread

SUMS = ((2, 2, 4), (3, 2, 4), (3, 3, 3), (4, 2, 3), (3, 2, 5))  # classes, points of each, batch size
RADII = (0.7, 1.5)
CLEAR = 1e-6  # an inequality that must be strict is so by at least this, an anchor on average

Batch = tuple[Tensor, Tensor]  # points [b, D], labels [b]

# ------------------------------------------------------------------------------------------------- the formulas


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
    """(0)."""
    taken = on.s.masked_fill(~(on.positive | on.negative), -torch.inf)
    return torch.where(on.anchor, taken.logsumexp(-1) - mean_positive(on), 0.0)


def over_positives(on: Batches) -> Tensor:
    """(1)."""
    p = mean_positive(on)
    together = on.positives.clamp(min=1) * p.exp() + (on.s.exp() * on.negative).sum(-1)
    return torch.where(on.anchor, together.log() - p, 0.0)


def over_negatives(on: Batches) -> Tensor:
    """(2)."""
    return phi(on, mean_negative(on) - mean_positive(on))


def mean_gap(on: Batches) -> Tensor:
    """S_By, given to each anchor of y in B."""
    return on.over_anchors(mean_negative(on) - mean_positive(on))


def over_anchors(on: Batches) -> Tensor:
    """(3), an l-th of it for each of the l anchors."""
    return phi(on, mean_gap(on))


def over_batches(on: Batches) -> Tensor:
    """(4), an equal part of it for each anchor; ``on`` holds all batches."""
    gap, mean = mean_gap(on), torch.zeros_like(on.s[..., 0])
    for size in range(2, on.members.shape[-1] + 1):
        there = on.members == size
        mean = torch.where(there, gap[there].mean(), mean)
    return phi(on, mean)


def counted_gap(points: Tensor, labels: Tensor) -> float:
    """(5): S̄_l from the class means, for points ``[nK, D]`` of equal length."""
    means = class_means(points, labels)
    k, n, rho = len(means), len(points) // len(means), float(points[0].norm())
    repulsion = (means * (means.sum(0) - means)).sum(1) / (k - 1)
    attraction = (n * means.square().sum(1) + rho**2) / (n + 1)
    return float((repulsion - attraction).mean())


def gap_with_centred_means(points: Tensor, labels: Tensor) -> float:
    """(5) with (6): ‖Σ_k μ_k‖² put to 0."""
    squares, n = class_means(points, labels).square().sum(1), len(labels) // (int(labels.max()) + 1)
    k, rho = len(squares), float(points[0].norm())
    return float((-squares / (k - 1) - (n * squares + rho**2) / (n + 1)).mean())


def gap_at_collapse(points: Tensor, labels: Tensor) -> float:
    """(5) with (6) and (7): −Kρ²/(K−1)."""
    k = int(labels.max()) + 1
    return -k / (k - 1) * float(points[0].norm()) ** 2


def total(num_classes: int, per_class: int, batch_size: int, gap: float) -> float:
    """Σ_l l M_l φ_l(gap): what (4) is where S̄_l is the same for every l."""
    b = batch_size
    sizes = range(2, b + 1)
    return math.fsum(
        size * batches_with(num_classes, per_class, b, size) * math.log(size - 1 + (b - size) * math.exp(gap))
        for size in sizes
    )


# ---------------------------------------------------------------------------------------------------- the inputs


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


def free_points(generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor, int]]:
    """Points ``[nK, D]``, labels and batch size: random ones, ever closer to the simplex, classes collapsed or not."""
    for (k, n, b), rho in itertools.product(SUMS, RADII):
        labels = torch.arange(k).repeat(n)
        for noise in NOISES:
            zeta = turned(k, k + 1, generator)
            yield rho * shaken(zeta[labels], noise, generator), labels, b
            yield rho * shaken(zeta, noise, generator)[labels], labels, b


def at_equal_angles(num: int, frame: Tensor, common: float) -> Tensor:
    """``num`` unit vectors at equal angles within orthonormal rows ``frame [num, D]``; more ``common``, closer."""
    return unit(frame + common * frame.sum(0))


def frames(generator: torch.Generator, *sizes: int) -> list[Tensor]:
    """Orthonormal rows in random directions, all orthogonal to each other."""
    basis = torch.linalg.qr(normal(generator, sum(sizes) + 1, sum(sizes) + 1)).Q
    return list(basis[: sum(sizes)].split(list(sizes)))


def equal_positives(generator: torch.Generator, rho: float) -> Batch:
    """(1) alone: three elements of each of three classes at equal angles, each class in a frame of its own."""
    groups = [at_equal_angles(3, torch.linalg.qr(normal(generator, 5, 3)).Q.T, 0.5 * c) for c in range(3)]
    return rho * torch.cat(groups), torch.arange(3).repeat_interleave(3)


def equal_negatives(generator: torch.Generator, rho: float) -> Batch:
    """(2) alone: a part common to all, and a random direction in a plane that belongs to the class."""
    common, *planes = frames(generator, 1, 2, 2, 2)
    own = [on_sphere(generator, 3, 2) @ plane for plane in planes]
    return rho * unit(0.7 * common + torch.cat(own)), torch.arange(3).repeat_interleave(3)


def equal_anchors(generator: torch.Generator, rho: float) -> Batch:
    """(3) alone: each class is one random vector, its coordinates shifted round in two groups of four."""
    starts = on_sphere(generator, 3, 8).view(3, 2, 4)
    orbits = torch.stack([starts.roll(shift, -1) for shift in range(4)], 1)  # [class, shift, 2, 4]
    return rho * orbits.reshape(12, 8), torch.arange(3).repeat_interleave(4)


def with_one_apart(points: Tensor, generator: torch.Generator) -> Tensor:
    """Unit points, the first one turned by a right angle in a random direction."""
    first, drawn = points[:1], normal(generator, 1, points.shape[1])
    return torch.cat([unit(drawn - (drawn * first).sum() * first), points[1:]])


def rotated_classes(k: int, n: int, generator: torch.Generator) -> Tensor:
    """(6) alone: unit points of a class are those of the one before, turned by 2π/K in each of two planes."""
    first, angle = torch.view_as_complex(normal(generator, n, 2, 2)), 2 * math.pi / k
    turns = torch.stack([first * complex(math.cos(angle * c), math.sin(angle * c)) for c in range(k)], 1)
    return unit(torch.view_as_real(turns).reshape(n * k, 4))  # in the order of labels 0 … K−1, 0 … K−1, …


def gaps(on: Batches) -> list[Tensor]:
    """What (1), (2) and (3) lose: of each anchor; (3) of each class in its batch, as a mean over its anchors."""
    return [
        values(on) - over_positives(on),
        over_positives(on) - over_negatives(on),
        on.over_anchors(over_negatives(on)) - over_anchors(on),
    ]


def lost(on: Batches) -> list[float]:
    """What (1), (2), (3) and (4) lose in the sum over all batches, an anchor on average."""
    anchors = on.anchor.sum()
    found = [*gaps(on), over_anchors(on) - over_batches(on)]
    return [float(gap.sum() / anchors) for gap in found]


def measure(step: int, only: Callable[[torch.Generator, float], Batch], generator: torch.Generator) -> float:
    """The error of inequality 0, 1 or 2, which is (1), (2) or (3).

    It is violated for no anchor (no class) of any batch; it is an equality, and the other two are strict, for batches
    that satisfy its condition alone; and it is strict again as soon as these are moved.
    """
    slacks = [gaps(on)[step] for on in single_batches(generator)]
    slacks += [gaps(every_batch(*inputs))[step] for inputs in itertools.islice(free_points(generator), 0, None, 7)]
    errors = [worst_violation(torch.cat([slack.flatten() for slack in slacks]).tolist())]
    for rho in RADII:
        for _ in range(5):
            points, labels = only(generator, rho)
            found = gaps(Batches(points, labels))
            errors.append(float(found[step].abs().max()))
            errors.append(required(all(float(gap.mean()) > CLEAR for i, gap in enumerate(found) if i != step)))
            elsewhere = Batches(rho * shaken(points / rho, 0.5, generator), labels)
            errors.append(required(float(gaps(elsewhere)[step].mean()) > CLEAR))
    return worst(errors)


# --------------------------------------------------------------------------------------------------- the checks


@check(
    "Graf et al., proof of Theorem (SC), Jensen",
    "Σ_j e^{s_ij} ≥ (l−1) e^{mean s_ij} over an anchor's positives, equal iff all these s_ij are equal",
    tolerance=1e-12,
)
@one_thread()
def supcon_jensen_over_positives(generator: torch.Generator) -> float:
    """(0) ≥ (1) within ℓ_i; (0) summed over all batches is the loss."""
    errors = [measure(0, equal_positives, generator)]
    for points, labels, b in itertools.islice(free_points(generator), 0, None, 9):
        whole = float(all_batches_loss(points, labels, b))
        errors.append(float(values(every_batch(points, labels, b)).sum()) / whole - 1)
    return worst(errors)


@check(
    "Graf et al., proof of Theorem (SC), Jensen",
    "Σ_k e^{s_ik} ≥ (b−l) e^{mean s_ik} over an anchor's negatives, equal iff all these s_ik are equal",
    tolerance=1e-12,
)
@one_thread()
def supcon_jensen_over_negatives(generator: torch.Generator) -> float:
    """(1) ≥ (2) within ℓ_i."""
    return measure(1, equal_negatives, generator)


@check(
    "Graf et al., proof of Theorem (SC), Jensen",
    "mean φ(Q_i − P_i) ≥ φ(mean (Q_i − P_i)) over a class in a batch, equal iff all Q_i − P_i are equal",
    tolerance=1e-12,
    conditions="φ(t) = log(l−1+(b−l)e^t), P and Q an anchor's mean s with its positives and negatives",
)
@one_thread()
def supcon_jensen_over_anchors(generator: torch.Generator) -> float:
    """(2) ≥ (3)."""
    return measure(2, equal_anchors, generator)


@check(
    "Graf et al., proof of Theorem (SC), Jensen",
    "mean φ(S_By) ≥ φ(mean S_By) over all batches with l of a class, equal iff collapsed at equal angles",
    tolerance=1e-12,
    conditions="n ≥ 2, b ≥ 3; S_By the mean of Q_i − P_i over the class in the batch",
)
@one_thread()
def supcon_jensen_over_batches(generator: torch.Generator) -> float:
    """(3) ≥ (4); equal angles whose vectors do not sum to 0 are enough; collapse alone, or equal means, are not."""
    errors = [worst_violation([lost(every_batch(*inputs))[3] for inputs in free_points(generator)])]
    for (k, n, b), rho in itertools.product(SUMS, RADII):
        labels = torch.arange(k).repeat(n)
        (frame,) = frames(generator, k)
        zeta = rho * at_equal_angles(k, frame, 0.4)
        errors.append(lost(every_batch(zeta[labels], labels, b))[3])
        errors.append(
            required(counted_gap(zeta[labels], labels) - gap_with_centred_means(zeta[labels], labels) > CLEAR)
        )
        apart = rho * shaken(zeta[labels] / rho, 0.5, generator)
        errors.append(required(lost(every_batch(apart, labels, b))[3] > CLEAR))
        if k > 2:  # two classes have one angle
            bent = zeta.clone()
            bent[0] = rho * unit(zeta[:2].sum(0))
            errors.append(required(lost(every_batch(bent[labels], labels, b))[3] > CLEAR))
    return worst(errors)


@check(
    "Graf et al., proof of Theorem (SC)",
    "over all batches with l of a class, mean S = mean_y [mean_{k≠y} ⟨μ_y, μ_k⟩ − (n‖μ_y‖² + ρ²)/(n+1)], any l < b",
    tolerance=1e-12,
)
@one_thread()
def supcon_batches_average_to_class_means(generator: torch.Generator) -> float:
    """(5) against counting, for each l; a whole batch of one class has no negatives, and only the second part."""
    errors = []
    for (k, n, b), rho in itertools.product((*SUMS, (2, 1, 4), (2, 4, 3)), RADII):
        labels = torch.arange(k).repeat(n)
        points = rho * on_sphere(generator, k * n, 3)
        on = every_batch(points, labels, b)
        found = mean_gap(on)
        expected = counted_gap(points, labels)
        errors += [float(found[on.members == size].mean()) - expected for size in range(2, b)]
        squares = class_means(points, labels).square().sum(1)
        errors.append(float(found[on.members == b].mean() + (n * squares.mean() + rho**2) / (n + 1)))
    return worst(errors)


@check(
    "Graf et al., proof of Theorem (SC)",
    "Σ_{k≠l} ⟨μ_k, μ_l⟩ = ‖Σ_k μ_k‖² − Σ_k ‖μ_k‖² ≥ −Σ_k ‖μ_k‖², equal iff the class means sum to 0",
    tolerance=1e-12,
)
@one_thread()
def supcon_means_sum(generator: torch.Generator) -> float:
    """(6): the identity by pairs, the mean gap before and after, and means that sum to 0 with nothing else in place."""
    errors, slacks = [], []
    for points, labels, _ in free_points(generator):
        means = class_means(points, labels)
        k = len(means)
        pairs = math.fsum(float(means[i] @ means[j]) for i, j in itertools.permutations(range(k), 2))
        errors.append(pairs - float(means.sum(0).square().sum() - means.square().sum()))
        slack = counted_gap(points, labels) - gap_with_centred_means(points, labels)
        errors.append(slack - float(means.sum(0).square().sum()) / (k * (k - 1)))
        slacks.append(slack)
    for (k, n, b), rho in itertools.product(SUMS, RADII):
        labels = torch.arange(k).repeat(n)
        points = rho * rotated_classes(k, n, generator)
        errors.append(counted_gap(points, labels) - gap_with_centred_means(points, labels))
        errors.append(required(gap_with_centred_means(points, labels) - gap_at_collapse(points, labels) > CLEAR))
        errors.append(required(lost(every_batch(points, labels, b))[3] > CLEAR))
        shifted = rho * unit(points / rho + 0.5 * on_sphere(generator, 1, 4))
        errors.append(required(counted_gap(shifted, labels) - gap_with_centred_means(shifted, labels) > CLEAR))
    return worst(errors) + worst_violation(slacks)


@check(
    "Graf et al., proof of Theorem (SC), Cauchy–Schwarz",
    "‖μ_k‖ ≤ ρ, so the mean of S over all batches is ≥ −Kρ²/(K−1) if Σμ = 0; equal iff the classes collapse",
    tolerance=1e-12,
)
@one_thread()
def supcon_class_means_are_inside(generator: torch.Generator) -> float:
    """(7): collapsed to random points, which do not sum to 0 and are at unequal angles; and points apart."""
    errors, slacks = [], []
    for points, labels, _ in free_points(generator):
        slacks.append(gap_with_centred_means(points, labels) - gap_at_collapse(points, labels))
    for (k, n, b), rho in itertools.product(SUMS, RADII):
        labels = torch.arange(k).repeat(n)
        points = rho * on_sphere(generator, k, 4)[labels]
        errors.append(gap_with_centred_means(points, labels) - gap_at_collapse(points, labels))
        errors.append(required(counted_gap(points, labels) - gap_with_centred_means(points, labels) > CLEAR))
        if k > 2:  # two classes have one angle
            errors.append(required(lost(every_batch(points, labels, b))[3] > CLEAR))
        apart = rho * shaken(points / rho, 0.3, generator)
        errors.append(required(gap_with_centred_means(apart, labels) - gap_at_collapse(apart, labels) > CLEAR))
    return worst(errors) + worst_violation(slacks)


@check(
    "Graf et al., Proof Idea (SC)",
    "all equality conditions hold iff (S1), (S2), (S3) and collapse do; the gaps sum to L_SC − bound",
    tolerance=1e-12,
)
@one_thread()
def supcon_chain_is_the_simplex(generator: torch.Generator) -> float:
    """L_SC from step to step down to the bound; relative to it. No gap at the simplex; off it the condition's own."""
    errors = []
    for (k, n, b), rho in itertools.product(SUMS, RADII):
        labels, bound = torch.arange(k).repeat(n), all_batches_bound(k, n, b, rho)
        zeta = turned(k, k, generator)
        (frame,) = frames(generator, k)
        places = [
            (zeta[labels], set()),
            (at_equal_angles(k, frame, 0.4)[labels], {4}),  # not S1: the sum of the means, (6)
            (with_one_apart(zeta[labels], generator), {0, 3, 5}),  # not collapsed: (1), (4), (7)
        ]
        if k > 2:
            bent = torch.cat([unit(zeta[:2].sum(0, keepdim=True)), zeta[1:]])
            places.append((bent[labels], {3}))  # not S3: (4)
        for points, opened in places:
            found = descent(rho * points, labels, b)
            steps = [above - below for above, below in itertools.pairwise(found)]
            scale = abs(bound)
            errors += [found[0] / float(all_batches_loss(rho * points, labels, b)) - 1, found[-1] / bound - 1]
            errors.append(worst_violation(steps) / scale)
            errors.append(required(all(steps[i] > CLEAR * scale for i in opened)))
            errors += [] if opened else [step / scale for step in steps]
    return worst(errors)


def descent(points: Tensor, labels: Tensor, batch_size: int) -> list[float]:
    """L_SC, and what it is at least after (1), (2), (3), (4), (6) and (7)."""
    on = every_batch(points, labels, batch_size)
    k, n = int(labels.max()) + 1, len(labels) // (int(labels.max()) + 1)
    by_batch = [values(on), over_positives(on), over_negatives(on), over_anchors(on), over_batches(on)]
    by_means = [gap_with_centred_means(points, labels), gap_at_collapse(points, labels)]
    return [*(float(x.sum()) for x in by_batch), *(total(k, n, batch_size, gap) for gap in by_means)]
