r"""Batches with different labels have different minimisers, and their sum has the simplex.

Graf et al.'s SC loss, without a temperature: of one batch, and the sum over all batches. A batch B of size b is a
multiset drawn from N points; a point may be in it twice. l_i is how many elements of B have i's class, i and copies of
it among them; elements alone in their class (l_i = 1) have no term:

    (1)  ℓ(Z; B) = Σ_{i∈B, l_i>1} [ log Σ_{k∈B\{i}} e^{⟨z_i, z_k⟩} − (1/(l_i−1)) Σ_{j∈B_{y_i}\{i}} ⟨z_i, z_j⟩ ]
    (2)  L_SC(Z) = Σ_B ℓ(Z; B)

With m_i copies of point i in B, all batches at once are a matrix [batches, N] times e^{⟨z, z⟩}:

    (3)  L_SC = Σ_B Σ_{i: l_i>1} m_i log( Σ_k (m_k − δ_ik) e^{⟨z_i, z_k⟩} ) − Σ_ij c_ij ⟨z_i, z_j⟩
         c_ij = Σ_{B: l_i>1} m_i (m_j − δ_ij)/(l_i−1)   where y_i = y_j, else 0

Both depend on the labels of B only through how many there are of each class: a partition of b into at most K parts,
m_1 ≥ … ≥ m_K ≥ 0. K = 3, b = 9 has 12. With each class at one point of the sphere of radius ρ, and different classes at
a squared distance 2g,

    (4)  ℓ = Σ_{k: m_k>1} m_k log( m_k − 1 + (b − m_k) e^{−g} )

which is the value at the regular simplex for g = Kρ²/(K−1), and a bound that no simplex of three or more reaches for
g = 2ρ², every negative opposite. Minimised alone over b points of its own, each configuration goes elsewhere:

- two classes, or lonely elements beside one: opposite, with (4) at g = 2ρ²;
- the balanced one: the regular simplex, with (4) at g = Kρ²/(K−1);
- the others: collapsed classes, the large ones further apart than the small ones.

So no points minimise every term: (8, 1, 0), (8, 0, 1) and (0, 8, 1) want three pairs opposite at once. But the sum over
all batches of balanced points is least at the regular simplex. (Graf et al., "Theory: Challenges" and their Theorem.)

Deviates: the authors run 2,000 steps of gradient descent at rate 0.1 from one start; here it is the best of several
starts, by L-BFGS, so that a minimum is one to the last digits. Their temperature of 1 is ρ = 1.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from kontrast import simplex
from kontrast.checks import integer_labels, number, rows, whole_number
from kontrast.sphere import unit
from kontrast.theory.free_points import Objective, class_means, minimise_on_sphere

MOST_ENTRIES = 30_000_000  # of the matrix of (3): 240 MB

# ------------------------------------------------------------------------------------------------------ the losses


def batch_loss(points: Tensor, labels: Tensor) -> Tensor:
    """(1) of a batch ``[b, D]`` with ``labels [b]``; the points are taken as they are, and there is no temperature.

    >>> z = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> batch_loss(z, torch.tensor([0, 0, 1]))  # 2 (log(e + 1) − 1)
    tensor(0.6265)
    """
    s = points @ points.T
    itself = torch.eye(len(labels), dtype=torch.bool)
    positive = (labels[:, None] == labels[None]) & ~itself
    count = positive.sum(1)
    log_d = s.masked_fill(itself, -torch.inf).logsumexp(1)
    attraction = (s * positive).sum(1) / count.clamp(min=1)
    return ((log_d - attraction) * (count > 0)).sum()  # (1)


def all_batches_loss(points: Tensor, labels: Tensor, batch_size: int) -> Tensor:
    """(2): the sum over every multiset of ``batch_size`` from these points, exactly, in float64.

    Args:
        points: ``[N, D]``; taken as they are.
        labels: ``[N]``, integers.
        batch_size: b.

    Returns:
        The sum, a scalar with a gradient.

    Raises:
        ValueError: A shape or type is wrong, or there are too many batches to enumerate.

    >>> from kontrast import simplex
    >>> z = simplex.vertices(3, dtype=torch.float64).repeat(3, 1)
    >>> all_batches_loss(z, torch.arange(3).repeat(3), batch_size=4)
    tensor(908.1147, dtype=torch.float64)
    """
    z = rows("points", points)
    return all_batches(integer_labels("labels", labels, len(z), z.device), batch_size)(z)


def all_batches(labels: Tensor, batch_size: int) -> Callable[[Tensor], Tensor]:
    """(3) as a function of the points; whatever does not depend on them is computed once."""
    n, b = len(labels), whole_number("batch_size", batch_size, least=2)
    if (count := math.comb(n + b - 1, b)) * n > MOST_ENTRIES:
        raise ValueError(
            f"batch_size={b}: must be smaller, because there are {count:,} batches of {b} from {n} points. Use fewer "
            "points or smaller batches; the sum at the simplex is geometry.bounds.supcon_all_batches"
        )
    batches = itertools.chain.from_iterable(itertools.combinations_with_replacement(range(n), b))
    index = torch.from_numpy(np.fromiter(batches, dtype=np.int64, count=count * b).reshape(count, b))
    m = torch.zeros(count, n, dtype=torch.float64).scatter_add_(1, index, torch.ones(count, b, dtype=torch.float64))
    same = (labels[:, None] == labels[None]).double()
    others = m @ same - 1  # l_i − 1
    anchor = m * (others > 0)
    copies = (m - 1).clamp(min=0)
    share = anchor / others.clamp(min=1)
    c = (share.T @ m - torch.diag(share.sum(0))) * same

    def loss(points: Tensor) -> Tensor:
        z = points.double()
        s = z @ z.T
        shift = s.detach().amax()
        e = (s - shift).exp()
        self_terms = e.diagonal()
        d = m @ (e - torch.diag(self_terms)) + copies * self_terms
        return (anchor * (torch.where(anchor > 0, d, 1.0).log() + shift)).sum() - (c * s).sum()  # (3)

    return loss


# ------------------------------------------------------------------------------------------------------ the minima


@dataclass(frozen=True, eq=False)
class Minimiser:
    """The minimum of the loss of a batch, or of all batches.

    Attributes:
        counts: Points of each class.
        points: The points, ``[N, D]``.
        labels: Their labels, ``[N]``.
        value: The loss.
        slope: The largest gradient of a point along the sphere, per term of the loss: 0 at a minimum.
        simplex_value: The loss with each class at its vertex of the simplex; None if there is no room for it.

    >>> at = minimise_configuration((2, 2, 0))
    >>> round(at.value, 4), round(at.simplex_value, 4)  # two classes go to opposite points
    (0.9582, 1.4759)
    """

    counts: tuple[int, ...]
    points: Tensor
    labels: Tensor
    value: float
    slope: float
    simplex_value: float | None

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
        """The value at the simplex − this value: 0 where the simplex is a minimiser; nan if there is no room for it."""
        return math.nan if self.simplex_value is None else self.simplex_value - self.value

    @property
    def is_simplex(self) -> bool:
        """Whether the simplex is a minimiser, to a millionth of the value."""
        return self.simplex_gap <= 1e-6 * abs(self.value)


@dataclass(frozen=True)
class LabelConfigurations:
    """The minimiser of each label configuration, and that of the sum over all batches.

    Attributes:
        num_classes: K.
        batch_size: b.
        radius: ρ.
        configurations: The minimum of each configuration.
        batches: How many of all batches have each configuration, in any order of the classes.
        all_batches: The minimum of the sum.

    >>> label_configurations(2, batch_size=2, per_class=1).batches
    (2, 1)
    """

    num_classes: int
    batch_size: int
    radius: float
    configurations: tuple[Minimiser, ...]
    batches: tuple[int, ...]
    all_batches: Minimiser


def configurations(num_classes: int, batch_size: int) -> list[tuple[int, ...]]:
    """The partitions of ``batch_size`` into at most ``num_classes`` parts, with the zeros.

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
    """(4): a batch whose classes are collapsed, ⟨ζ_k, ζ_k⟩ − ⟨ζ_k, ζ_l⟩ = ``gap`` for every two of them.

    >>> round(configuration_value((3, 3, 3), gap=1.5), 4)  # the regular simplex of three on the circle
    10.8505
    """
    b = sum(counts)
    return math.fsum(m * math.log(m - 1 + (b - m) * math.exp(-gap)) for m in counts if m > 1)


