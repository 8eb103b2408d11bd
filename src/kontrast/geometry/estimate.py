"""Values with standard errors.

For a statistic θ of n samples, leaving out group g of G gives θ_g, and

    (1)  error² = (G−1)/G Σ_g (θ_g − θ̄)²,   θ̄ = mean of the θ_g

(the jackknife; Efron & Stein). For a mean over pairs or anchors, the measure's own file has (1) with G = n in closed
form. For all others `jackknife` leaves out a twentieth of the samples of each class at a time. The θ_g are called
replicates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import NamedTuple

import torch
from torch import Tensor

from kontrast.checks import whole_number
from kontrast.geometry._rows import as_tensor


class Estimate(NamedTuple):
    """A value and its standard error (one σ).

    Attributes:
        value: The value.
        error: Its standard error; NaN if it is not known.

    >>> print(Estimate(-3.90412, 0.00213))
    -3.9041 ± 0.0021
    """

    value: float
    error: float

    def __str__(self) -> str:
        return f"{self.value:.4f} ± {self.error:.4f}"


@dataclass(frozen=True, kw_only=True)
class Record:
    """Base of the results of measures that yield several numbers.

    Attributes:
        errors: Standard errors by field name; empty without ``with_error=True``.

    >>> from kontrast import geometry
    >>> sorted(geometry.spectrum(torch.eye(8)).scalars())
    ['effective_rank', 'explained_first', 'rank', 'stable_rank']
    """

    errors: Mapping[str, float] = field(default_factory=dict)

    def scalars(self) -> dict[str, float]:
        """Its single numbers by name, without arrays and flags."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: float(x) for name, x in values.items() if isinstance(x, int | float) and not isinstance(x, bool)}

    def estimates(self) -> dict[str, Estimate]:
        """Its single numbers with their errors (NaN where none is known)."""
        return {name: Estimate(x, self.errors.get(name, float("nan"))) for name, x in self.scalars().items()}


def mean(values: Tensor) -> Estimate:
    """The mean of independent values and its standard error.

    Args:
        values: Numbers of any shape: a tensor, an array or a list.

    Returns:
        The estimate; its error is NaN for a single value.

    >>> mean(torch.tensor([1.0, 2.0, 3.0]))
    Estimate(value=2.0, error=0.577...)
    """
    values = as_tensor(values).double().flatten()
    error = values.std() / len(values) ** 0.5 if len(values) > 1 else torch.tensor(float("nan"))
    return Estimate(float(values.mean()), float(error))


def jackknife_error(replicates: Tensor) -> Tensor:
    """The error (1) from replicates along the first dimension; NaN for fewer than two.

    Args:
        replicates: The θ_g, ``[G, …]``.

    Returns:
        The errors, ``[…]``.

    >>> jackknife_error(torch.tensor([1.0, 3.0]))  # √(1/2 · (1 + 1))
    tensor(1.)
    """
    groups = len(replicates)
    if groups < 2:
        return torch.full_like(replicates.sum(0), float("nan"))
    return ((groups - 1) / groups * (replicates - replicates.mean(0)).square().sum(0)).sqrt()


FEWEST = 3  # of fewer samples no error is known


