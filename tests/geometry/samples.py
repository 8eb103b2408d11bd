"""What the tests of the measures share: random rows, clusters, rotations, and plain loops in Python floats."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

# float64 sums of some hundred terms of size one, in whatever order.
EXACT = {"rtol": 1e-10, "atol": 1e-12}
Row = Sequence[float]


def rows(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    """Random rows of no particular length."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def unit(x: Tensor) -> Tensor:
    """Each row divided by its length, one at a time."""
    return torch.tensor([[v / math.hypot(*row) for v in row] for row in x.tolist()], dtype=torch.float64)


def sphere(n: int, dim: int, seed: int = 0) -> Tensor:
    """Points spread uniformly over the sphere."""
    x = rows(n, dim, seed=seed)
    return x / x.norm(dim=1, keepdim=True)


def clusters(n: int, dim: int, classes: int, *, seed: int = 0, spread: float = 0.5) -> tuple[Tensor, Tensor]:
    """Rows about a random centre for each class, and labels of unequal shares that all occur twice at least."""
    generator = torch.Generator().manual_seed(seed + 1000)
    centres = torch.randn(classes, dim, generator=generator, dtype=torch.float64)
    shares = torch.arange(1, classes + 1, dtype=torch.float64)
    drawn = torch.multinomial(shares, n - 2 * classes, replacement=True, generator=generator)
    labels = torch.cat([torch.arange(classes).repeat(2), drawn])[torch.randperm(n, generator=generator)]
    return centres[labels] + spread * rows(n, dim, seed=seed), labels


def turned(x: Tensor, seed: int = 7) -> Tensor:
    """The same rows under a random rotation."""
    return x @ torch.linalg.qr(rows(x.shape[1], x.shape[1], seed=seed)).Q.to(x.dtype)


def dot(a: Row, b: Row) -> float:
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def distance(a: Row, b: Row) -> float:
    return math.sqrt(math.fsum((x - y) ** 2 for x, y in zip(a, b, strict=True)))


def average(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def deviation(values: Sequence[float]) -> float:
    """The standard deviation of all there is."""
    middle = average(values)
    return math.sqrt(average([(v - middle) ** 2 for v in values]))


def leave_one_out(values: Sequence[float]) -> float:
    """The jackknife's error, from the statistic without each sample in turn."""
    n, middle = len(values), average(values)
    return math.sqrt((n - 1) / n * math.fsum((v - middle) ** 2 for v in values))


def rms(values: Sequence[float]) -> float:
    return math.sqrt(average([v * v for v in values]))


def anchors(
    query: Tensor, key: Tensor, negatives: Tensor | None = None, own_index: Sequence[int] | None = None
) -> list[tuple[float, list[float]]]:
    """Of each anchor the similarity to its positive and those to its negatives; rows are taken as they are."""
    q, k = query.tolist(), key.tolist()
    candidates = k if negatives is None else negatives.tolist()
    own = list(range(len(q))) if negatives is None else own_index
    return [
        (dot(q[i], k[i]), [dot(q[i], c) for j, c in enumerate(candidates) if own is None or j != int(own[i])])
        for i in range(len(q))
    ]


def keyed(form: str, n: int, dim: int = 5, *, seed: int = 0) -> dict[str, Tensor]:
    """Queries with keys in the three forms: the batch's own, a queue, a memory bank with the anchors in it."""
    inputs = {"query": rows(n, dim, seed=seed), "key": rows(n, dim, seed=seed + 1)}
    if form != "batch":
        inputs["negatives"] = rows(n + 9, dim, seed=seed + 2)
    if form == "bank":
        inputs["own_index"] = torch.arange(n).flip(0)
    return inputs


def on_sphere(inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    return {k: unit(v) if v.is_floating_point() else v for k, v in inputs.items()}


FORMS = ("batch", "queue", "bank")
