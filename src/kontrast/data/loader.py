"""Batches of a split, from any step on, for one rank or many.

What is in batch k, and the seeds of the random crops in it, depend on (seed, epoch, k) and a sample's place in the
global batch. Sets in memory are indexed; sets that are decoded when read go through worker processes, a batch each, in
order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from kontrast.data.records import Crop, Memory, Split
from kontrast.data.samplers import Sampler
from kontrast.data.seeds import Stream, generator, seed_of


@dataclass(frozen=True, eq=False)
class Batch:
    """One rank's part of a global batch."""

    inputs: Tensor  # uint8 [n, C, H, W] (or [n, V, C, H, W] from a crop of several views), or float32 [n, D]
    labels: Tensor | None  # int64 [n]
    indices: Tensor  # int64 [n], rows of the split
    place: slice  # of these rows in the global batch
    total: int  # rows of the global batch
    epoch: int
    step: int
    seed: int

    def generator(self, stream: int = Stream.AUGMENT, *numbers: int) -> torch.Generator:
        """For random draws about the global batch, the same on every rank; ``stream`` tells what they are for.

        Without one it is that of augmentations: ``views(batch.inputs, batch.generator())``.
        """
        return generator(self.seed, stream, self.epoch, self.step, *numbers)

    def to(self, device: torch.device | str) -> Batch:
        """The same batch on a device; ``indices`` too."""
        labels = None if self.labels is None else self.labels.to(device, non_blocking=True)
        return Batch(
            self.inputs.to(device, non_blocking=True),
            labels,
            self.indices.to(device, non_blocking=True),
            self.place,
            self.total,
            self.epoch,
            self.step,
            self.seed,
        )


class Loader:
    """The batches of a split in the order of a sampler.

    >>> from kontrast.data import Memory, Shuffled, Split
    >>> split = Split(Memory(torch.arange(12.0).view(6, 2)), torch.arange(6) % 2)
    >>> loader = Loader(split, Shuffled(6, 2, seed=0))
    >>> whole = [batch.indices.tolist() for batch in loader.epoch(0)]
    >>> [batch.indices.tolist() for batch in loader.epoch(0, start=1)] == whole[1:]
    True
    """

    def __init__(
        self,
        split: Split,
        sampler: Sampler,
        *,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
        workers: int = 0,
        crop: Crop | None = None,
    ) -> None:
        if not 0 <= rank < world_size:
            raise ValueError(f"rank {rank} of {world_size}: ranks are numbered 0 … world_size − 1")
        if workers < 0:
            raise ValueError(f"workers must be 0 (decode here) or more, got {workers}")
        rows = getattr(sampler, "num_samples", None)
        if rows is not None and rows != len(split):
            raise ValueError(
                f"the sampler draws from {rows:,} samples and the split has {len(split):,}; make it for these"
            )
        self.split, self.sampler, self.seed, self.crop = split, sampler, seed, crop
        self.rank, self.world_size = rank, world_size
        # Rows in memory are there at once: a worker would only copy them between processes.
        self.workers = 0 if isinstance(split.inputs, Memory) else workers

    def __len__(self) -> int:
        return self.sampler.steps

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The batches of an epoch from step ``start`` on."""
        if self.workers == 0:
            return (self.batch(epoch, step) for step in range(start, len(self)))
        return _raised(
            DataLoader(
                _Batches(self, epoch),
                batch_size=None,
                sampler=range(start, len(self)),
                num_workers=self.workers,
                worker_init_fn=_one_thread,
            )
        )

    def batch(self, epoch: int, step: int) -> Batch:
        """One batch, by itself."""
        whole = self.sampler.batch(epoch, step)
        if len(whole) < self.world_size:
            raise ValueError(
                f"a batch of {len(whole)} cannot be shared by {self.world_size} ranks: raise the batch size (it is the "
                f"global one), or drop the last batch"
            )
        place = slice(*(len(whole) * r // self.world_size for r in (self.rank, self.rank + 1)))
        indices = whole[place]
        seeds = None
        if self.crop is not None:
            seeds = [seed_of(self.seed, Stream.CROP, epoch, step, i) for i in range(place.start, place.stop)]
        labels = None if self.split.labels is None else self.split.labels[indices]
        inputs = self.split.inputs.read(indices, self.crop, seeds)
        return Batch(inputs, labels, indices, place, len(whole), epoch, step, self.seed)


class _Batches(Dataset["Batch | ValueError"]):
    """An epoch as torch's loader wants it: batch k at k, or what is wrong with it."""

    def __init__(self, loader: Loader, epoch: int) -> None:
        self.loader, self.at = loader, epoch

    def __getitem__(self, step: int) -> Batch | ValueError:
        try:
            return self.loader.batch(self.at, step)
        except ValueError as error:  # raised in the worker it would come out as a page of tracebacks
            return error


def _raised(batches: Iterable[Batch | ValueError]) -> Iterator[Batch]:
    for batch in batches:
        if isinstance(batch, ValueError):
            raise batch
        yield batch


def _one_thread(worker: int) -> None:
    """Workers share the cores; each with threads of its own they would get in each other's way."""
    torch.set_num_threads(1)
