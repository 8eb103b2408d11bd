"""Where a loss stands: chance, collapsed, bound, and how much of the way from chance to the bound is done.

- *chance*: all similarities 0, as unrelated embeddings in many dimensions have them;
- *collapsed*: all embeddings equal (cross-entropy: the best that one embedding for all can do with these weights);
- *bound*: what no embeddings can go below, for this temperature and this batch; see `closed_forms`.
"""

from __future__ import annotations

import math
import numbers
from collections import Counter
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import torch

from kontrast import losses
from kontrast.checks import integer_labels, number, temperature_now, whole_number
from kontrast.geometry.bounds import closed_forms
from kontrast.geometry.bounds._constant import best_constant
from kontrast.losses._energy import energy


@dataclass(frozen=True)
class Standing:
    """A loss's value between chance and its bound; ``value`` and so ``share`` are None if none was given."""

    chance: float
    collapsed: float
    bound: float
    value: float | None = None

    @property
    def share(self) -> float | None:
        """Of the way from chance (0) to the bound (1); negative above chance."""
        if self.value is None or self.chance == self.bound:
            return None
        return (self.chance - self.value) / (self.chance - self.bound)


@dataclass(frozen=True)
class Batch:
    """What a loss was computed on; each loss says which of these it needs."""

    labels: list[int] | None
    num_pairs: int | None
    num_views: int
    num_negatives: int | None
    target_entropy: float
    radius: float | None

    def groups(self, loss: losses.Loss) -> list[int]:
        """How many rows each group of positives has: a class's, or an instance's views."""
        if self.labels is not None:
            return [count * self.num_views for count in Counter(self.labels).values()]
        count = self.need("num_pairs", "labels (or num_pairs and num_views, for views without labels)", loss)
        if self.num_views < 2:
            raise ValueError("without labels the views of an instance are its positives: pass num_views of at least 2")
        return [self.num_views] * count

    def negatives(self, loss: losses.Loss) -> tuple[int, bool]:
        """How many negatives each anchor has, and whether they are the batch's own keys."""
        if self.num_negatives is not None:
            return self.num_negatives, False
        return self.need("num_pairs", "num_pairs (in a batch) or num_negatives (a queue or bank)", loss) - 1, True

    def candidates(self, loss: losses.Loss) -> tuple[int, int]:
        """How many negatives of each anchor are keys of the batch, and how many are rows given beside or instead."""
        if self.num_negatives is not None and not getattr(loss, "negatives_in_batch", False):
            return 0, self.num_negatives
        wanted = "num_pairs (in a batch) or num_negatives (a queue or bank)"
        if self.num_negatives is not None:
            wanted = "num_pairs beside num_negatives: with negatives_in_batch=True the other keys count too"
        return self.need("num_pairs", wanted, loss) - 1, self.num_negatives or 0

    def need(self, name: str, wanted: str, loss: losses.Loss) -> int:
        """A number that must be there."""
        value: int | None = getattr(self, name)
        if value is None:
            raise ValueError(f"where {type(loss).__name__} stands depends on the batch: pass {wanted}")
        return value

    def anchors(self, loss: losses.Loss) -> int:
        """How many terms a sum has; for a mean it does not matter."""
        if loss.reduction != "sum":
            return 1
        if self.labels is not None and self.num_pairs is None:
            return len(self.labels)
        return self.need("num_pairs", "num_pairs, over which reduction='sum' sums (beside num_negatives)", loss)

    def shares(self, num_classes: int) -> list[float]:
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
        """No distribution over so many has more."""
        most = math.log(max(others, 1))
        if self.target_entropy > most + 1e-4:
            raise ValueError(
                f"target_entropy is {self.target_entropy:.4g}, above log {others} = {most:.4g}, the most that "
                f"relations to {others} others can have"
            )

    def largest_similarity(self, loss: losses.Loss) -> float:
        """ρ²: 1 for normalised rows."""
        return self.length(loss) ** 2

    def length(self, loss: losses.Loss) -> float:
        """ρ."""
        if loss.normalize:
            return 1.0
        if self.radius is None:
            raise ValueError(f"{type(loss).__name__} does not normalise: pass radius, the largest norm of an embedding")
        return self.radius


