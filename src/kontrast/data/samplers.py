"""Which samples are in batch k of an epoch: a function of (seed, epoch, k) and nothing else.

A sampler knows how many steps an epoch has and gives the row numbers of any batch when asked, in any order; so a run
goes on at any step, and every rank takes its part of the same global batch. Batch sizes are global.
"""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor

from kontrast.data.seeds import Stream, generator


class Sampler(Protocol):
    """Rows of the data set for each batch."""

    @property
    def steps(self) -> int:
        """Batches in an epoch."""

    def batch(self, epoch: int, step: int) -> Tensor:
        """Row numbers ``[batch]`` of a batch, int64."""


class Shuffled:
    """Every sample once an epoch, in an order of its own each time; the last, smaller batch is dropped unless kept.

    >>> sampler = Shuffled(10, 4, seed=0)
    >>> sampler.steps, sorted(torch.cat([Shuffled(10, 4, drop_last=False).batch(0, k) for k in range(3)]).tolist())
    (2, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    """

    def __init__(self, num_samples: int, batch_size: int, *, seed: int = 0, drop_last: bool = True) -> None:
        _check(num_samples, batch_size)
        if drop_last and batch_size > num_samples:
            raise ValueError(
                f"batch_size {batch_size} is above the {num_samples} samples, so every epoch would be empty: "
                f"use a smaller batch, or drop_last=False"
            )
        self.num_samples, self.batch_size, self.seed, self.drop_last = num_samples, batch_size, seed, drop_last
        self._order: tuple[int, Tensor] | None = None  # of the epoch asked for last

    @property
    def steps(self) -> int:
        """Batches in an epoch."""
        whole, rest = divmod(self.num_samples, self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def batch(self, epoch: int, step: int) -> Tensor:
        """Row numbers of a batch."""
        _check_step(step, self.steps)
        if self._order is None or self._order[0] != epoch:
            self._order = epoch, torch.randperm(self.num_samples, generator=generator(self.seed, Stream.ORDER, epoch))
        return self._order[1][step * self.batch_size : (step + 1) * self.batch_size].clone()


class WithReplacement:
    """Every batch drawn uniformly from all samples, as Graf et al. do; an epoch is as many steps as given.

    >>> WithReplacement(3, 5, steps=100).batch(0, 7).shape
    torch.Size([5])
    """

    def __init__(self, num_samples: int, batch_size: int, *, seed: int = 0, steps: int | None = None) -> None:
        _check(num_samples, batch_size, steps)
        self.num_samples, self.batch_size, self.seed = num_samples, batch_size, seed
        self._steps = math.ceil(num_samples / batch_size) if steps is None else steps

    @property
    def steps(self) -> int:
        """Batches in an epoch."""
        return self._steps

    def batch(self, epoch: int, step: int) -> Tensor:
        """Row numbers of a batch."""
        _check_step(step, self.steps)
        return torch.randint(
            self.num_samples, (self.batch_size,), generator=generator(self.seed, Stream.ORDER, epoch, step)
        )


class ClassBalanced:
    """``per_class`` samples of each of ``classes`` classes a batch (of all, if left out), in random order.

    Classes and samples are drawn anew for each batch; a class with fewer samples than asked for gives some twice.

    >>> labels = torch.tensor([0, 0, 0, 1, 1, 2, 2, 2])
    >>> labels[ClassBalanced(labels, per_class=2, steps=10).batch(0, 3)].bincount()
    tensor([2, 2, 2])
    """

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
            raise ValueError("ClassBalanced needs labels and got None; Shuffled and WithReplacement do without")
        if labels.ndim != 1:
            raise ValueError(f"labels are {list(labels.shape)}; expected [N], one a sample")
        _check(len(labels), per_class, steps)
        self.members = [torch.nonzero(labels == c)[:, 0] for c in torch.unique(labels)]
        self.per_class, self.seed = per_class, seed
        self.classes = len(self.members) if classes is None else classes
        if not 1 <= self.classes <= len(self.members):
            raise ValueError(
                f"classes is {classes}, but the labels hold {len(self.members)}; expected 1 to {len(self.members)}, or "
                "None for all"
            )
        self.batch_size = self.classes * per_class
        self._steps = math.ceil(len(labels) / self.batch_size) if steps is None else steps

    @property
    def steps(self) -> int:
        """Batches in an epoch."""
        return self._steps

    def batch(self, epoch: int, step: int) -> Tensor:
        """Row numbers of a batch."""
        _check_step(step, self.steps)
        draw = generator(self.seed, Stream.ORDER, epoch, step)
        chosen = torch.randperm(len(self.members), generator=draw)[: self.classes]
        rows = torch.cat([self._some(self.members[int(c)], draw) for c in chosen])
        return rows[torch.randperm(len(rows), generator=draw)]

    def _some(self, members: Tensor, draw: torch.Generator) -> Tensor:
        rounds = math.ceil(self.per_class / len(members))
        order = torch.cat([torch.randperm(len(members), generator=draw) for _ in range(rounds)])
        return members[order[: self.per_class]]


class InOrder:
    """Every sample once, first to last: for evaluation.

    >>> [InOrder(5, 2).batch(0, k).tolist() for k in range(3)]
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, num_samples: int, batch_size: int) -> None:
        _check(num_samples, batch_size)
        self.num_samples, self.batch_size = num_samples, batch_size

    @property
    def steps(self) -> int:
        """Batches in an epoch."""
        return math.ceil(self.num_samples / self.batch_size)

    def batch(self, epoch: int, step: int) -> Tensor:
        """Row numbers of a batch."""
        _check_step(step, self.steps)
        return torch.arange(step * self.batch_size, min((step + 1) * self.batch_size, self.num_samples))


def _check(num_samples: int, batch_size: int, steps: int | None = None) -> None:
    if num_samples < 1:
        raise ValueError("there are no samples to draw from")
    if batch_size < 1:
        raise ValueError(f"a batch needs at least 1 sample, got {batch_size}")
    if steps is not None and steps < 1:
        raise ValueError(
            f"steps is {steps}; expected at least 1 batch an epoch, or None for as many as the samples give"
        )


def _check_step(step: int, steps: int) -> None:
    if not 0 <= step < steps:
        raise ValueError(f"step {step} of an epoch of {steps} (0 … {steps - 1})")
