r"""Values with standard errors.

For a statistic θ of n samples, leaving out group g of G gives θ_g, and

    (1)  error² = (G−1)/G Σ_g (θ_g − θ̄)²,   θ̄ = mean of the θ_g

(the jackknife; Efron & Stein). Where a measure is a mean over pairs or anchors its own file has (1) with G = n in
closed form; for the others, `jackknife` leaves out a twentieth of the samples of each class at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import torch
from torch import Tensor

from kontrast.checks import whole_number
from kontrast.geometry._features import as_tensor


class Estimate(NamedTuple):
    """A value and its standard error (one σ).

    >>> print(Estimate(-3.90412, 0.00213))
    -3.9041 ± 0.0021
    """

    value: float
    error: float

    def __str__(self) -> str:
        return f"{self.value:.4f} ± {self.error:.4f}"


@dataclass(frozen=True, kw_only=True)
class Record:
    """Several numbers that one measure yields; ``errors`` are their standard errors, if asked for."""

    errors: Mapping[str, float] = field(default_factory=dict)

    def scalars(self) -> dict[str, float]:
        """Its single numbers by name (arrays are left out)."""
        found = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: float(x) for name, x in found.items() if isinstance(x, int | float) and not isinstance(x, bool)}

    def estimates(self) -> dict[str, Estimate]:
        """Its single numbers with their errors (NaN where none was asked for)."""
        return {name: Estimate(x, self.errors.get(name, float("nan"))) for name, x in self.scalars().items()}


def mean(values: Tensor) -> Estimate:
    """The mean of independent values and its standard error.

    >>> mean(torch.tensor([1.0, 2.0, 3.0]))
    Estimate(value=2.0, error=0.577...)
    """
    values = as_tensor(values).double().flatten()
    error = values.std() / len(values) ** 0.5 if len(values) > 1 else torch.tensor(float("nan"))
    return Estimate(float(values.mean()), float(error))


def from_left_out(left_out: Tensor) -> Tensor:
    """(1) from the θ_g along the first dimension; NaN if there are not two of them."""
    groups = len(left_out)
    if groups < 2:
        return torch.full_like(left_out.sum(0), float("nan"))
    return ((groups - 1) / groups * (left_out - left_out.mean(0)).square().sum(0)).sqrt()


FEWEST = 3  # of fewer samples no error is known


def jackknife(
    measure: Callable[..., Record], features: Tensor, labels: Tensor | None = None, *, groups: int = 20, seed: int = 0
) -> dict[str, float]:
    """(1) for every single number of a record: ``measure(features[, labels])`` without each group in turn.

    A class's only sample is never left out: without it the measure would be another.

    >>> from kontrast import geometry
    >>> x = torch.randn(200, 4, generator=torch.Generator().manual_seed(0))
    >>> sorted(jackknife(geometry.spectrum, x))
    ['effective_rank', 'explained_first', 'rank', 'stable_rank']
    """
    groups = whole_number("groups", groups, least=2)
    n = len(features)
    # A random order, sorted by class: every group takes its share of each class.
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed)).to(features.device)
    if labels is not None:
        labels = torch.as_tensor(labels)
        order = order[torch.argsort(labels[order], stable=True)]
    group = torch.empty_like(order)
    group[order] = torch.arange(n, device=order.device) % groups
    if labels is not None:
        _, index, counts = torch.unique(labels, return_inverse=True, return_counts=True)
        group[counts[index] == 1] = -1
    found: list[dict[str, float]] = []
    for g in range(groups):
        kept = group != g
        if not bool(kept.all()):
            rest: tuple[Any, ...] = () if labels is None else (labels[kept],)
            found.append(measure(features[kept], *rest).scalars())
    if not found or n < FEWEST:  # nothing can be left out, or what is left is another thing
        return dict.fromkeys(measure(features, *(() if labels is None else (labels,))).scalars(), math.nan)
    return errors_of(found)


def anchor_mean(
    values: Tensor,
    measure: Callable[[Tensor], Tensor],
    num_rows: int,
    *,
    groups: int = 20,
    most: int = 2000,
    seed: int = 0,
) -> list[Estimate]:
    """Means of values per anchor ``[A]`` or ``[A, k]`` with their errors, where anchors share their negatives.

    ``measure(rows)`` gives the values of some rows among themselves. Rows are left out as anchors and as negatives
    both, of at most ``most`` of the ``num_rows`` rows; the error relative to the value then falls as 1/√N. If the
    values are of a sample of A anchors, that adds (1/A − 1/N) times their variance.

    >>> x = torch.arange(40.0)
    >>> (found,) = anchor_mean(x, lambda rows: x[rows], 40, groups=40)
    >>> round(found.error / mean(x).error, 4)  # nothing shared: the error of any mean
    1.0
    """
    table = values.double().view(len(values), -1)
    kept = torch.randperm(num_rows, generator=torch.Generator().manual_seed(seed))[:most]
    # Groups of one size: such values depend on how many negatives there are, and that must not tell groups apart.
    groups = min(groups, len(kept))
    kept = kept[: len(kept) // groups * groups]
    whole = measure(kept).double().view(-1, table.shape[1]).mean(0)
    size = len(kept) // groups
    rest = [torch.cat([kept[:start], kept[start + size :]]) for start in range(0, len(kept), size)]
    left_out = [measure(rows).double().view(-1, table.shape[1]).mean(0) for rows in rest]
    relative = from_left_out(torch.stack(left_out)) / whole.abs() * (len(kept) / num_rows) ** 0.5
    sampling = table.var(0) * (1 / len(table) - 1 / num_rows) if len(table) > 1 else torch.full_like(whole, math.nan)
    error = ((relative * table.mean(0)).square() + sampling.clamp(min=0)).sqrt()
    return [Estimate(*pair) for pair in zip(table.mean(0).tolist(), error.tolist(), strict=True)]


def errors_of(left_out: list[dict[str, float]]) -> dict[str, float]:
    """(1) for each number, from its values without each group.

    >>> errors_of([{"a": 1.0}, {"a": 3.0}])  # √(1/2 · (1 + 1))
    {'a': 1.0}
    """
    names = left_out[0]
    table = torch.tensor([[row[name] for name in names] for row in left_out], dtype=torch.float64)
    return dict(zip(names, from_left_out(table).tolist(), strict=True))
