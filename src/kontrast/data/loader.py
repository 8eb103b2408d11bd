r"""Random seeds, samplers, and the loader that reads batches of a split.

Everything here is a function of (seed, epoch, step): which rows are in a batch, and the seeds of its random crops. A
sampler returns the row numbers of any batch in any order, so a run can resume at any step, and every rank takes its
part of the same global batch. Batch sizes are global. Inputs in memory are indexed; inputs that are decoded when read
go through worker processes, one batch each, in order.

    (1)  state ← seed,   then for each further number v:   state ← mix(state + (v + 1)·φ),   φ = 0x9E3779B97F4A7C15

mix is SplitMix64's finaliser (Steele, Lea & Flood), which changes about half of the bits for every bit changed, so that
neighbouring epochs and steps have unrelated draws. The first number after the seed is a `Stream`, the purpose of the
draw, so that two kinds of draws never share random numbers: if the order of an epoch and the noisy labels were drawn
alike, all noisy labels would come first.

What batches hold of the classes, for N rows, n_c of class c, b of them in a batch:

    (2)  P(no row of c in the batch)     = C(N−n_c, b)/C(N, b),            with replacement (1 − n_c/N)^b
    (3)  P(no other row of c beside one) = C(N−n_c, b−1)/C(N−1, b−1),      with replacement (1 − n_c/N)^{b−1}
    (4)  others of its class beside a row, mean over rows = Σ_c (n_c/N)(b−1)(n_c−1)/(N−1),  with replacement n_c/N

A class-balanced batch has b/K rows of each of K classes.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import ClassVar, Self

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from kontrast.data.dataset import Memory, Split
from kontrast.data.images import Crop
from kontrast.registry import FAMILIES

_MASK = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15


class Stream(IntEnum):
    """The purpose of a draw. Draws of your own take numbers from 100 on.

    >>> seed_of(0, Stream.ORDER) == seed_of(0, Stream.NOISE)
    False
    """

    ORDER = 1  # which samples are in a batch
    CROP = 2  # crops at decoding
    AUGMENT = 3  # the rest of the augmentation
    NOISE = 4  # wrong labels
    NETWORK = 5  # dropout, and whatever else a network draws
    KEYS = 6  # shuffled keys
    HELD_OUT = 7  # which samples are held out of training


def seed_of(seed: int, *numbers: int) -> int:
    """Combine several numbers into one seed of 63 bits (1).

    Args:
        seed: the seed of the run.
        *numbers: the stream, then whatever else names the draw, such as epoch and step.

    Returns:
        The seed.

    >>> seed_of(0, Stream.ORDER, 2) == seed_of(0, Stream.ORDER, 2), seed_of(0, Stream.ORDER, 2) == seed_of(0, 2, 1)
    (True, False)
    """
    state = _mix((seed + _GOLDEN) & _MASK)
    for number in numbers:
        state = _mix((state + (number + 1) * _GOLDEN) & _MASK)
    return state >> 1


def generator(seed: int, *numbers: int) -> torch.Generator:
    """Make a CPU generator for one draw.

    Args:
        seed: the seed of the run.
        *numbers: as for `seed_of`.

    Returns:
        The generator.

    >>> one, same, other = (torch.rand(2, generator=generator(0, s, 7)) for s in (3, Stream.AUGMENT, Stream.CROP))
    >>> one.equal(same), one.equal(other)
    (True, False)
    """
    return torch.Generator().manual_seed(seed_of(seed, *numbers))


def _mix(x: int) -> int:
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & _MASK
    return x ^ (x >> 31)


class Sampler(abc.ABC):
    """The rows of each batch: a function of epoch and step.

    `of` makes the sampler that a recipe names. The three ``classmethod``s below it say what batches hold of the
    classes, for the doctor; a sampler that does not know returns None.

    >>> SAMPLERS.names(), SAMPLERS["with-replacement"].chance_of_absence([5, 5], 5, 2)
    (['shuffled', 'with-replacement', 'class-balanced'], 0.25)
    """

    balances_classes: ClassVar[bool] = False
    """Whether every batch has as many rows of each class."""

    steps: int
    """Batches in an epoch."""

    @abc.abstractmethod
    def batch(self, epoch: int, step: int) -> Tensor:
        """Row numbers ``[batch]`` of a batch, int64."""

    @classmethod
    def of(cls, split: Split, batch_size: int, *, seed: int = 0) -> Self:
        """Make the sampler that ``train.sampler`` of a recipe names.

        Args:
            split: the training rows.
            batch_size: rows of a global batch.
            seed: of the draws.

        Raises:
            ValueError: the batch size or the labels do not fit; the error names the recipe's key.

        >>> Shuffled.of(Split(Memory(torch.eye(3))), 2).steps
        1
        """
        return cls(len(split), batch_size, seed=seed)  # type: ignore[call-arg]

    @classmethod
    def chance_of_absence(cls, sizes: Sequence[int], size: int, batch_size: int) -> float | None:
        """The chance (2) that a batch has no row of a class.

        Args:
            sizes: rows of each class.
            size: rows of the class in question.
            batch_size: rows of a batch.
        """
        return None

    @classmethod
    def chance_of_no_positive(cls, sizes: Sequence[int], batch_size: int) -> float | None:
        """The share (3) of rows without another row of their class in the batch, in expectation.

        Args:
            sizes: rows of each class.
            batch_size: rows of a batch.
        """
        return None

    @classmethod
    def expected_positives(cls, sizes: Sequence[int], batch_size: int) -> float | None:
        """How many other rows of its class (4) a row has in the batch, in expectation.

        Args:
            sizes: rows of each class.
            batch_size: rows of a batch.
        """
        return None


class Shuffled(Sampler):
    """Every sample once in an epoch, in a new order each time.

    Args:
        num_samples: rows of the split.
        batch_size: rows of a global batch.
        seed: of the order.
        drop_last: whether a last, smaller batch is dropped.

    Raises:
        ValueError: no samples, or a batch size outside its range.

    >>> sampler = Shuffled(10, 4, seed=0)
    >>> sampler.steps, sorted(torch.cat([Shuffled(10, 4, drop_last=False).batch(0, k) for k in range(3)]).tolist())
    (2, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    """

    def __init__(self, num_samples: int, batch_size: int, *, seed: int = 0, drop_last: bool = True) -> None:
        _check(num_samples, batch_size)
        if drop_last and batch_size > num_samples:
            raise ValueError(
                f"batch_size={batch_size}: must be at most the number of samples ({num_samples}) when drop_last=True. "
                "Use a smaller batch, or drop_last=False"
            )
        self.num_samples, self.batch_size, self.seed = num_samples, batch_size, seed
        self.steps = num_samples // batch_size if drop_last else math.ceil(num_samples / batch_size)
        self._order: tuple[int, Tensor] | None = None  # the last epoch and its order

    def batch(self, epoch: int, step: int) -> Tensor:
        _check_step(step, self.steps)
        if self._order is None or self._order[0] != epoch:
            self._order = epoch, torch.randperm(self.num_samples, generator=generator(self.seed, Stream.ORDER, epoch))
        return self._order[1][step * self.batch_size : (step + 1) * self.batch_size].clone()

    @classmethod
    def of(cls, split: Split, batch_size: int, *, seed: int = 0) -> Self:
        """Make it for a recipe; the last, smaller batch of an epoch is dropped (see `Sampler.of`)."""
        if batch_size > len(split):
            raise ValueError(
                f"train.batch_size={batch_size}: must be at most the number of training rows ({len(split)}) when "
                "sampler=shuffled. Use a smaller batch"
            )
        return cls(len(split), batch_size, seed=seed)

    @classmethod
    def chance_of_absence(cls, sizes: Sequence[int], size: int, batch_size: int) -> float:
        """(2) without replacement."""
        return _chance_of_none(sum(sizes), size, batch_size)

    @classmethod
    def chance_of_no_positive(cls, sizes: Sequence[int], batch_size: int) -> float:
        """(3) without replacement."""
        n = sum(sizes)
        return sum(m / n * _chance_of_none(n - 1, m - 1, batch_size - 1) for m in sizes)

    @classmethod
    def expected_positives(cls, sizes: Sequence[int], batch_size: int) -> float:
        """(4) without replacement."""
        n = sum(sizes)
        return sum(m / n * (batch_size - 1) * (m - 1) / max(n - 1, 1) for m in sizes)


def _chance_of_none(n: int, members: int, batch_size: int) -> float:
    """The probability that none of the members is among ``batch_size`` of n rows."""
    rest = n - members
    if batch_size > rest:
        return 0.0
    logs = math.lgamma(rest + 1) - math.lgamma(rest - batch_size + 1)
    return math.exp(logs - math.lgamma(n + 1) + math.lgamma(n - batch_size + 1))


class WithReplacement(Sampler):
    """Every batch drawn uniformly from all samples, as Graf et al. do.

    Args:
        num_samples: rows of the split.
        batch_size: rows of a global batch.
        seed: of the draws.
        steps: batches in an epoch; None is ``num_samples / batch_size``, rounded up.

    Raises:
        ValueError: a number below 1.

    >>> WithReplacement(3, 5, steps=100).batch(0, 7).shape
    torch.Size([5])
    """

    def __init__(self, num_samples: int, batch_size: int, *, seed: int = 0, steps: int | None = None) -> None:
        _check(num_samples, batch_size, steps)
        self.num_samples, self.batch_size, self.seed = num_samples, batch_size, seed
        self.steps = math.ceil(num_samples / batch_size) if steps is None else steps

    def batch(self, epoch: int, step: int) -> Tensor:
        _check_step(step, self.steps)
        return torch.randint(
            self.num_samples, (self.batch_size,), generator=generator(self.seed, Stream.ORDER, epoch, step)
        )

    @classmethod
    def chance_of_absence(cls, sizes: Sequence[int], size: int, batch_size: int) -> float:
        """(2) with replacement."""
        return (1 - size / sum(sizes)) ** batch_size

    @classmethod
    def chance_of_no_positive(cls, sizes: Sequence[int], batch_size: int) -> float:
        """(3) with replacement."""
        n = sum(sizes)
        return sum(m / n * (1 - m / n) ** (batch_size - 1) for m in sizes)

    @classmethod
    def expected_positives(cls, sizes: Sequence[int], batch_size: int) -> float:
        """(4) with replacement."""
        n = sum(sizes)
        return sum(m / n * (batch_size - 1) * m / n for m in sizes)


class ClassBalanced(Sampler):
    """``per_class`` samples of each class in a batch, in random order.

    Classes and samples are drawn anew for each batch; a class with fewer samples gives some of them twice.

    Args:
        labels: int64 ``[N]``.
        per_class: samples of each class.
        classes: how many classes are drawn for a batch; None: all.
        seed: of the draws.
        steps: batches in an epoch; None is ``N / batch size``, rounded up.

    Raises:
        ValueError: no labels, or a number outside its range.

    >>> labels = torch.tensor([0, 0, 0, 1, 1, 2, 2, 2])
    >>> labels[ClassBalanced(labels, per_class=2, steps=10).batch(0, 3)].bincount()
    tensor([2, 2, 2])
    """

    balances_classes = True

    def __init__(
        self,
        labels: Tensor | None,
        per_class: int,
        *,
        classes: int | None = None,
        seed: int = 0,
        steps: int | None = None,
    ) -> None:
        if labels is None:
            raise ValueError("labels=None: must be set for ClassBalanced. Use Shuffled without labels")
        if labels.ndim != 1:
            raise ValueError(f"labels of shape {list(labels.shape)}: must be [N], one for each sample")
        _check(len(labels), per_class, steps)
        self.members = [torch.nonzero(labels == c)[:, 0] for c in torch.unique(labels)]
        self.per_class, self.seed = per_class, seed
        self.classes = len(self.members) if classes is None else classes
        if not 1 <= self.classes <= len(self.members):
            raise ValueError(
                f"classes={classes}: must be 1 to {len(self.members)}, the number of classes in labels, or None for all"
            )
        self.batch_size = self.classes * per_class
        self.steps = math.ceil(len(labels) / self.batch_size) if steps is None else steps

    def batch(self, epoch: int, step: int) -> Tensor:
        _check_step(step, self.steps)
        draw = generator(self.seed, Stream.ORDER, epoch, step)
        classes = torch.randperm(len(self.members), generator=draw)[: self.classes]
        rows = torch.cat([self._some(self.members[int(c)], draw) for c in classes])
        return rows[torch.randperm(len(rows), generator=draw)]

    def _some(self, members: Tensor, draw: torch.Generator) -> Tensor:
        rounds = math.ceil(self.per_class / len(members))
        order = torch.cat([torch.randperm(len(members), generator=draw) for _ in range(rounds)])
        return members[order[: self.per_class]]

    @classmethod
    def of(cls, split: Split, batch_size: int, *, seed: int = 0) -> Self:
        """Make it for a recipe: every class in every batch (see `Sampler.of`)."""
        labels = split.require_labels("train.sampler=class-balanced")
        classes = len(torch.unique(labels))
        per_class = batch_size // classes
        if batch_size % classes:
            below = f"{per_class * classes} or " if per_class else ""
            raise ValueError(
                f"train.batch_size={batch_size}: must be a multiple of the number of classes ({classes}) when "
                f"sampler=class-balanced. Use {below}{(per_class + 1) * classes}"
            )
        return cls(labels, per_class, seed=seed)

    @classmethod
    def chance_of_absence(cls, sizes: Sequence[int], size: int, batch_size: int) -> float:
        """0: every class is in every batch."""
        return 0.0

    @classmethod
    def chance_of_no_positive(cls, sizes: Sequence[int], batch_size: int) -> float:
        """1 if there is one row of each class in a batch, else 0."""
        return 1.0 if batch_size // len(sizes) < 2 else 0.0

    @classmethod
    def expected_positives(cls, sizes: Sequence[int], batch_size: int) -> float:
        """The rows of a class in a batch but one."""
        return max(0.0, batch_size / len(sizes) - 1)


class InOrder(Sampler):
    """Every sample once, first to last: for evaluation.

    Args:
        num_samples: rows of the split.
        batch_size: rows of a global batch.

    Raises:
        ValueError: a number below 1.

    >>> [InOrder(5, 2).batch(0, k).tolist() for k in range(3)]
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, num_samples: int, batch_size: int) -> None:
        _check(num_samples, batch_size)
        self.num_samples, self.batch_size, self.steps = num_samples, batch_size, math.ceil(num_samples / batch_size)

    @classmethod
    def of(cls, split: Split, batch_size: int, *, seed: int = 0) -> Self:
        """Make it for these rows; nothing is random (see `Sampler.of`)."""
        return cls(len(split), batch_size)

    def batch(self, epoch: int, step: int) -> Tensor:
        _check_step(step, self.steps)
        return torch.arange(step * self.batch_size, min((step + 1) * self.batch_size, self.num_samples))


