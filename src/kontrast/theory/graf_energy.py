r"""Graf et al., slides, "Promoting max. spaced classifier weights on the sphere": the energy of Liu et al. 2018.

Directions ŵ_1 … ŵ_K of a classifier's weights, u_ij = ‖ŵ_i − ŵ_j‖², f_s(u) = u^{−s/2}, f_0(u) = −½ log u:

    (1)  E_s  = 1/(K(K−1)) Σ_{i≠j} f_s(u_ij)
    (2)  mean over i≠j of u_ij = (2K² − 2‖Σ_i ŵ_i‖²)/(K(K−1)) ≤ 2K/(K−1),   equal iff Σ_i ŵ_i = 0
    (3)  E_s  ≥ f_s(mean u_ij) ≥ f_s(2K/(K−1)),   f_s strictly convex and falling: equal iff moreover all u_ij are equal
    (4)  L_CE + λ‖W‖² + μE_s ≥ (the minimum of L_CE + λ‖W‖²) + μ f_s(2K/(K−1))

so E_s is smallest exactly at a regular simplex centred at the origin, where cross-entropy has its weights too; both
bounds of (4) are then reached at once. There is room for the simplex iff dim ≥ K − 1.

(1) as a function is that of the loss (`kontrast.energy`), f_s(2K/(K−1)) is `geometry.bounds.hyperspherical_energy`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial

import torch

from kontrast import losses
from kontrast.energy import energy
from kontrast.geometry.bounds import hyperspherical_energy as smallest_energy
from kontrast.geometry.bounds import regularised_cross_entropy as regularised_minimum
from kontrast.theory._inputs import NOISES, add_noise, normal, random_simplex, seed, worst, worst_violation
from kontrast.theory.check import check, required
from kontrast.theory.free_points import free_points, minimise_on_sphere, simplex_conditions, slope

POWERS = (0.0, 1.0, 2.0, 3.5)
SIZES = ((2, 2), (3, 2), (4, 6), (10, 9), (10, 20))  # weights, dimensions; dim ≥ K − 1
SOURCE = "Graf et al., Background (Liu et al. 2018)"


@check(SOURCE, "E_s of weights ≥ (2K/(K−1))^{−s/2} (s = 0: −½ log), equal iff their directions are a simplex")
def energy_is_above_the_simplex(generator: torch.Generator) -> Iterator[float]:
    """The value at the simplex, with weights of any lengths; and above it, also where one condition alone holds."""
    errors, slacks = [], []
    for (k, d), s in itertools.product(SIZES, POWERS):
        lowest, zeta = smallest_energy(k, s), random_simplex(k, d, generator)
        lengths = 0.1 + torch.rand(k, 1, dtype=torch.float64, generator=generator)
        errors.append(float(energy(lengths * zeta, s)) - lowest)
        result = [float(energy(add_noise(zeta, noise, generator), s)) - lowest for noise in NOISES]
        slacks += result
        if k > 2:  # two weights may be opposite again by chance
            corner = torch.eye(k, max(d, k), dtype=torch.float64)  # equal distances, but no mean of 0
            pairs = normal(generator, k // 2, d)
            centred = torch.cat([pairs, -pairs, zeta])  # mean 0, but unequal distances
            off_corner = float(energy(corner, s)) - lowest
            off_centred = float(energy(centred, s)) - smallest_energy(len(centred), s)
            errors.append(required(min(off_corner, off_centred, *result[:3]) > 1e-6))
    yield worst(errors) + worst_violation(slacks)


@check(SOURCE, "directions that minimise E_s form a regular simplex", tolerance=1e-9, conditions="dim ≥ K − 1")
def energy_finds_the_simplex(generator: torch.Generator) -> Iterator[float]:
    """Minimised from random directions: value, S1–S3; the slope at a simplex vanishes. Without room: an octahedron."""
    for (k, d), s in ((3, 2), 2.0), ((4, 6), 0.0), ((10, 9), 1.0):
        of_power = partial(energy, power=s)
        points, _ = minimise_on_sphere(of_power, k, d, radius=1.0, starts=1, seed=seed(generator))
        yield float(energy(points, s)) - smallest_energy(k, s)
        yield from simplex_conditions(points)
        yield slope(of_power, random_simplex(k, d, generator))
    crowded, _ = minimise_on_sphere(lambda w: energy(w, 1.0), 6, 3, radius=1.0, starts=1, seed=seed(generator))
    octahedron = (12 / 2**0.5 + 3 / 2) / 15  # twelve edges of length √2, three diagonals of length 2
    yield float(energy(crowded, 1.0)) - octahedron
    yield required(octahedron > smallest_energy(6, 1.0) + 0.01)


@check(
    SOURCE,
    "L_CE + λ‖W‖² + μE_s is smallest at the same simplices as without μ, by μ(2K/(K−1))^{−s/2} higher",
    tolerance=1e-9,
)
def energy_penalty_keeps_the_minimum(generator: torch.Generator) -> Iterator[float]:
    """Gradient descent on points and weights: deviations from the aligned simplices, from r_W and from the value."""
    k, d, penalty, mu, s = 4, 3, 0.05, 0.5, 2.0
    loss = losses.CrossEntropyLoss(k, d, penalty, energy_penalty=mu, energy_power=s)
    run = free_points(loss, k, 3, d, seed=seed(generator), record_every=1000)
    assert run.weight_deviation is not None
    yield run.deviation.largest
    yield run.weight_deviation.largest
    yield run.loss - regularised_minimum(k, 1.0, penalty) - mu * smallest_energy(k, s)
