"""Batches depend on (seed, epoch, step) only: not on where the epoch was begun, on workers or on ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from kontrast.data.loader import Batch, Loader
from kontrast.data.records import Crop, Memory, Split
from kontrast.data.samplers import ClassBalanced, InOrder, Shuffled

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
    with pytest.raises(ValueError, match="a batch of 5 cannot be shared by 7 ranks"):
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
    with pytest.raises(ValueError, match="the sampler draws from 24 samples and the split has 23"):
        Loader(Split(Memory(IMAGES), None), InOrder(24, 10))


def test_to_a_device_keeps_everything() -> None:
    batch = next(files().epoch(0))
    assert same(batch.to("cpu"), batch)


@pytest.mark.parametrize(
    ("options", "says"), [({"rank": 2, "world_size": 2}, "rank 2 of 2"), ({"workers": -1}, "workers")]
)
def test_errors(options: dict[str, int], says: str) -> None:
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
