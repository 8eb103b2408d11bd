"""Tests of kontrast.data.loader."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import get_args

import pytest
import torch
from scipy import stats
from torch import Tensor

from kontrast.data import noisy_labels
from kontrast.data.dataset import Memory, Split
from kontrast.data.images import Crop
from kontrast.data.loader import (
    SAMPLERS,
    Batch,
    ClassBalanced,
    InOrder,
    Loader,
    Sampler,
    Shuffled,
    Stream,
    WithReplacement,
    generator,
    seed_of,
)
from kontrast.recipe import Train


def test_every_number_counts_and_so_does_their_order() -> None:
    names = [(s, *rest) for s in range(4) for n in range(4) for rest in itertools.product(range(4), repeat=n)]
    assert len({seed_of(*name) for name in names}) == len(names)


def test_known_value() -> None:
    """SplitMix64 of the state 0 + φ: the first output of Java's SplittableRandom(0), by its published constants."""
    assert seed_of(0) == 0xE220A8397B1DCDAF >> 1


def test_half_of_the_bits_change_with_the_step() -> None:
    changed = [bin(seed_of(0, 0, k) ^ seed_of(0, 0, k + 1)).count("1") for k in range(2000)]
    mean = sum(changed) / len(changed)
    assert abs(mean - 31.5) < 4 * (63 / 4 / 2000) ** 0.5  # binomial(63, ½), four standard errors


def test_negative_and_large_numbers_are_taken() -> None:
    assert 0 <= seed_of(-1, 2**70, -5) < 2**63


def test_generators_of_one_name_agree() -> None:
    first, again, other = generator(3, 1), generator(3, 1), generator(3, 2)
    assert torch.equal(torch.rand(5, generator=first), torch.rand(5, generator=again))
    assert not torch.equal(torch.rand(5, generator=generator(3, 1)), torch.rand(5, generator=other))


def test_noise_does_not_follow_the_order_of_an_epoch() -> None:
    """Half of each batch of 100 is noisy, to five standard deviations of the hypergeometric draw (σ = 4.7)."""
    labels = torch.arange(1000) % 10
    noisy = noisy_labels(labels, 0.5, 10, seed=0) != labels
    sampler = Shuffled(1000, 100, seed=0)
    shares = [int(noisy[sampler.batch(0, k)].sum()) for k in range(10)]
    assert all(26 <= share <= 74 for share in shares), shares


def test_augmentation_does_not_follow_the_order_of_a_batch() -> None:
    split = Split(Memory(torch.zeros(45000, 1)))
    batch = Loader(split, WithReplacement(45000, 256, seed=0), seed=0).batch(0, 0)
    drawn = torch.randint(45000, (256,), generator=batch.generator())
    assert float((drawn % 9 == batch.indices % 9).float().mean()) < 0.25  # 1/9 by chance, 1 if both were one draw
    assert len({int(stream) for stream in Stream}) == len(Stream)


SAMPLER_LABELS = torch.tensor([0] * 30 + [1] * 12 + [5] * 3)

MADE: dict[str, Callable[[int], Sampler]] = {
    "shuffled": lambda seed: Shuffled(45, 8, seed=seed),
    "shuffled, kept": lambda seed: Shuffled(45, 8, seed=seed, drop_last=False),
    "with replacement": lambda seed: WithReplacement(45, 8, seed=seed),
    "class-balanced": lambda seed: ClassBalanced(SAMPLER_LABELS, 4, seed=seed),
    "class-balanced, two": lambda seed: ClassBalanced(SAMPLER_LABELS, 4, classes=2, seed=seed),
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
        assert SAMPLER_LABELS[rows].bincount().tolist() == [4, 4, 0, 0, 0, 4]
        for c in (0, 1):
            own = rows[SAMPLER_LABELS[rows] == c]
            assert len(own.unique()) == 4, "without repeats while there are enough"
    two = MADE["class-balanced, two"](0)
    seen = {tuple(sorted(SAMPLER_LABELS[rows].unique().tolist())) for e in range(10) for rows in epoch(two, e)}
    assert seen == {(0, 1), (0, 5), (1, 5)}


def test_a_small_class_repeats_each_of_its_samples_before_any_thrice() -> None:
    rows = ClassBalanced(SAMPLER_LABELS, 7, seed=0).batch(0, 0)
    counts = rows[SAMPLER_LABELS[rows] == 5].bincount()[42:]
    assert sorted(counts.tolist()) == [2, 2, 3]


SPLIT = Split(Memory(torch.zeros(45, 1)), SAMPLER_LABELS)


def test_a_recipe_names_every_sampler_of_the_family() -> None:
    assert set(get_args(Train.model_fields["sampler"].annotation)) == set(SAMPLERS)


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("shuffled", Shuffled(45, 9, seed=3)),
        ("with-replacement", WithReplacement(45, 9, seed=3)),
        ("class-balanced", ClassBalanced(SAMPLER_LABELS, 3, seed=3)),
    ],
)
def test_the_sampler_of_a_recipe(name: str, same: Sampler) -> None:
    made = SAMPLERS[name].of(SPLIT, 9, seed=3)
    assert made.steps == same.steps
    assert torch.equal(made.batch(1, 2), same.batch(1, 2))


