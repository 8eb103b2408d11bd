"""Random inputs of the checks, the losses as functions of similarities, and how errors are counted.

The papers write losses as functions of similarities, but a loss takes rows. Rows that are not normalised can have any
similarities: the anchor's row holds them, and the candidates are the axes, so that s_ia = ⟨row_i, e_a⟩ and the gradient
by the row is the gradient by the similarities.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from kontrast import simplex
from kontrast.sphere import unit

NOISES = (10.0, 1.0, 0.1, 0.01, 1e-3)  # from nearly independent of the simplex to nearly on it

# ------------------------------------------------------------------------------------------------- random inputs


def seed(generator: torch.Generator) -> int:
    """A random seed, for functions that take one instead of a generator."""
    return int(torch.randint(2**31, (1,), generator=generator))


def normal(generator: torch.Generator, *shape: int) -> Tensor:
    """Independent standard normal numbers."""
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


def random_similarities(generator: torch.Generator, *shape: int) -> Tensor:
    """Random similarities, evenly over −1 … 1."""
    return torch.rand(*shape, generator=generator, dtype=torch.float64) * 2 - 1


def on_sphere(generator: torch.Generator, *shape: int) -> Tensor:
    """Random unit rows, evenly over the sphere."""
    return unit(normal(generator, *shape))


def random_simplex(num_classes: int, dim: int, generator: torch.Generator) -> Tensor:
    """A unit simplex in a random position, ``[num_classes, dim]``."""
    return simplex.vertices(num_classes, dim, seed=seed(generator), dtype=torch.float64)


def add_noise(points: Tensor, noise: float, generator: torch.Generator) -> Tensor:
    """Unit points, each moved by ``noise`` in a random direction and put back on the sphere."""
    return unit(points + noise * unit(normal(generator, *points.shape)))


# ----------------------------------------------------------------------------- losses as functions of similarities


def as_keys(positive: Tensor, negatives: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Query, key and negatives that have the similarities ``positive [A]`` and ``negatives [A, n]``."""
    axes = torch.eye(1 + negatives.shape[1], dtype=negatives.dtype)
    return torch.cat([positive[:, None], negatives], 1), axes[:1].expand(len(positive), -1), axes[1:]


def key_slopes(loss: Callable[..., Tensor], positive: Tensor, negatives: Tensor) -> tuple[Tensor, Tensor]:
    """∂L_i/∂s_ii and ∂L_i/∂s_ij of a loss over keys, by its own backward."""
    query, key, axes = as_keys(positive, negatives)
    query.requires_grad_()
    (grad,) = torch.autograd.grad(loss(query, key, axes).sum(), query)
    return grad[:, 0], grad[:, 1:]


def group_values(loss: Callable[..., Tensor], positives: Tensor, negatives: Tensor) -> Tensor:
    """L_i of a loss over groups whose anchors have the similarities ``positives [A, p]`` and ``negatives [A, n]``."""
    rows = torch.cat([positives, negatives], 1)
    labels = [0] * positives.shape[1] + [1] * negatives.shape[1]
    axes = torch.eye(len(labels), dtype=rows.dtype)
    return loss(rows, [0] * len(rows), ref_emb=axes, ref_labels=labels)


def group_slopes(loss: Callable[..., Tensor], positives: Tensor, negatives: Tensor) -> tuple[Tensor, Tensor]:
    """∂L_i/∂s_ip and ∂L_i/∂s_in of a loss over groups, by its own backward."""
    s = positives.detach().requires_grad_(), negatives.detach().requires_grad_()
    by_positive, by_negative = torch.autograd.grad(group_values(loss, *s).sum(), s)
    return by_positive, by_negative


# -------------------------------------------------------------------------------------------------------- errors


def largest(errors: Tensor) -> float:
    """The largest absolute value; infinity if any is not a number, which ``max`` would pass over."""
    worst = float(errors.detach().abs().max())
    return math.inf if math.isnan(worst) else worst


def largest_error(value: Tensor, reference: Tensor) -> float:
    """The largest difference, relative where the numbers are above 1."""
    return largest((value - reference) / reference.detach().abs().clamp(min=1.0))


def worst(errors: Sequence[float]) -> float:
    """`largest` of a list of numbers."""
    return largest(torch.tensor(errors, dtype=torch.float64))


def worst_violation(slacks: Sequence[float]) -> float:
    """Of inequalities slack ≥ 0: how far the smallest slack is below 0."""
    return worst([min(slack, 0.0) if slack == slack else slack for slack in slacks])


def ratios(errors: Sequence[float]) -> list[float]:
    """How many times smaller each is than the one before."""
    return [before / after if after else math.inf for before, after in itertools.pairwise(errors)]