ENTRIES = {"shuffled": Shuffled, "with-replacement": WithReplacement, "class-balanced": ClassBalanced}
"""The samplers that a recipe can name; `InOrder` is for evaluation."""

SAMPLERS = FAMILIES["sampler"]


def _check(num_samples: int, batch_size: int, steps: int | None = None) -> None:
    if num_samples < 1:
        raise ValueError("num_samples: must be at least 1")
    if batch_size < 1:
        raise ValueError(f"batch_size={batch_size}: must be at least 1")
    if steps is not None and steps < 1:
        raise ValueError(f"steps={steps}: must be at least 1, or None for as many as the samples give")


def _check_step(step: int, steps: int) -> None:
    if not 0 <= step < steps:
        raise ValueError(f"step={step}: must be 0 to {steps - 1}, the last of the epoch")


@dataclass(frozen=True, eq=False)
class Batch:
    """One rank's part of a global batch.

    Attributes:
        inputs: uint8 ``[n, C, H, W]`` (``[n, V, C, H, W]`` from a crop of several views), or float32 ``[n, D]``.
        labels: int64 ``[n]``; None without labels.
        indices: The rows of the split, int64 ``[n]``.
        place: The slice of these rows in the global batch.
        total: How many rows the global batch has.
        epoch: The epoch.
        step: The step in the epoch.
        seed: The seed of the loader.

    >>> from kontrast.data import load
    >>> batch = Loader(load("digits").train, InOrder(1437, 32)).batch(epoch=0, step=1)
    >>> batch.inputs.shape, batch.place, batch.total
    (torch.Size([32, 1, 8, 8]), slice(0, 32, None), 32)
    """

    inputs: Tensor
    labels: Tensor | None
    indices: Tensor
    place: slice
    total: int
    epoch: int
    step: int
    seed: int

    def generator(self, stream: int = Stream.AUGMENT, *numbers: int) -> torch.Generator:
        """Make a generator for draws about the global batch, the same on every rank.

        Args:
            stream: the purpose of the draws; without it, augmentation: ``views(batch.inputs, batch.generator())``.
            *numbers: whatever else names the draw.
        """
        return generator(self.seed, stream, self.epoch, self.step, *numbers)

    def to(self, device: torch.device | str) -> Batch:
        """Move the batch to a device, ``indices`` too."""
        inputs, indices = (tensor.to(device, non_blocking=True) for tensor in (self.inputs, self.indices))
        labels = None if self.labels is None else self.labels.to(device, non_blocking=True)
        return replace(self, inputs=inputs, labels=labels, indices=indices)