def minimise_configuration(
    counts: Sequence[int], dim: int = 2, *, radius: float = 1.0, starts: int = 6, seed: int = 0
) -> Minimiser:
    """Minimise the loss of one batch in which every element is a free point.

    Args:
        counts: How many elements there are of each class.
        dim: The dimensions of the points.
        radius: ρ.
        starts: How many random starts; the best minimum is taken.
        seed: The seed of the starts.

    Returns:
        The minimum.

    Raises:
        ValueError: An argument is out of range.

    >>> at = minimise_configuration((3, 3, 3))
    >>> at.is_simplex, round(float(at.cosines[0, 1]), 4)
    (True, -0.5)
    >>> at = minimise_configuration((5, 2, 2))
    >>> at.is_simplex, round(float(at.cosines[0, 1]), 4), round(float(at.cosines[1, 2]), 4)
    (False, -0.6299, -0.2065)
    """
    sizes = tuple(whole_number("counts", m, least=0) for m in counts)
    b = whole_number("sum(counts)", sum(sizes), least=2)
    labels = _labels(sizes)
    return _minimise(lambda z: batch_loss(z, labels), sizes, dim, radius, starts, seed, terms=b)


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
    """Minimise the sum over all batches from ``per_class`` free points of each class.

    Args:
        num_classes: K.
        per_class: Points of each class.
        batch_size: b.
        dim: The dimensions of the points.
        radius: ρ.
        starts: How many random starts; the best minimum is taken.
        seed: The seed of the starts.

    Returns:
        The minimum.

    Raises:
        ValueError: An argument is out of range, or there are too many batches to enumerate.

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
    """Minimise every label configuration, and the sum over all batches.

    Args:
        num_classes: K.
        batch_size: b.
        per_class: Points of each class, for the sum.
        dim: The dimensions of the points.
        radius: ρ.
        seed: The seed of the starts.

    Returns:
        All minima, with the number of batches of each configuration.

    Raises:
        ValueError: An argument is out of range, or there are too many batches to enumerate.

    >>> study = label_configurations(3, batch_size=4, per_class=2)
    >>> [(at.counts, abs(round(at.simplex_gap, 4))) for at in study.configurations]
    [((4, 0, 0), 0.0), ((3, 1, 0), 0.1209), ((2, 2, 0), 0.5177), ((2, 1, 1), 0.2589)]
    >>> study.batches, study.all_batches.is_simplex
    ((15, 48, 27, 36), True)
    """
    each = configurations(num_classes, batch_size)
    n = whole_number("per_class", per_class, least=1)

    def count(counts: tuple[int, ...]) -> int:
        """How many of all batches have these counts, in any order of the classes."""
        orders = math.factorial(len(counts)) // math.prod(math.factorial(x) for x in Counter(counts).values())
        return orders * math.prod(math.comb(n + m - 1, m) for m in counts)

    return LabelConfigurations(
        num_classes=num_classes,
        batch_size=batch_size,
        radius=radius,
        configurations=tuple(minimise_configuration(counts, dim, radius=radius, seed=seed) for counts in each),
        batches=tuple(map(count, each)),
        all_batches=minimise_all_batches(num_classes, n, batch_size, dim, radius=radius, seed=seed),
    )


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
