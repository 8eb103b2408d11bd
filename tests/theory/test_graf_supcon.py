"""Graf et al. on SC: every check holds, every check can fail, and what the checks rest on."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from kontrast.geometry import bounds
from kontrast.theory import graf_supcon as module
from kontrast.theory._check import REGISTRY
from tests.theory.breaking import Breaks


def term_with_self_among_positives(points: Tensor, labels: Tensor) -> Tensor:
    """1/l instead of 1/(l − 1)."""
    s = points @ points.T
    itself = torch.eye(len(labels), dtype=torch.bool)
    positive = (labels[:, None] == labels[None]) & ~itself
    log_d = s.masked_fill(itself, -torch.inf).logsumexp(1)
    pulled = (s * positive).sum(1) / (positive.sum(1) + 1)
    return ((log_d - pulled) * positive.any(1)).sum()


def sets_instead_of_multisets(num_classes: int, per_class: int, batch_size: int, members: int) -> int:
    others = per_class * (num_classes - 1)
    return num_classes * math.comb(per_class, members) * math.comb(others, batch_size - members)


def bound_at(gap_of: float, num_classes: int, per_class: int, batch_size: int, radius: float = 1.0) -> float:
    """The bound with another factor than K/(K−1) in the exponent."""
    k = num_classes
    return bounds.supcon_all_batches(k, per_class, batch_size, radius * math.sqrt(gap_of * (k - 1) / k))


def bound_of_cosines(num_classes: int, per_class: int, batch_size: int, radius: float = 1.0) -> float:
    """e^{−ρ²/(K−1)}: the similarity of two vertices, the own one forgotten."""
    return bound_at(1 / (num_classes - 1), num_classes, per_class, batch_size, radius)


def bound_of_right_angles(num_classes: int, per_class: int, batch_size: int, radius: float = 1.0) -> float:
    """e^{−ρ²}: higher by a little."""
    return bound_at(1.0, num_classes, per_class, batch_size, radius)


def bound_of_opposites(num_classes: int, per_class: int, batch_size: int, radius: float = 1.0) -> float:
    """e^{−2ρ²}: lower, and not reached."""
    return bound_at(2.0, num_classes, per_class, batch_size, radius)


def value_of_one_anchor_a_class(counts: Sequence[int], gap: float) -> float:
    b = sum(counts)
    return math.fsum(math.log(m - 1 + (b - m) * math.exp(-gap)) for m in counts if m > 1)


def batch_bound_without_k(num_classes: int, per_class: int, temperature: float) -> float:
    return bounds.supcon_batch(num_classes, per_class, temperature * num_classes)


def batch_bound_with_self(num_classes: int, per_class: int, temperature: float) -> float:
    k, m = num_classes, per_class
    return math.log(m + (k - 1) * m * math.exp(-k / ((k - 1) * temperature)))


BREAKS: Breaks = {
    "temperature-is-a-radius": ("batch_loss", term_with_self_among_positives),
    "batches-are-counted": ("batches_with", sets_instead_of_multisets),
    "all-batches-bound-is-the-simplex": ("all_batches_bound", bound_of_cosines),
    "all-batches-are-above-their-bound": ("all_batches_bound", bound_of_right_angles),
    "all-batches-find-the-simplex": ("all_batches_bound", bound_of_opposites),
    "batches-have-no-common-minimiser": ("configuration_value", value_of_one_anchor_a_class),
    "balanced-batch-bound-is-the-simplex": ("balanced_batch_bound", batch_bound_without_k),
    "supcon-finds-the-simplex": ("balanced_batch_bound", batch_bound_with_self),
}


def test_a_bound_that_is_too_low_is_not_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "all_batches_bound", bound_of_opposites)
    assert REGISTRY["all-batches-are-above-their-bound"].run(0).holds
    assert not REGISTRY["all-batches-bound-is-the-simplex"].run(0).holds


@pytest.mark.parametrize(("name", "margin"), [("batches-have-no-common-minimiser", 0.5)])
def test_a_margin_that_is_asked_for_must_be_there(monkeypatch: pytest.MonkeyPatch, name: str, margin: float) -> None:
    """Some configurations stand closer to the simplex than that: the check notices."""
    monkeypatch.setattr(module, "MARGIN", margin)
    assert math.isinf(REGISTRY[name].run(0).error)
