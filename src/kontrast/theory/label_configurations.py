r"""Batches with different labels have different minimisers, and their sum has the simplex.

One batch's term ℓ(Z; B) of Graf et al.'s SC loss, and the sum L_SC over all multiset batches of size b (`batch_loss`,
`all_batches_loss`), depend on the labels of B only through how many of each class there are: a partition of b into at
most K parts, m_1 ≥ … ≥ m_K ≥ 0. K = 3, b = 9 has 12. With each class at one point of the sphere of radius ρ, and
different classes at a squared distance 2g,

    (1)  ℓ = Σ_{k: m_k>1} m_k log( m_k − 1 + (b − m_k) e^{−g} )

which is the value at the regular simplex for g = Kρ²/(K−1), and a bound that no simplex of three or more reaches for
g = 2ρ², every negative opposite. Minimised alone over b points of its own, each configuration goes elsewhere:

- two classes, or lonely elements beside one: opposite, with (1) at g = 2ρ²;
- the balanced one: the regular simplex, with (1) at g = Kρ²/(K−1);
- the others: collapsed classes, the large ones further apart than the small ones.

So no points minimise every term: (8, 1, 0), (8, 0, 1) and (0, 8, 1) want three pairs opposite at once. But the sum over
all batches of balanced points is least at the regular simplex. (Graf et al., "Theory: Challenges" and their Theorem.)

Deviates: the authors run 2,000 steps of gradient descent at rate 0.1 from one start; here it is the best of several
starts, by L-BFGS, so that a minimum is one to the last digits. Their temperature of 1 is ρ = 1.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from kontrast import simplex
from kontrast.checks import number, whole_number
from kontrast.sphere import unit
from kontrast.theory._all_batches import all_batches, batch_loss
from kontrast.theory._all_batches import all_batches_loss as all_batches_loss
from kontrast.theory._deviation import class_means
from kontrast.theory._sphere import Objective, minimise_on_sphere


@dataclass(frozen=True, eq=False)
class Minimiser:
    """Where the loss of a batch, or of all batches, is least."""

    counts: tuple[int, ...]  # points of each class
    points: Tensor  # [N, D]
    labels: Tensor  # [N]
    value: float
    slope: float  # largest gradient of a point along the sphere, per term of the loss: 0 at a minimum
    simplex_value: float | None  # with each class at its vertex of the regular simplex; None if there is no room for it

    @property
    def cosines(self) -> Tensor:
        """Between the class means, ``[K, K]``; nan where a class has no points."""
        means = unit(class_means(self.points, self.labels, len(self.counts)))
        return means @ means.T

    @property
    def collapse(self) -> float:
        """The largest distance of a point from its class mean."""
        means = class_means(self.points, self.labels, len(self.counts))
        return float((self.points - means[self.labels]).norm(dim=1).max())

    @property
    def simplex_gap(self) -> float:
        """How much higher the simplex stands: 0 where it is a minimiser; nan if there is no room for it."""
        return math.nan if self.simplex_value is None else self.simplex_value - self.value

    @property
    def is_simplex(self) -> bool:
        """Whether the simplex is a minimiser, to a millionth of the value."""
        return self.simplex_gap <= 1e-6 * abs(self.value)


@dataclass(frozen=True)
class LabelConfigurations:
    """Each label configuration's minimiser, beside that of the sum over all batches."""

    num_classes: int
    batch_size: int
    radius: float
    configurations: tuple[Minimiser, ...]
    batches: tuple[int, ...]  # how many of all batches have each configuration, whichever class is which
    all_batches: Minimiser


def configurations(num_classes: int, batch_size: int) -> list[tuple[int, ...]]:
    """The partitions of ``batch_size`` into at most ``num_classes`` parts, zeros written out.

    >>> configurations(3, 4)
    [(4, 0, 0), (3, 1, 0), (2, 2, 0), (2, 1, 1)]
    >>> len(configurations(3, 9))
    12
    """
    k, b = whole_number("num_classes", num_classes, least=1), whole_number("batch_size", batch_size, least=1)

    def parts(rest: int, classes: int, largest: int) -> list[tuple[int, ...]]:
        if classes == 1:
            return [(rest,)] if rest <= largest else []
        first = range(min(rest, largest), -1, -1)
        return [(size, *others) for size in first for others in parts(rest - size, classes - 1, size)]

    return parts(b, k, b)


