"""Graf et al. on SC: every check holds, every check can fail, and what the checks rest on."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from kontrast.geometry import bounds
from kontrast.theory import graf_supcon as module
from kontrast.theory.check import REGISTRY
from kontrast.theory.label_configurations import batch_loss
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


def positives_with_self(on: module.Batches) -> Tensor:
    """l in the place of l − 1."""
    p = module.mean_positive(on)
    together = on.members * p.exp() + (on.s.exp() * on.negative).sum(-1)
    return torch.where(on.anchor, together.log() - p, 0.0)


def nearest_negative(on: module.Batches) -> Tensor:
    """The largest in the place of the mean: too high."""
    nearest = on.s.masked_fill(~on.negative, -torch.inf).amax(-1)
    return torch.where(on.negatives > 0, nearest, 0.0)


def largest_gap(on: module.Batches) -> Tensor:
    """The anchors' largest Q − P over the batch, whatever the class."""
    gap = module.mean_negative(on) - module.mean_positive(on)
    return gap.amax(-1, keepdim=True).expand_as(gap)


def gap_over_all_sizes(on: module.Batches) -> Tensor:
    """The mean over anchors of every class size, lonely ones too."""
    gap = module.mean_gap(on)
    return module.phi(on, gap.mean().expand_as(gap))


def gap_of_sets(points: Tensor, labels: Tensor) -> float:
    """Positives counted as if a point could not be twice in a batch, or as n² equal pairs."""
    means = module.class_means(points, labels)
    k = len(means)
    repulsion = (means * (means.sum(0) - means)).sum(1) / (k - 1)
    return float((repulsion - means.square().sum(1)).mean())


def gap_with_half_the_means(points: Tensor, labels: Tensor) -> float:
    """Lower than (6): not reached where the means sum to 0."""
    return module.gap_at_collapse(points, labels)


def gap_of_opposites(points: Tensor, labels: Tensor) -> float:
    """−ρ² − ρ² in the place of −ρ² − ρ²/(K−1)."""
    return -2 * float(points[0].norm()) ** 2


BREAKS: Breaks = {
    "temperature-is-a-radius": ("batch_loss", term_with_self_among_positives),
    "batches-are-counted": ("batches_with", sets_instead_of_multisets),
    "all-batches-bound-is-the-simplex": ("all_batches_bound", bound_of_cosines),
    "all-batches-are-above-their-bound": ("all_batches_bound", bound_of_right_angles),
    "all-batches-find-the-simplex": ("all_batches_bound", bound_of_opposites),
    "batches-have-no-common-minimiser": ("configuration_value", value_of_one_anchor_a_class),
    "balanced-batch-bound-is-the-simplex": ("balanced_batch_bound", batch_bound_without_k),
    "supcon-finds-the-simplex": ("balanced_batch_bound", batch_bound_with_self),
    "supcon-jensen-over-positives": ("over_positives", positives_with_self),
    "supcon-jensen-over-negatives": ("mean_negative", nearest_negative),
    "supcon-jensen-over-anchors": ("mean_gap", largest_gap),
    "supcon-jensen-over-batches": ("over_batches", gap_over_all_sizes),
    "supcon-batches-average-to-class-means": ("gap_of_class_means", gap_of_sets),
    "supcon-means-sum": ("gap_with_centred_means", gap_with_half_the_means),
    "supcon-class-means-are-inside": ("gap_at_collapse", gap_of_opposites),
    "supcon-chain-is-the-simplex": ("all_batches_bound", bound_of_right_angles),
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


CONDITIONS = {
    "supcon-jensen-over-positives": ("equal_positives", "equal_negatives"),
    "supcon-jensen-over-negatives": ("equal_negatives", "equal_anchors"),
    "supcon-jensen-over-anchors": ("equal_anchors", "equal_positives"),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_an_equality_without_its_condition_is_not_one(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    own, other = CONDITIONS[name]
    monkeypatch.setattr(module, own, getattr(module, other))
    assert not REGISTRY[name].run(0).holds


@pytest.mark.parametrize("name", CONDITIONS)
def test_a_step_that_loses_nothing_is_noticed(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    step = list(CONDITIONS).index(name)
    plain = module.gaps
    monkeypatch.setattr(module, "gaps", lambda on: [gap * 0 if i == step else gap for i, gap in enumerate(plain(on))])
    assert math.isinf(REGISTRY[name].run(0).error)


def test_the_first_value_is_the_loss_of_a_batch() -> None:
    """Lonely elements have no term, and a batch of one class has no negatives."""
    z = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for labels in (torch.tensor([0, 0, 1, 1, 1]), torch.tensor([0, 0, 1, 2, 3]), torch.zeros(5, dtype=torch.int64)):
        found = module.values(module.Batches(z, labels))
        assert float(found.sum()) == pytest.approx(float(batch_loss(z, labels)), rel=1e-12)
        assert (found[torch.bincount(labels)[labels] == 1] == 0).all()


def test_the_means_written_out() -> None:
    z = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64)
    on = module.Batches(z, torch.tensor([0, 0, 0, 1]))
    assert module.mean_positive(on)[0].item() == pytest.approx((0.6 + 0.0) / 2)
    assert module.mean_negative(on)[1].item() == pytest.approx(-0.6)
    # Q − P of the three anchors: −1 − 0.3, −0.6 − 0.7, 0 − 0.4.
    assert module.mean_gap(on)[2].item() == pytest.approx((-1.3 - 1.3 - 0.4) / 3)
    assert module.over_anchors(on)[0].item() == pytest.approx(math.log(2 + math.exp(-1.0)))


def test_descent_ends_at_the_bound_of_the_theorem() -> None:
    z = torch.nn.functional.normalize(
        torch.randn(6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1)), dim=1
    )
    found = module.descent(z, torch.arange(3).repeat(2), 4)
    assert found == sorted(found, reverse=True)
    assert found[-1] == pytest.approx(bounds.supcon_all_batches(3, 2, 4), rel=1e-12)