@pytest.mark.parametrize("size", [45, 46, 500])
def test_a_shuffled_batch_is_at_most_all_rows(size: int) -> None:
    if size <= 45:
        assert SAMPLERS["shuffled"].of(SPLIT, size).steps == 1
        return
    with pytest.raises(
        ValueError, match=rf"train\.batch_size={size}: must be at most the number of training rows .45."
    ):
        SAMPLERS["shuffled"].of(SPLIT, size)


@pytest.mark.parametrize(("size", "hint"), [(2, "Use 3$"), (4, "Use 3 or 6$"), (100, "Use 99 or 102$")])
def test_a_class_balanced_batch_is_a_multiple_of_the_classes(size: int, hint: str) -> None:
    with pytest.raises(ValueError, match=rf"train\.batch_size={size}: must be a multiple of .* classes .3. .*{hint}"):
        SAMPLERS["class-balanced"].of(SPLIT, size)


def test_a_sampler_that_does_not_know_its_chances_says_none() -> None:
    assert InOrder.chance_of_absence([5, 5], 5, 2) is None
    assert InOrder.chance_of_no_positive([5, 5], 2) is None
    assert InOrder.expected_positives([5, 5], 2) is None
    assert InOrder.of(SPLIT, 45).steps == 1


def test_in_order() -> None:
    assert torch.cat(epoch(InOrder(45, 8), 5)).tolist() == list(range(45))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Shuffled(10, 11), "batch_size=11: must be at most the number of samples .10."),
        (lambda: Shuffled(0, 1), "num_samples: must be at least 1"),
        (lambda: WithReplacement(10, 0), "batch_size=0: must be at least 1"),
        (lambda: WithReplacement(10, 2, steps=-1), "steps=-1: must be at least 1"),
        (lambda: ClassBalanced(SAMPLER_LABELS, 2, steps=0), "steps=0: must be"),
        (lambda: ClassBalanced(SAMPLER_LABELS, 2, classes=4), "classes=4: must be 1 to 3"),
        (lambda: ClassBalanced(SAMPLER_LABELS, 2, classes=0), "classes=0: must be 1 to 3"),
        (lambda: ClassBalanced(None, 4), "labels=None: must be set for ClassBalanced"),
        (lambda: ClassBalanced(torch.eye(3), 4), r"labels of shape \[3, 3\]"),
        (lambda: Shuffled(10, 5).batch(0, 2), r"step=2: must be 0 to 1"),
        (lambda: InOrder(10, 5).batch(0, -1), r"step=-1: must be 0 to 1"),
    ],
)
def test_sampler_errors(make: Callable[[], object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make()


N = 23
IMAGES = torch.randint(256, (N, 3, 4, 4), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
LABELS = torch.arange(N) % 3


@dataclass(frozen=True)
class Decoded:
    """Inputs that are read one by one, as from files."""

    def __len__(self) -> int:
        return N

    @property
    def shape(self) -> tuple[int, ...] | None:
        return None

    def read(self, indices: Tensor, crop: Crop | None = None, seeds: Sequence[int] | None = None) -> Tensor:
        assert crop is not None
        assert seeds is not None
        return torch.stack([crop(IMAGES[i], seed) for i, seed in zip(indices.tolist(), seeds, strict=True)])


def crop(image: Tensor, seed: int) -> Tensor:
    """Two of four columns, by the seed."""
    start = int(torch.randint(3, (), generator=torch.Generator().manual_seed(seed)))
    return image[:, :, start : start + 2]


def files(**options: int) -> Loader:
    return Loader(Split(Decoded(), LABELS), Shuffled(N, 5, seed=2), seed=9, crop=crop, **options)


def same(a: Batch, b: Batch) -> bool:
    assert a.labels is not None
    assert b.labels is not None
    fields = (a.epoch, a.step, a.total, a.place) == (b.epoch, b.step, b.total, b.place)
    return fields and all(map(torch.equal, (a.inputs, a.labels, a.indices), (b.inputs, b.labels, b.indices)))


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_change_nothing(workers: int) -> None:
    alone, helped = list(files().epoch(1)), list(files(workers=workers).epoch(1))
    assert len(alone) == len(helped) == 4
    assert all(map(same, alone, helped))


@pytest.mark.parametrize("workers", [0, 2])
def test_an_epoch_begun_in_the_middle_is_its_rest(workers: int) -> None:
    whole = list(files().epoch(3))
    assert all(map(same, whole[2:], files(workers=workers).epoch(3, start=2)))


@pytest.mark.parametrize("world_size", [2, 3, 5])
def test_ranks_share_the_global_batch(world_size: int) -> None:
    whole = list(files().epoch(0))
    parts = [list(files(rank=r, world_size=world_size).epoch(0)) for r in range(world_size)]
    for step, batch in enumerate(whole):
        here = [part[step] for part in parts]
        assert torch.equal(torch.cat([p.inputs for p in here]), batch.inputs)
        assert torch.equal(torch.cat([p.indices for p in here]), batch.indices)
        assert {p.total for p in here} == {batch.total}
        assert [p.place.start for p in here[1:]] == [p.place.stop for p in here[:-1]]


def test_more_ranks_than_rows() -> None:
    with pytest.raises(ValueError, match="a batch of 5 rows: must have at least 7, one for each rank"):
        files(rank=0, world_size=7).batch(0, 0)


def test_crops_differ_between_epochs_and_places() -> None:
    loader = files()
    first = {int(i): x for b in loader.epoch(0) for i, x in zip(b.indices, b.inputs, strict=True)}
    later = {int(i): x for b in loader.epoch(1) for i, x in zip(b.indices, b.inputs, strict=True)}
    both = first.keys() & later.keys()
    assert 0 < sum(torch.equal(first[i], later[i]) for i in both) < len(both)


def test_rows_in_memory_are_indexed_and_take_no_workers() -> None:
    loader = Loader(Split(Memory(IMAGES), LABELS), ClassBalanced(LABELS, 2, seed=0), workers=4)
    assert loader.workers == 0
    for batch in loader.epoch(0):
        assert torch.equal(batch.inputs, IMAGES[batch.indices])
        assert batch.labels is not None
        assert torch.equal(batch.labels, LABELS[batch.indices])


def test_unlabelled() -> None:
    batches = list(Loader(Split(Memory(IMAGES), None), InOrder(N, 10)).epoch(0))
    assert [b.labels for b in batches] == [None] * 3
    assert [len(b.inputs) for b in batches] == [10, 10, 3]


def test_draws_of_a_batch_are_the_same_on_every_rank_and_told_apart_by_stream() -> None:
    first, second = (next(files(rank=r, world_size=2).epoch(0)) for r in (0, 1))
    draws = [torch.rand(4, generator=b.generator(3)) for b in (first, second)]
    assert torch.equal(*draws)
    assert not torch.equal(draws[0], torch.rand(4, generator=first.generator(4)))


def test_sampler_of_another_length() -> None:
    with pytest.raises(ValueError, match="the sampler draws from 24 samples: must be 23"):
        Loader(Split(Memory(IMAGES), None), InOrder(24, 10))


def test_to_a_device_keeps_everything() -> None:
    batch = next(files().epoch(0))
    assert same(batch.to("cpu"), batch)


@pytest.mark.parametrize(
    ("options", "says"),
    [({"rank": 2, "world_size": 2}, "rank=2: must be 0 to 1 when world_size=2"), ({"workers": -1}, "workers")],
)
def test_loader_errors(options: dict[str, int], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        files(**options)


class Broken(Decoded):
    """A file of row 7 is gone."""

    def read(self, indices: Tensor, crop: Crop | None = None, seeds: Sequence[int] | None = None) -> Tensor:
        if 7 in indices.tolist():
            raise ValueError("seven.png is gone; put it back")
        return super().read(indices, crop, seeds)


@pytest.mark.parametrize("workers", [0, 1])
def test_an_error_of_a_worker_is_as_short_as_ones_own(workers: int) -> None:
    loader = Loader(Split(Broken(), LABELS), InOrder(N, 5), crop=crop, workers=workers)
    with pytest.raises(ValueError, match=r"^seven\.png is gone; put it back$"):
        list(loader.epoch(0))