def configuration_value(counts: Sequence[int], gap: float) -> float:
    """(1): a batch whose classes are collapsed, ⟨ζ_k, ζ_k⟩ − ⟨ζ_k, ζ_l⟩ = ``gap`` for every two of them.

    >>> round(configuration_value((3, 3, 3), gap=1.5), 4)  # the regular simplex of three on the circle
    10.8505
    """
    b = sum(counts)
    return math.fsum(m * math.log(m - 1 + (b - m) * math.exp(-gap)) for m in counts if m > 1)


def minimise_configuration(
    counts: Sequence[int], dim: int = 2, *, radius: float = 1.0, starts: int = 6, seed: int = 0
) -> Minimiser:
    """The minimiser of one batch with ``counts`` of each class, every element a free point.

    >>> at = minimise_configuration((3, 3, 3))
    >>> at.is_simplex, round(float(at.cosines[0, 1]), 4)
    (True, -0.5)
    >>> at = minimise_configuration((5, 2, 2))
    >>> at.is_simplex, round(float(at.cosines[0, 1]), 4), round(float(at.cosines[1, 2]), 4)
    (False, -0.6299, -0.2065)
    """
    each = tuple(whole_number("an entry of counts", m, least=0) for m in counts)
    b = whole_number("the sum of counts", sum(each), least=2)
    labels = _labels(each)
    return _minimise(lambda z: batch_loss(z, labels), each, dim, radius, starts, seed, terms=b)


def minimise_all_batches(
    num_classes: int,
    per_class: int,
    batch_size: int,
    dim: int,
    *,
    radius: float = 1.0,
    starts: int = 3,
    seed: int = 0,
) -> Minimiser:
    """The minimiser of the sum over all batches from ``per_class`` free points of each class.

    >>> minimise_all_batches(3, per_class=2, batch_size=4, dim=2).is_simplex
    True
    """
    k, n = whole_number("num_classes", num_classes, least=2), whole_number("per_class", per_class, least=1)
    loss = all_batches(_labels((n,) * k), batch_size)
    terms = batch_size * math.comb(k * n + batch_size - 1, batch_size)
    return _minimise(loss, (n,) * k, dim, radius, starts, seed, terms=terms)


def label_configurations(
    num_classes: int = 3, batch_size: int = 9, per_class: int = 3, dim: int = 2, *, radius: float = 1.0, seed: int = 0
) -> LabelConfigurations:
    """The study: the minimiser of every label configuration, and of the sum over all batches.

    >>> study = label_configurations(3, batch_size=4, per_class=2)
    >>> [(at.counts, abs(round(at.simplex_gap, 4))) for at in study.configurations]
    [((4, 0, 0), 0.0), ((3, 1, 0), 0.1209), ((2, 2, 0), 0.5177), ((2, 1, 1), 0.2589)]
    >>> study.batches, study.all_batches.is_simplex
    ((15, 48, 27, 36), True)
    """
    each = configurations(num_classes, batch_size)
    n = whole_number("per_class", per_class, least=1)
    return LabelConfigurations(
        num_classes=num_classes,
        batch_size=batch_size,
        radius=radius,
        configurations=tuple(minimise_configuration(counts, dim, radius=radius, seed=seed) for counts in each),
        batches=tuple(_orders(counts) * math.prod(math.comb(n + m - 1, m) for m in counts) for counts in each),
        all_batches=minimise_all_batches(num_classes, n, batch_size, dim, radius=radius, seed=seed),
    )


def _orders(counts: tuple[int, ...]) -> int:
    """In how many ways the classes can be told which count is theirs."""
    return math.factorial(len(counts)) // math.prod(math.factorial(x) for x in Counter(counts).values())


def _labels(counts: tuple[int, ...]) -> Tensor:
    return torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))


def _minimise(
    loss: Objective, counts: tuple[int, ...], dim: int, radius: float, starts: int, seed: int, *, terms: int
) -> Minimiser:
    d, rho = whole_number("dim", dim, least=2), number("radius", radius, above=0.0)
    labels, k = _labels(counts), len(counts)
    points, slope = minimise_on_sphere(
        lambda z: loss(z) / terms,
        len(labels),
        d,
        radius=rho,
        starts=whole_number("starts", starts, least=1),
        seed=seed,
    )
    at_simplex = None
    if 2 <= k <= d + 1:
        at_simplex = float(loss(simplex.vertices(k, d, radius=rho, dtype=torch.float64)[labels]))
    return Minimiser(counts, points, labels, float(loss(points)), slope, at_simplex)