class Loader:
    """The batches of a split in the order of a sampler.

    Args:
        split: the rows.
        sampler: which rows are in which batch.
        seed: of the crops and of `Batch.generator`.
        rank: which part of each global batch is read.
        world_size: the number of ranks.
        workers: processes that decode; 0 decodes here. Rows in memory need none.
        crop: applied to each image when it is read.

    Raises:
        ValueError: a rank or number of workers outside its range, or a sampler for another number of rows.

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
            raise ValueError(f"rank={rank}: must be 0 to {world_size - 1} when world_size={world_size}")
        if workers < 0:
            raise ValueError(f"workers={workers}: must be 0 (decode in this process) or more")
        rows = getattr(sampler, "num_samples", None)
        if rows is not None and rows != len(split):
            raise ValueError(f"the sampler draws from {rows:,} samples: must be {len(split):,}, the rows of the split")
        self.split, self.sampler, self.seed, self.crop = split, sampler, seed, crop
        self.rank, self.world_size = rank, world_size
        # Rows in memory are there at once: a worker would only copy them between processes.
        self.workers = 0 if isinstance(split.inputs, Memory) else workers

    def __len__(self) -> int:
        return self.sampler.steps

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """Iterate over the batches of an epoch from step ``start`` on."""
        if self.workers == 0:
            return (self.batch(epoch, step) for step in range(start, len(self)))
        steps, batches = range(start, len(self)), _Batches(self, epoch)
        return _raise_errors(
            DataLoader(batches, None, sampler=steps, num_workers=self.workers, worker_init_fn=_one_thread)
        )

    def batch(self, epoch: int, step: int) -> Batch:
        """Read one batch."""
        whole = self.sampler.batch(epoch, step)
        if len(whole) < self.world_size:
            raise ValueError(
                f"a batch of {len(whole)} rows: must have at least {self.world_size}, one for each rank. Raise the "
                "(global) batch size, or drop the last batch"
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
    """An epoch as torch's DataLoader takes it: batch k at index k, or the error that reading it raised."""

    def __init__(self, loader: Loader, epoch: int) -> None:
        self.loader, self.at = loader, epoch

    def __getitem__(self, step: int) -> Batch | ValueError:
        try:
            return self.loader.batch(self.at, step)
        except ValueError as error:  # raised in the worker, it would be printed as a page of tracebacks
            return error


def _raise_errors(batches: Iterable[Batch | ValueError]) -> Iterator[Batch]:
    for batch in batches:
        if isinstance(batch, ValueError):
            raise batch
        yield batch


def _one_thread(worker: int) -> None:
    """Workers share the cores: with several threads each they would slow each other down."""
    torch.set_num_threads(1)
