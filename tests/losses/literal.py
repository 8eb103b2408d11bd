"""What the literal loops of the tests share: rows as plain Python floats, and which similarities an equation sums over.

Nothing here is vectorised and nothing comes from the package, so that the loops hold the losses to the papers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

N, K, D = 6, 9, 5
EXACT = {"rtol": 1e-10, "atol": 1e-12}
Row = list[float]


def rows(*shape: int, seed: int) -> Tensor:
    """Random float64 rows of no particular length."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def points(*values: Sequence[float]) -> Tensor:
    """Rows given by hand, in float64."""
    return torch.tensor(values, dtype=torch.float64)


def dot(a: Row, b: Row) -> float:
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def unit(x: Tensor) -> Tensor:
    """Each row divided by its length."""
    flat = [[v / math.sqrt(dot(row, row)) for v in row] for row in x.reshape(-1, x.shape[-1]).tolist()]
    return torch.tensor(flat, dtype=torch.float64).view_as(x)


def axes(n: int) -> Tensor:
    """The unit vectors along n axes: a similarity with one is a coordinate, and so is its gradient."""
    return torch.eye(n, dtype=torch.float64)


def on_sphere(inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The same inputs with rows of length one; labels, masks and indices as they are."""
    return {k: unit(v) if v.is_floating_point() else v for k, v in inputs.items()}


def far_out(inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The same inputs with rows of length 25.5 in one orthant, whose products are within 0 … 650: Python can still take
    their exponentials, but the losses, which trust themselves up to 600, subtract a maximum."""
    return {k: 25.5 * unit(v.abs()) if v.is_floating_point() else v for k, v in inputs.items()}


def assert_values(actual: Tensor, expected: Sequence[float], *shape: int) -> None:
    """Per-anchor values against a loop's, whose anchors run in the order of ``shape`` (by default just a list)."""
    wanted = torch.tensor(expected, dtype=torch.float64).view(shape or (len(expected),))
    torch.testing.assert_close(actual.detach(), wanted, **EXACT)


def value_and_gradients(function: Callable[..., Tensor], inputs: Mapping[str, Tensor], *names: str) -> list[Tensor]:
    """A per-anchor loss, and the gradients of its sum weighted differently for each anchor."""
    mine = {k: v.detach().clone().requires_grad_(k in names) for k, v in inputs.items()}
    value = function(**mine)
    weight = torch.linspace(-1, 2, value.numel(), dtype=value.dtype).view_as(value)
    return [value.detach(), *torch.autograd.grad((value * weight).sum(), [mine[k] for k in names])]


def assert_same(actual: Sequence[Tensor], expected: Sequence[Tensor], **tolerance: float) -> None:
    for a, e in zip(actual, expected, strict=True):
        torch.testing.assert_close(a, e, **(tolerance or EXACT))


# ------------------------------------------------------------------------------------------- queries and keys

PAIR_FORMS = ("batch", "negatives", "negatives+own_index")


class Pair(NamedTuple):
    """An anchor's s_ii, and its s_ij over the negatives."""

    positive: float
    negatives: list[float]


def pair_inputs(form: str, *, seed: int = 0) -> dict[str, Tensor]:
    inputs = {"query": rows(N, D, seed=seed), "key": rows(N, D, seed=seed + 1)}
    if form != "batch":
        inputs["negatives"] = rows(K, D, seed=seed + 2)
    if form == "negatives+own_index":
        inputs["own_index"] = torch.tensor([3, 0, 8, 3, 5, 1])
    return inputs


def pairs(
    query: Tensor, key: Tensor, negatives: Tensor | None = None, own_index: Any = None, negatives_in_batch: bool = False
) -> list[Pair]:
    """The negatives are the other keys, or the rows given, without the one that is the anchor's own; or both."""
    found = []
    for i, q in enumerate(query.tolist()):
        others = []
        if negatives is None or negatives_in_batch:
            others += [c for j, c in enumerate(key.tolist()) if j != i]
        if negatives is not None:
            others += [c for j, c in enumerate(negatives.tolist()) if own_index is None or j != int(own_index[i])]
        found.append(Pair(dot(q, key.tolist()[i]), [dot(q, c) for c in others]))
    return found


# ----------------------------------------------------------------------------------------------------- groups

GROUP_FORMS = (
    "labels",
    "one view+labels",
    "two views",
    "two views+labels",
    "three views",
    "three views+labels",
    "positives",
    "two views+positives",
    "ref+labels",
    "ref+positives",
    "two views+ref+labels",
)


class Group(NamedTuple):
    """An anchor's similarities with its positives, P(i), and with its negatives, N(i)."""

    positives: list[float]
    negatives: list[float]


def group_inputs(form: str, *, seed: int = 0) -> dict[str, Tensor]:
    """One label of the batch, 5, is there once; the mask is not symmetric and leaves row 2 without a positive."""
    parts = form.split("+")
    views = {"one view": (1,), "two views": (2,), "three views": (3,)}.get(parts[0], ())
    inputs = {"embeddings": rows(N, *views, D, seed=seed)}
    if "labels" in parts:
        inputs["labels"] = torch.tensor([7, -1, 7, 5, -1, 7])
    if "ref" in parts:
        inputs["ref_emb"] = rows(K, D, seed=seed + 1)
        if "labels" in parts:
            inputs["ref_labels"] = torch.tensor([-1, 7, 7, 2, -1, 7, 2, 2, -1])
    if "positives" in parts:
        columns = K if "ref" in parts else N
        inputs["positives"] = rows(N, columns, seed=seed + 2) > 0.2
        inputs["positives"][2] = False
    return inputs


def groups(
    embeddings: Tensor,
    labels: Any = None,
    positives: Tensor | None = None,
    ref_emb: Tensor | None = None,
    ref_labels: Any = None,
) -> list[Group]:
    """Anchors in the order instance, view. Without labels the other views of an instance are its positives."""

    def is_positive(i: int, j: int) -> bool:
        if positives is not None:
            return bool(positives[i, j])
        if labels is None:
            return i == j
        return int(labels[i]) == int(labels[j] if ref_emb is None else ref_labels[j])

    views = embeddings[:, None] if embeddings.ndim == 2 else embeddings
    anchors = [(i, v, z) for i, instance in enumerate(views.tolist()) for v, z in enumerate(instance)]
    candidates = anchors if ref_emb is None else [(j, -1, c) for j, c in enumerate(ref_emb.tolist())]
    found = []
    for i, v, z in anchors:
        group = Group([], [])
        for j, w, c in candidates:
            if ref_emb is None and (i, v) == (j, w):
                continue
            (group.positives if is_positive(i, j) else group.negatives).append(dot(z, c))
        found.append(group)
    return found


# -------------------------------------------------------------------------------------------------- relations


class Relation(NamedTuple):
    """An anchor's ⟨z¹_i, z²_i⟩; then, over the candidates k other than itself, z²_k, ⟨z¹_i, z²_k⟩ and ⟨z²_i, z²_k⟩."""

    own: float
    candidates: list[Row]
    online: list[float]
    target: list[float]


def relation_inputs(form: str, *, seed: int = 0) -> dict[str, Tensor]:
    inputs = {"online": rows(N, D, seed=seed), "target": rows(N, D, seed=seed + 1)}
    return inputs | ({"queue": rows(K, D, seed=seed + 2)} if form == "queue" else {})


def relations(online: Tensor, target: Tensor, queue: Tensor | None = None) -> list[Relation]:
    found = []
    z1, z2 = online.tolist(), target.tolist()
    for i in range(len(z1)):
        others = [c for k, c in enumerate(z2) if k != i] if queue is None else queue.tolist()
        found.append(
            Relation(dot(z1[i], z2[i]), others, [dot(z1[i], c) for c in others], [dot(z2[i], c) for c in others])
        )
    return found


# -------------------------------------------------------------------------------------------------- gradients


def as_anchor(slopes: Mapping[int, float], candidates: Sequence[Row]) -> Row:
    """∂L_i/∂z_i = Σ_a (∂L_i/∂s_ia) z_a: what an anchor feels of its own term, the others held fixed."""
    return [math.fsum(slope * candidates[a][d] for a, slope in slopes.items()) for d in range(len(candidates[0]))]


def in_both_roles(slopes: Sequence[Mapping[int, float]], z: Sequence[Row]) -> list[Row]:
    """∂(Σ_i L_i)/∂z_k for a batch against itself: k as the anchor, and as a candidate of every other."""
    total = [as_anchor(mine, z) for mine in slopes]
    for i, mine in enumerate(slopes):
        for a, slope in mine.items():
            total[a] = [t + slope * x for t, x in zip(total[a], z[i], strict=True)]
    return total
