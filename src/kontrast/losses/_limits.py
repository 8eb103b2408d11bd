"""What a loss can be on a batch: its value by chance, its value when collapsed, and what it cannot go below.

Each loss computes its own (`Loss.limits`), from what the batch consists of (`Batch`); `geometry.bounds.standing` is the
public function over both.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from kontrast import closed_forms
from kontrast.checks import integer_labels, number, temperature_now, whole_number

if TYPE_CHECKING:
    from kontrast.losses._base import Loss


class Limits(NamedTuple):
    """Three values of a loss, on the scale of its reduction.

    Attributes:
        chance: The loss with all similarities 0, as unrelated embeddings in many dimensions have them.
        collapsed: The loss with all embeddings equal (for a classifier: the best that one embedding for all can do).
        bound: What no embeddings can go below.
    """

    chance: float
    collapsed: float
    bound: float

    def scaled(self, factor: float) -> Limits:
        """All three, times a factor: the number of anchors for a sum."""
        return Limits(*(factor * x for x in self))


@dataclass(frozen=True)
class Batch:
    """What a loss is computed on. Each loss reads the fields it needs, and raises if one of them is missing.

    Args:
        labels: A label for each row, or None.
        num_pairs: How many pairs (or, without labels, how many instances) the batch has.
        num_views: How many views of each row or instance there are.
        num_negatives: How many rows a queue or a memory bank has.
        target_entropy: The mean entropy of the target relations (ReSSL, SCE).
        radius: The largest norm of an embedding, for losses that do not normalise.

    Raises:
        ValueError: If a number is out of its range, or the labels are not integers.
    """

    labels: Any = None
    num_pairs: int | None = None
    num_views: int = 1
    num_negatives: int | None = None
    target_entropy: float = 0.0
    radius: float | None = None

    def __post_init__(self) -> None:
        for name in ("num_pairs", "num_negatives"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, whole_number(name, getattr(self, name), least=1))
        object.__setattr__(self, "num_views", whole_number("num_views", self.num_views, least=1))
        number("target_entropy", self.target_entropy, least=0.0)
        if self.radius is not None:
            number("radius", self.radius, least=0.0)
        if self.labels is not None:
            object.__setattr__(self, "labels", _as_list(self.labels))

    def need(self, name: str, wanted: str, loss: Loss) -> int:
        """A number that must be there."""
        value: int | None = getattr(self, name)
        if value is None:
            raise ValueError(f"the limits of {type(loss).__name__} depend on the batch: pass {wanted}")
        return value

    def group_sizes(self, loss: Loss) -> list[int]:
        """How many rows each group of positives has: a class's, or an instance's views."""
        if self.labels is not None:
            return [count * self.num_views for count in Counter(self.labels).values()]
        count = self.need("num_pairs", "labels (or num_pairs and num_views, for views without labels)", loss)
        if self.num_views < 2:
            raise ValueError("without labels the views of an instance are its positives: pass num_views of at least 2")
        return [self.num_views] * count

    def candidates(self, loss: Loss) -> tuple[int, int]:
        """How many negatives of each anchor are keys of the batch, and how many are rows of a queue or a bank."""
        if self.num_negatives is not None and not getattr(loss, "negatives_in_batch", False):
            return 0, self.num_negatives
        wanted = "num_pairs (in a batch) or num_negatives (a queue or bank)"
        if self.num_negatives is not None:
            wanted = "num_pairs beside num_negatives: with negatives_in_batch=True the other keys count too"
        return self.need("num_pairs", wanted, loss) - 1, self.num_negatives or 0

    def terms(self, loss: Loss) -> int:
        """How many anchors a sum is over; 1 for a mean, whose limits do not depend on it."""
        if loss.reduction != "sum":
            return 1
        if self.labels is not None and self.num_pairs is None:
            return len(self.labels)
        return self.need("num_pairs", "num_pairs, over which reduction='sum' sums (beside num_negatives)", loss)

    def class_shares(self, num_classes: int) -> list[float]:
        """Each class's share of the samples; balanced without labels."""
        if self.labels is None:
            return [1 / num_classes] * num_classes
        counts = Counter(self.labels)
        if wrong := sorted(c for c in counts if not 0 <= c < num_classes):
            raise ValueError(
                f"labels hold {wrong[0]}; with num_classes={num_classes} they must be in 0 … {num_classes - 1}"
            )
        return [counts[c] / len(self.labels) for c in range(num_classes)]

    def check_entropy(self, others: int) -> None:
        """No distribution over so many has a larger entropy."""
        most = math.log(max(others, 1))
        if self.target_entropy > most + 1e-4:
            raise ValueError(
                f"target_entropy is {self.target_entropy:.4g}, above log {others} = {most:.4g}, the most that "
                f"relations to {others} others can have"
            )

    def length(self, loss: Loss) -> float:
        """ρ, the largest norm of a row: 1 where the loss normalises."""
        if loss.normalize:
            return 1.0
        if self.radius is None:
            raise ValueError(f"{type(loss).__name__} does not normalise: pass radius, the largest norm of an embedding")
        return float(self.radius)