def standing(
    loss: losses.Loss,
    value: float | torch.Tensor | None = None,
    *,
    labels: Any = None,
    num_pairs: int | None = None,
    num_views: int = 1,
    num_negatives: int | None = None,
    target_entropy: float = 0.0,
    radius: float | None = None,
) -> Standing:
    """Chance, collapsed value and bound of a loss on a batch like this, and where ``value`` stands between them.

    - SupCon, TCL: ``labels`` of the batch and ``num_views`` of each row; without labels ``num_pairs`` instances.
    - NT-Xent: ``num_pairs``. InfoNCE, hard, simple: ``num_pairs`` in a batch, ``num_negatives`` against a queue, both
      with ``negatives_in_batch=True``.
    - ReSSL, SCE: the same, and ``target_entropy``, the mean entropy of the target relations
      (``penalty_entropy(target, target, queue, temperature=target_temperature).mean()``).
    - Cross-entropy: ``labels`` (balanced if left out), ``radius``, the largest norm of an embedding.

    ``radius`` is needed by every loss with ``normalize=False``. The numbers are on the scale of the loss: means, or
    sums for ``reduction="sum"``, which needs to know over how many anchors (``num_pairs`` or ``labels``).

    >>> from kontrast import losses
    >>> at = standing(losses.SupConLoss(temperature=0.5), 1.0, labels=[0, 0, 1, 1])
    >>> [round(x, 4) for x in (at.chance, at.bound, at.share)]  # log 3, log(1 + 2 e^{−4}), the share of the way
    [1.0986, 0.036, 0.0928]
    """
    batch = Batch(
        labels=None if labels is None else _as_list(labels),
        num_pairs=None if num_pairs is None else whole_number("num_pairs", num_pairs, least=1),
        num_views=whole_number("num_views", num_views, least=1),
        num_negatives=None if num_negatives is None else whole_number("num_negatives", num_negatives, least=1),
        target_entropy=number("target_entropy", target_entropy, least=0.0),
        radius=None if radius is None else number("radius", radius, least=0.0),
    )
    found, anchors = _limits(loss, batch)
    scale = anchors if loss.reduction == "sum" else 1
    chance, collapsed, bound = (scale * x for x in found)
    if isinstance(value, torch.Tensor) and value.numel() == 1:
        value = float(value.detach())
    if value is not None and not isinstance(value, numbers.Real):
        raise ValueError(f"value must be the loss as a number or a scalar tensor, got {value!r}")
    return Standing(chance, collapsed, bound, None if value is None else float(value))


def _as_list(labels: Any) -> list[int]:
    length = len(labels) if hasattr(labels, "__len__") and getattr(labels, "ndim", None) != 0 else 0
    if length == 0:
        raise ValueError(f"labels must be whole numbers, one a row of the batch, got {labels!r}")
    found: list[int] = integer_labels("labels", labels, length, torch.device("cpu")).tolist()
    return found


Limits = tuple[float, float, float]  # chance, collapsed, bound


@singledispatch
def _limits(loss: losses.Loss, batch: Batch) -> tuple[Limits, int]:
    """The three values, means over the anchors, and the number of anchors."""
    raise ValueError(f"no chance and no bound are known for {type(loss).__name__}")


@_limits.register
def _info_nce(loss: losses.InfoNCELoss, batch: Batch) -> tuple[Limits, int]:
    return _against_keys(loss, batch, kept=None), batch.anchors(loss)


@_limits.register
def _hard(loss: losses.HardContrastiveLoss, batch: Batch) -> tuple[Limits, int]:
    return _against_keys(loss, batch, kept=loss.hard_negatives), batch.anchors(loss)


def _against_keys(loss: losses.Loss, batch: Batch, kept: int | None) -> Limits:
    others, given = batch.candidates(loss)
    negatives = others + given
    # The nearest are at least as similar as all on average, so the bounds for all hold with the number kept.
    number_kept = min(negatives, kept or negatives)
    chance, collapsed, bound = _three(loss, batch, 1, number_kept, _furthest(others, given))
    if others and given and number_kept == negatives:
        tau, rho2 = temperature_now(loss.temperature), batch.largest_similarity(loss)
        bound = closed_forms.beside(others + 1, given, temperature=tau, largest=rho2)
    return chance, collapsed, bound


def _furthest(others: int, given: int) -> float:
    """The least mean of an anchor's negatives when its positive is at 1: other keys at −1/others, rows given at −1.

    With both it is −(1 + given)/(others + given), the bounds of both gaps added up.
    """
    if others == 0:
        return -1.0
    return -(1 + given) / (others + given)


@_limits.register
def _nt_xent(loss: losses.NTXentLoss, batch: Batch) -> tuple[Limits, int]:
    pairs = batch.need("num_pairs", "num_pairs", loss)
    return _three(loss, batch, 1, 2 * pairs - 2, -1 / max(pairs - 1, 1)), 2 * pairs


@_limits.register
def _simple(loss: losses.SimpleContrastiveLoss, batch: Batch) -> tuple[Limits, int]:
    """−s_ii + μ·(mean negative): Σ⟨q_i, k_i⟩ and ⟨Σq, Σk⟩ bound it by −max(1 + μ/(N−1), |μ−1|) in a batch; rows given
    beside or instead of the other keys add −1 times their part of μ."""
    others, given = batch.candidates(loss)
    negatives = others + given
    kept = min(negatives, loss.hard_negatives or negatives)
    mu = float(kept > 0) if loss.weight is None else loss.weight * kept
    lam = mu / max(negatives, 1)  # the nearest kept weigh as much as all together with this weight each, or more
    lowest = -(max(1 + lam, abs(lam * others - 1)) + lam * given) if others else -(1 + mu)
    rho2 = batch.largest_similarity(loss)
    return (0.0, rho2 * (mu - 1), rho2 * lowest), batch.anchors(loss)


