r"""Graf et al., "Dissecting Supervised Contrastive Learning": the supervised contrastive loss.

K classes with n points each on the sphere of radius ρ, no temperature. A batch B is a multiset of size b, l of a class:

    (1)  ℓ(Z; B)  = −Σ_{i∈B} (1[l_i > 1]/(l_i−1)) Σ_{j∈B_{y_i}\{i}} log( e^{⟨z_i, z_j⟩} / Σ_{k∈B\{i}} e^{⟨z_i, z_k⟩} )
    (2)  L_SC(Z)  = Σ_B ℓ(Z; B)                                                       over all multisets of size b
    (3)  Theorem:   L_SC ≥ Σ_{l=2}^{b} l·M_l·log( l − 1 + (b−l) e^{−Kρ²/(K−1)} )
         with equality iff the classes collapse to a regular simplex of radius ρ
    (4)  M_l      = K·C(n+l−1, l)·C(n(K−1)+b−l−1, b−l)                  pairs of a batch and a class with l in it
    (5)  ℓ(ζ; B)  = Σ_k m_k log( m_k − 1 + (b−m_k) e^{−g} ),  m_k > 1     collapsed classes, ⟨ζ_k, ζ_k⟩ − ⟨ζ_k, ζ_l⟩ = g
    (6)  one balanced batch, m of each class, mean over its elements:  ≥ log( m − 1 + (b−m) e^{−K/((K−1)τ)} )
    (7)  unit vectors at temperature τ are vectors of radius ρ, ρ² = 1/τ

Off the balanced labels (6) has no like: the minimiser of (1) depends on the labels in the batch ("no common minimizer
for all batch-wise contributions"), while (2) has the simplex.

(3), (4), (6) as functions are those of `geometry.bounds`, (1) and (2) those of `label_configurations`. (3) with (4) is
the formula of the authors' notebook; the slides state the theorem without the value.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter

import torch
from torch import Tensor

from kontrast import losses
from kontrast.geometry.bounds import batches_with
from kontrast.geometry.bounds import supcon_all_batches as all_batches_bound
from kontrast.geometry.bounds import supcon_batch as balanced_batch_bound
from kontrast.theory._about_simplex import NOISES, seed, shaken, turned, worst, worst_violation
from kontrast.theory._all_batches import all_batches, batch_loss
from kontrast.theory._check import check, required
from kontrast.theory._deviation import deviation
from kontrast.theory._similarities import on_sphere
from kontrast.theory._sphere import slope
from kontrast.theory._threads import one_thread
from kontrast.theory.free_points import free_points
from kontrast.theory.label_configurations import (
    all_batches_loss,
    configuration_value,
    configurations,
    minimise_all_batches,
    minimise_configuration,
)

SUMS = ((3, 3, 4, 1.0), (3, 2, 5, 1.0), (4, 2, 4, 1.3), (2, 3, 4, 2.0), (3, 3, 9, 1.0), (3, 2, 9, 1.0))  # K, n, b, ρ
BATCHES = ((2, 5), (4, 2), (4, 7), (10, 3))  # classes, elements of each
TEMPERATURES = (0.1, 0.3, 1.0)
MARGIN = 0.01

# --------------------------------------------------------------------------------------------------- the checks


def _supcon(z: Tensor, labels: Tensor, temperature: float = 1.0, reduction: str = "sum") -> float:
    """SupCon as the library has it, on rows as they are."""
    return float(losses.SupConLoss(temperature, normalize=False, reduction=reduction)(z, labels))


@check("Graf et al., definition of L_SC", "SC on radius ρ = SupCon on unit vectors at τ = 1/ρ²", tolerance=1e-12)
@one_thread()
def temperature_is_a_radius(generator: torch.Generator) -> float:
    """(1) on z/√τ against the loss on z; labels of any kind, lonely ones too; relative."""
    errors = []
    for b, d, k in ((2, 3, 1), (7, 2, 3), (20, 8, 4), (30, 16, 20)):
        labels = torch.randint(k, (b,), generator=generator)
        z = on_sphere(generator, b, d)
        for tau in (0.05, *TEMPERATURES, 10.0):
            expected = float(batch_loss(z / math.sqrt(tau), labels))
            errors.append((_supcon(z, labels, tau) - expected) / max(1.0, abs(expected)))
    return worst(errors)


@check(
    "Graf et al., notebook (value of the SC bound)",
    "M_l = K·C(n+l−1, l)·C(n(K−1)+b−l−1, b−l) pairs of a batch and a class with l in it",
    tolerance=0.0,
)
def batches_are_counted(generator: torch.Generator) -> float:
    """Against counting; sizes at random, every l from 0 to b."""
    errors = []
    for _ in range(6):
        k, n, b = (int(torch.randint(low, high, (1,), generator=generator)) for low, high in ((2, 5), (1, 4), (2, 6)))
        found: Counter[int] = Counter()
        for batch in itertools.combinations_with_replacement(range(k * n), b):
            inside = Counter(i // n for i in batch)
            found.update(inside[c] for c in range(k))
        errors += [found[size] - batches_with(k, n, b, size) for size in range(b + 1)]
    return worst(errors)


@check(
    "Graf et al., Theorem (SC)",
    "L_SC over all multiset batches is Σ_l l·M_l·log(l−1+(b−l)e^{−Kρ²/(K−1)}) at the simplex",
    tolerance=1e-12,
)
@one_thread()
def all_batches_bound_is_the_simplex(generator: torch.Generator) -> float:
    """Against the sum over every batch, with the simplex in a random position and in more dimensions; relative."""
    errors = []
    for k, n, b, rho in SUMS:
        labels = torch.arange(k).repeat(n)
        for d in (k - 1, k + 3):
            value = float(all_batches_loss(rho * turned(k, d, generator)[labels], labels, b))
            errors.append(all_batches_bound(k, n, b, rho) / value - 1)
    return worst(errors)


@check(
    "Graf et al., Theorem (SC)",
    "L_SC > Σ_l l·M_l·log(l−1+(b−l)e^{−Kρ²/(K−1)}) for points on the sphere off the simplex",
    tolerance=1e-12,
)
@one_thread()
def all_batches_are_above_their_bound(generator: torch.Generator) -> float:
    """Random points, ever closer to the simplex, their classes collapsed or not; relative to the bound."""
    slacks, clear = [], []
    for k, n, b, rho in SUMS[:4]:
        labels = torch.arange(k).repeat(n)
        loss, bound = all_batches(labels, b), all_batches_bound(k, n, b, rho)
        for d, noise in itertools.product((k, k + 3), NOISES):
            zeta = turned(k, d, generator)
            points = [shaken(zeta[labels], noise, generator) for _ in range(5)]
            points.append(shaken(zeta, noise, generator)[labels])
            found = [float(loss(rho * z)) / bound - 1 for z in points]
            slacks += found
            clear += found if k > 2 and noise >= 0.1 else []  # two classes may be opposite again by chance
    return worst_violation(slacks) + required(min(clear) > 1e-9)


@check(
    "Graf et al., Theorem (SC)",
    "points minimising L_SC over all batches form a regular simplex of radius ρ",
    tolerance=1e-10,
)
@one_thread()
def all_batches_find_the_simplex(generator: torch.Generator) -> float:
    """Minimised from random points: deviations from the bound (relative) and the simplex; the slope there vanishes."""
    errors = []
    for (k, n, b, rho), d in zip((*SUMS[:4], SUMS[4]), (2, 4, 3, 2, 2), strict=True):
        found = minimise_all_batches(k, n, b, d, radius=rho, starts=2, seed=seed(generator))
        bound = all_batches_bound(k, n, b, rho)
        errors += [found.value / bound - 1, deviation(found.points, found.labels, rho).largest]
        labels = torch.arange(k).repeat(n)
        errors.append(slope(all_batches(labels, b), rho * turned(k, d, generator)[labels]) / bound)
    return worst(errors)


@check(
    "Graf et al., Theory – Challenges",
    "no points minimise every batch: each label configuration has a minimiser of its own",
    tolerance=1e-10,
    conditions="K = 3, b = 9 on the circle",
)
@one_thread()
def batches_have_no_common_minimiser(generator: torch.Generator) -> float:
    """(5) against the loss at the simplex and against the minima that are known; the others are lower than the simplex
    by a margin, and no two arrangements of three classes are alike."""
    k, b = 3, 9
    zeta = turned(k, 2, generator)
    errors, arrangements = [], []
    for counts in configurations(k, b):
        found = minimise_configuration(counts, 2, starts=3, seed=seed(generator))
        at_simplex, opposite = configuration_value(counts, k / (k - 1)), configuration_value(counts, 2.0)
        errors.append(_supcon(zeta[found.labels], found.labels) - at_simplex)
        errors.append(required(found.value > opposite - 1e-9))
        if counts[1] <= 1 or counts[2] == 0:  # one class with others or without, or two classes
            errors.append(found.value - opposite)
        elif counts == (3, 3, 3):
            errors.append(found.value - at_simplex)
        if counts[0] != b and counts != (3, 3, 3):
            errors.append(required(at_simplex - found.value > MARGIN))
        if min(counts) > 0:
            arrangements.append(found.cosines[torch.triu_indices(k, k, 1).unbind()].sort().values)
    for one, other in itertools.combinations(arrangements, 2):
        errors.append(required(float((one - other).abs().max()) > MARGIN))
    return worst(errors)


@check(
    "Graf et al., Theorem (SC), one balanced batch",
    "SupCon ≥ log(m−1+(b−m)e^{−K/((K−1)τ)}) with m of each of K classes, and equal only at the simplex",
    tolerance=1e-12,
)
@one_thread()
def balanced_batch_bound_is_the_simplex(generator: torch.Generator) -> float:
    """The error at the simplex, and any violation off it; there it must not be reached."""
    errors, slacks, clear = [], [], []
    for (k, m), tau in itertools.product(BATCHES, TEMPERATURES):
        bound, labels = balanced_batch_bound(k, m, tau), torch.arange(k).repeat(m)
        for d, noise in itertools.product((k, k + 5), NOISES):
            zeta = turned(k, d, generator)
            errors.append(_supcon(zeta[labels], labels, tau, "mean") - bound)
            points = shaken(zeta[labels], noise, generator), shaken(zeta, noise, generator)[labels]
            found = [_supcon(z, labels, tau, "mean") - bound for z in points]
            slacks += found
            clear += found if k > 2 and noise >= 0.1 else []
    return worst(errors) + worst_violation(slacks) + required(min(clear) > 1e-9)


@check(
    "Graf et al., Theorem (SC), Numerical Simulation",
    "points minimising SC as one balanced batch form a regular simplex",
    tolerance=1e-9,
    conditions="τ from 0.3",
)
@one_thread()
def supcon_finds_the_simplex(generator: torch.Generator) -> float:
    """Gradient descent from random points, K = 4 on S² among them; deviations from simplex and bound."""
    errors = []
    for k, n, d, tau in ((4, 20, 3, 0.3), (3, 4, 2, 0.5), (10, 3, 12, 0.3)):
        run = free_points("sc", k, n, d, temperature=tau, seed=seed(generator))
        errors += [run.loss - balanced_batch_bound(k, n, tau), run.deviation.largest]
    return worst(errors)