def anchor_limits(
    loss: Loss, batch: Batch, positives: int, negatives: int, furthest: float, k1: float = 0.0, k2: float = 1.0
) -> Limits:
    """Of one anchor: all similarities 0; all ρ²; positives at ρ² and negatives at ``furthest`` ρ²."""
    tau = temperature_now(loss.temperature)
    rho2 = batch.length(loss) ** 2

    def value(positive: float, negative: float) -> float:
        return closed_forms.anchor_value(positives, negatives, positive, negative, temperature=tau, k1=k1, k2=k2)

    return Limits(value(0.0, 0.0), value(rho2, rho2), value(rho2, furthest * rho2))


def key_limits(loss: Loss, batch: Batch, nearest: int | None = None) -> Limits:
    """Of queries against their keys, with all negatives or the ``nearest`` of them."""
    others, rows = batch.candidates(loss)
    negatives = others + rows
    # The nearest are at least as similar as all on average, so the bounds for all hold with the number kept.
    kept = min(negatives, nearest or negatives)
    # With the positive at 1 the other keys have a mean of at least −1/others, and rows of a queue −1. With both it is
    # −(1 + rows)/(others + rows): the bounds of both gaps added up.
    furthest = -(1 + rows) / (others + rows) if others else -1.0
    limits = anchor_limits(loss, batch, 1, kept, furthest)
    if others and rows and kept == negatives:
        tau, rho2 = temperature_now(loss.temperature), batch.length(loss) ** 2
        limits = limits._replace(bound=closed_forms.beside(others + 1, rows, temperature=tau, largest=rho2))
    return limits.scaled(batch.terms(loss))


def group_limits(loss: Loss, batch: Batch, k1: float, k2: float) -> Limits:
    """Of anchors whose positives are their group."""
    sizes = batch.group_sizes(loss)
    total = sum(sizes)
    no_positive = getattr(loss, "no_positive", "skip")
    if no_positive == "error" and 1 in sizes:
        raise ValueError("some anchors have no positive, and this loss has no_positive='error'")
    anchors = total if no_positive == "zero" else sum(m for m in sizes if m > 1)
    balanced = len(set(sizes)) == 1 and len(sizes) > 1
    furthest = -1 / (len(sizes) - 1) if balanced else -1.0
    mean = [0.0, 0.0, 0.0]
    for m, times in Counter(sizes).items():  # groups of one size are alike, so each size is computed once
        for i, x in enumerate(anchor_limits(loss, batch, m - 1, total - m, furthest, k1, k2)):
            mean[i] += times * m * x / max(anchors, 1)
    return Limits(*mean).scaled(anchors if loss.reduction == "sum" else 1)


def classifier_limits(loss: Loss, batch: Batch, weight: torch.Tensor, shares: Sequence[float], bound: float) -> Limits:
    """Of a linear classifier with these weights."""
    collapsed = best_constant(weight, shares, batch.length(loss))
    return Limits(math.log(len(shares)), max(collapsed, bound), bound).scaled(batch.terms(loss))


def best_constant(weight: torch.Tensor, shares: Sequence[float], radius: float, *, steps: int = 1000) -> float:
    r"""The smallest loss of a classifier with weights ``[K, D]`` when all embeddings are equal.

        min_{‖z‖ ≤ ρ}  log Σ_c e^{⟨w_c, z⟩} − Σ_c π_c ⟨w_c, z⟩,      gradient Wᵀ(softmax(Wz) − π)

    π are the classes' shares. It is convex, so accelerated projected gradient descent finds it (Beck & Teboulle); it is
    at least the entropy of π, and log K for balanced classes and weights about the origin.
    """
    w = weight.detach().double().cpu()
    pi = torch.tensor(list(shares), dtype=torch.float64)
    # Only the span of W matters: its K coordinates instead of D.
    _, s, v = torch.linalg.svd(w, full_matrices=False)
    w = w @ v.T
    rate = 2.0 / max(float(s[0]) ** 2, 1e-300)  # the softmax's curvature is at most 1/2
    z = ahead = torch.zeros(w.shape[1], dtype=torch.float64)
    momentum = 1.0
    for _ in range(steps):
        logits = w @ ahead
        new = ahead - rate * (w.T @ (logits.softmax(0) - pi))
        new = new * min(1.0, radius / max(float(new.norm()), 1e-300))
        following = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
        ahead = new + (momentum - 1) / following * (new - z)
        moved = float((new - z).norm())
        z, momentum = new, following
        if moved <= 1e-12 * max(radius, 1e-300):
            break
    return float((w @ z).logsumexp(0) - pi @ (w @ z))


def _as_list(labels: Any) -> list[int]:
    length = len(labels) if hasattr(labels, "__len__") and getattr(labels, "ndim", None) != 0 else 0
    if length == 0:
        raise ValueError(f"labels must be whole numbers, one a row of the batch, got {labels!r}")
    values: list[int] = integer_labels("labels", labels, length, torch.device("cpu")).tolist()
    return values