@_limits.register
def _supcon(loss: losses.SupConLoss, batch: Batch) -> tuple[Limits, int]:
    return _over_groups(loss, batch, 0.0, 1.0)


@_limits.register
def _tcl(loss: losses.TCLLoss, batch: Batch) -> tuple[Limits, int]:
    return _over_groups(loss, batch, loss.k1, loss.k2)


def _over_groups(loss: losses.SupConLoss | losses.TCLLoss, batch: Batch, k1: float, k2: float) -> tuple[Limits, int]:
    groups = batch.groups(loss)
    rows = sum(groups)
    if loss.no_positive == "error" and 1 in groups:
        raise ValueError("some anchors have no positive, and this loss has no_positive='error'")
    counted = rows if loss.no_positive == "zero" else sum(m for m in groups if m > 1)
    balanced = len(set(groups)) == 1 and len(groups) > 1
    furthest = -1 / (len(groups) - 1) if balanced else -1.0
    # Groups of one size are alike, so each size is worked out once.
    mean = [0.0, 0.0, 0.0]
    for m, times in Counter(groups).items():
        for i, x in enumerate(_three(loss, batch, m - 1, rows - m, furthest, k1, k2)):
            mean[i] += times * m * x / max(counted, 1)
    return (mean[0], mean[1], mean[2]), counted


def _three(
    loss: losses.Loss,
    batch: Batch,
    positives: int,
    negatives: int,
    furthest: float,
    k1: float = 0.0,
    k2: float = 1.0,
) -> Limits:
    """The value with all similarities 0, all ρ², and positives ρ² with negatives at ``furthest`` ρ²."""
    tau = temperature_now(loss.temperature)
    rho2 = batch.largest_similarity(loss)

    def value(positive: float, negative: float) -> float:
        return closed_forms.anchor_value(positives, negatives, positive, negative, temperature=tau, k1=k1, k2=k2)

    return value(0.0, 0.0), value(rho2, rho2), value(rho2, furthest * rho2)


@_limits.register
def _ressl(loss: losses.ReSSLLoss, batch: Batch) -> tuple[Limits, int]:
    others, _ = batch.negatives(loss)
    chance = math.log(max(others, 1))
    batch.check_entropy(others)
    return (chance, chance, batch.target_entropy), batch.anchors(loss)


@_limits.register
def _sce(loss: losses.SCELoss, batch: Batch) -> tuple[Limits, int]:
    """A cross-entropy is never below its target's entropy, here of w = λ·own + (1−λ)·s."""
    others, _ = batch.negatives(loss)
    chance = math.log(others + 1) if others else 0.0
    batch.check_entropy(others)
    share = 1 - loss.contrastive_weight
    bound = 0.0  # the zero logit puts an unknown share of s on the own slot
    if loss.self_logit == "masked":
        bound = share * batch.target_entropy + sum(-x * math.log(x) for x in (share, 1 - share) if x > 0)
    return (chance, chance, min(bound, chance)), batch.anchors(loss)


@_limits.register
def _cross_entropy(loss: losses.CrossEntropyLoss, batch: Batch) -> tuple[Limits, int]:
    norm = float(loss.weight.detach().double().norm())
    shares = batch.shares(loss.num_classes)
    bound = closed_forms.cross_entropy_any(shares, batch.length(loss), norm)
    (chance, collapsed, bound), anchors = _classifier(loss, batch, shares, bound)
    extra = 0.0 if loss.reduction == "none" else _penalties(loss, norm) / anchors
    return (chance + extra, collapsed + extra, bound + extra), anchors


def _penalties(loss: losses.CrossEntropyLoss, norm: float) -> float:
    """What the penalties add, with the weights as they are."""
    repulsion = float(energy(loss.weight.detach().double(), loss.energy_power)) if loss.energy_penalty else 0.0
    return loss.weight_penalty * norm**2 + loss.energy_penalty * repulsion


@_limits.register
def _simplex_cross_entropy(loss: losses.SimplexCrossEntropyLoss, batch: Batch) -> tuple[Limits, int]:
    """(1) for any labels: with W at the simplex Jensen bounds each sample by itself."""
    norm = math.sqrt(loss.num_classes) * loss.radius
    bound = closed_forms.cross_entropy(loss.num_classes, batch.length(loss), norm)
    return _classifier(loss, batch, batch.shares(loss.num_classes), bound)


def _classifier(
    loss: losses.CrossEntropyLoss | losses.SimplexCrossEntropyLoss, batch: Batch, shares: list[float], bound: float
) -> tuple[Limits, int]:
    collapsed = best_constant(loss.weight, shares, batch.length(loss))
    return (math.log(len(shares)), max(collapsed, bound), bound), batch.anchors(loss)