def jackknife(
    measure: Callable[..., Record], features: Tensor, labels: Tensor | None = None, *, groups: int = 20, seed: int = 0
) -> dict[str, float]:
    """Standard errors (1) of every single number of a record.

    The measure is computed without each group in turn. A class's only sample is never left out: without it the measure
    would be another one.

    Args:
        measure: Called as ``measure(features)`` or ``measure(features, labels)``; returns a record.
        features: Rows ``[N, D]``.
        labels: Labels ``[N]``; each group then has its share of each class.
        groups: How many groups, at least 2.
        seed: The seed of the random order of rows.

    Returns:
        The error of each number by name; NaN where it cannot be known, as for fewer than 3 rows.

    Raises:
        ValueError: ``groups`` is below 2, or the measure raises it.

    >>> from kontrast import geometry
    >>> x = torch.randn(200, 4, generator=torch.Generator().manual_seed(0))
    >>> sorted(jackknife(geometry.spectrum, x))
    ['effective_rank', 'explained_first', 'rank', 'stable_rank']
    """
    groups = whole_number("groups", groups, least=2)
    n = len(features)
    # A random order, sorted by class: every group takes its share of each class.
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed)).to(features.device)
    inputs: tuple[Tensor, ...] = (features,)
    if labels is not None:
        labels = torch.as_tensor(labels)
        inputs = (features, labels)
        order = order[torch.argsort(labels[order], stable=True)]
    group = torch.empty_like(order)
    group[order] = torch.arange(n, device=order.device) % groups
    if labels is not None:
        _, index, counts = torch.unique(labels, return_inverse=True, return_counts=True)
        group[counts[index] == 1] = -1
    keeps = [group != g for g in range(groups)]
    replicates = [measure(*(x[keep] for x in inputs)).scalars() for keep in keeps if not bool(keep.all())]
    if not replicates or n < FEWEST:  # no row can be left out, or too few remain
        return dict.fromkeys(measure(*inputs).scalars(), math.nan)
    return jackknife_errors(replicates)


def anchor_mean(
    values: Tensor,
    measure: Callable[[Tensor], Tensor],
    num_rows: int,
    *,
    groups: int = 20,
    most: int = 2000,
    seed: int = 0,
) -> list[Estimate]:
    """Means of values per anchor with their errors, where anchors share their negatives.

    Rows are left out as anchors and as negatives both, of at most ``most`` of the ``num_rows`` rows; the error
    relative to the value then falls as 1/√N. If the values are of a sample of A anchors, that adds (1/A − 1/N) times
    their variance.

    Args:
        values: Values per anchor, ``[A]`` or ``[A, k]``.
        measure: ``measure(rows)`` computes the values of these rows among themselves.
        num_rows: How many rows there are in all.
        groups: How many groups are left out in turn.
        most: How many rows take part in the error.
        seed: The seed of the choice of these rows.

    Returns:
        An estimate for each of the k columns.

    >>> x = torch.arange(40.0)
    >>> (estimate,) = anchor_mean(x, lambda rows: x[rows], 40, groups=40)
    >>> round(estimate.error / mean(x).error, 4)  # nothing shared: the error of any mean
    1.0
    """
    table = values.double().view(len(values), -1)
    rows = torch.randperm(num_rows, generator=torch.Generator().manual_seed(seed))[:most]
    # Groups of one size: such values depend on how many negatives there are, and that must not tell groups apart.
    groups = min(groups, len(rows))
    rows = rows[: len(rows) // groups * groups]
    whole = measure(rows).double().view(-1, table.shape[1]).mean(0)
    size = len(rows) // groups
    rest = [torch.cat([rows[:start], rows[start + size :]]) for start in range(0, len(rows), size)]
    replicates = [measure(part).double().view(-1, table.shape[1]).mean(0) for part in rest]
    relative = jackknife_error(torch.stack(replicates)) / whole.abs() * (len(rows) / num_rows) ** 0.5
    sampling = table.var(0) * (1 / len(table) - 1 / num_rows) if len(table) > 1 else torch.full_like(whole, math.nan)
    error = ((relative * table.mean(0)).square() + sampling.clamp(min=0)).sqrt()
    return [Estimate(*pair) for pair in zip(table.mean(0).tolist(), error.tolist(), strict=True)]


def jackknife_errors(replicates: list[dict[str, float]]) -> dict[str, float]:
    """The error (1) of each number, from its replicates.

    Args:
        replicates: The numbers by name, without each group.

    Returns:
        The errors by name.

    >>> jackknife_errors([{"a": 1.0}, {"a": 3.0}])  # √(1/2 · (1 + 1))
    {'a': 1.0}
    """
    names = replicates[0]
    table = torch.tensor([[row[name] for name in names] for row in replicates], dtype=torch.float64)
    return dict(zip(names, jackknife_error(table).tolist(), strict=True))
