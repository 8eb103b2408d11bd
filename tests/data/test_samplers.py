"""A batch is a function of seed, epoch and step; and each sampler draws what it says."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from scipy import stats
from torch import Tensor

from kontrast.data.samplers import ClassBalanced, InOrder, Sampler, Shuffled, WithReplacement

LABELS = torch.tensor([0] * 30 + [1] * 12 + [5] * 3)

MADE: dict[str, Callable[[int], Sampler]] = {
    "shuffled": lambda seed: Shuffled(45, 8, seed=seed),
    "shuffled, kept": lambda seed: Shuffled(45, 8, seed=seed, drop_last=False),
    "with replacement": lambda seed: WithReplacement(45, 8, seed=seed),
    "class-balanced": lambda seed: ClassBalanced(LABELS, 4, seed=seed),
    "class-balanced, two": lambda seed: ClassBalanced(LABELS, 4, classes=2, seed=seed),
}


def epoch(sampler: Sampler, number: int) -> list[Tensor]:
    return [sampler.batch(number, step) for step in range(sampler.steps)]


@pytest.mark.parametrize("name", MADE)
def test_any_batch_can_be_asked_for_in_any_order(name: str) -> None:
    sampler = MADE[name](0)
    forward = {(e, k): sampler.batch(e, k) for e in range(3) for k in range(sampler.steps)}
    fresh = MADE[name](0)
    for e, k in reversed(forward):
        assert torch.equal(fresh.batch(e, k), forward[e, k])


@pytest.mark.parametrize("name", MADE)
def test_seed_and_epoch_change_the_draws(name: str) -> None:
    first, other_seed = torch.cat(epoch(MADE[name](0), 0)), torch.cat(epoch(MADE[name](1), 0))
    assert not torch.equal(first, other_seed)
    assert not torch.equal(first, torch.cat(epoch(MADE[name](0), 1)))


@pytest.mark.parametrize("name", MADE)
def test_a_batch_may_be_changed_by_its_user(name: str) -> None:
    sampler = MADE[name](0)
    batch = sampler.batch(0, 1)
    kept = batch.clone()
    batch.fill_(-1)
    assert torch.equal(sampler.batch(0, 1), kept)


def test_shuffled_is_every_sample_once() -> None:
    assert sorted(torch.cat(epoch(MADE["shuffled, kept"](0), 0)).tolist()) == list(range(45))
    dropped = torch.cat(epoch(MADE["shuffled"](0), 0))
    assert len(dropped) == 40 == len(dropped.unique())


def test_shuffled_puts_every_sample_everywhere() -> None:
    firsts = torch.stack([Shuffled(6, 6, seed=3).batch(e, 0) for e in range(3000)])
    for place in range(6):
        assert stats.chisquare(torch.bincount(firsts[:, place]).numpy()).pvalue > 1e-4


def test_with_replacement_is_uniform_and_repeats() -> None:
    drawn = torch.cat(epoch(WithReplacement(20, 10, steps=1000), 0))
    assert stats.chisquare(torch.bincount(drawn).numpy()).pvalue > 1e-3
    assert len(WithReplacement(5, 50).batch(0, 0)) == 50


def test_class_balanced_has_so_many_of_each() -> None:
    for rows in epoch(MADE["class-balanced"](0), 0):
        assert LABELS[rows].bincount().tolist() == [4, 4, 0, 0, 0, 4]
        for c in (0, 1):
            own = rows[LABELS[rows] == c]
            assert len(own.unique()) == 4, "without repeats while there are enough"
    two = MADE["class-balanced, two"](0)
    seen = {tuple(sorted(LABELS[rows].unique().tolist())) for e in range(10) for rows in epoch(two, e)}
    assert seen == {(0, 1), (0, 5), (1, 5)}


def test_a_small_class_repeats_each_of_its_samples_before_any_thrice() -> None:
    rows = ClassBalanced(LABELS, 7, seed=0).batch(0, 0)
    counts = rows[LABELS[rows] == 5].bincount()[42:]
    assert sorted(counts.tolist()) == [2, 2, 3]


def test_in_order() -> None:
    assert torch.cat(epoch(InOrder(45, 8), 5)).tolist() == list(range(45))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Shuffled(10, 11), "every epoch would be empty"),
        (lambda: Shuffled(0, 1), "no samples"),
        (lambda: WithReplacement(10, 0), "at least 1 sample"),
        (lambda: WithReplacement(10, 2, steps=-1), "steps is -1; expected at least 1"),
        (lambda: ClassBalanced(LABELS, 2, steps=0), "steps is 0"),
        (lambda: ClassBalanced(LABELS, 2, classes=4), "classes is 4, but the labels hold 3"),
        (lambda: ClassBalanced(LABELS, 2, classes=0), "classes is 0.*expected 1 to 3"),
        (lambda: ClassBalanced(None, 4), "ClassBalanced needs labels"),
        (lambda: ClassBalanced(torch.eye(3), 4), r"labels are \[3, 3\]"),
        (lambda: Shuffled(10, 5).batch(0, 2), r"step 2 of an epoch of 2"),
        (lambda: InOrder(10, 5).batch(0, -1), r"step -1"),
    ],
)
def test_errors(make: Callable[[], object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make()
