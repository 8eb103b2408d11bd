"""What every method shares: networks and views in, a loss out, and what is to be done after the optimiser's step.

A step falls into parts that can be called one by one, so that batches larger than memory can go through the networks
in pieces (`kontrast.train.gradients`) while the loss sees them whole:

    keys = method.keys(views, seed)            without gradient: what the loss compares with (momentum methods)
    z    = method.embed(views)                 with gradient, [n, V', D]: sample by sample but for batch norm
    loss = method.objective(z, keys, batch)    on the whole batch; may have parameters of its own
    method.remember(z, keys, batch)            for `after_step`, `report` and `standing`
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kontrast import distributed, losses, models
from kontrast.geometry import bounds


@dataclass(frozen=True)
class Setting:
    """What a method may need to know of its run; None where nobody said."""

    num_samples: int | None = None  # rows of the training split, for a memory bank
    num_classes: int | None = None
    total_steps: int | None = None  # for schedules of its own
    seed: int = 0

    def need(self, name: str, who: str) -> int:
        """A number that must have been said."""
        value: int | None = getattr(self, name)
        if value is None:
            raise ValueError(f"{who} needs {name}: pass setting=Setting({name}=…)")
        return value


@dataclass(frozen=True, eq=False)
class ViewBatch:
    """One rank's rows of a batch, augmented: views float ``[n, V, C, H, W]`` or ``[n, V, D]``, labels and indices.

    Labels are int64 ``[n]``, indices the rows of the training split ``[n]``. ``seed`` belongs to the step and is the
    same on every rank.
    """

    views: Tensor
    labels: Tensor | None = None
    indices: Tensor | None = None
    seed: int = 0

    def __len__(self) -> int:
        return len(self.views)


class Network(nn.Module):
    """An encoder and a head, one after the other: ``x → z``."""

    def __init__(self, encoder: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.encoder, self.head = encoder, head

    def forward(self, x: Tensor) -> Tensor:
        """``x [n, …]`` → ``z [n, D]``."""
        return self.head(self.encoder(x))  # type: ignore[no-any-return]


class Method(nn.Module, ABC):
    """Base of the methods. A new one writes its constructor and `objective`, and whatever else it needs."""

    needs_labels: ClassVar[bool] = False
    fewest_views: ClassVar[int] = 1
    most_views: ClassVar[int | None] = None

    loss: losses.Loss
    network: Network

    def __init__(self, encoder: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.network = Network(encoder, head)
        self._last: tuple[Tensor, Tensor | None, ViewBatch] | None = None

    @property
    def online(self) -> Network:
        """The network that learns and that is evaluated."""
        return self.network

    @property
    def learning(self) -> list[nn.Module]:
        """The networks that `embed` runs through."""
        return [self.online]

    @property
    def fewest_at_once(self) -> int:
        """Images that must at least go through the networks together in training: batch norm needs two values."""
        return 2

    @property
    def encoder(self) -> nn.Module:
        """What a run is for."""
        return self.online.encoder

    # ---------------------------------------------------------------------------------------- the parts of a step

    def keys(self, views: Tensor, seed: int) -> Tensor | None:
        """What the loss compares with, without gradient ``[n, V', D]``; None if that is the embeddings themselves."""
        return None

    def embed(self, views: Tensor) -> Tensor:
        """``views [n, V, …]`` → ``z [n, V, D]``, all in one forward pass."""
        n, v = views.shape[:2]
        z: Tensor = self.online(views.flatten(0, 1))
        return z.view(n, v, -1)

    @abstractmethod
    def objective(self, z: Tensor, keys: Tensor | None, batch: ViewBatch) -> Tensor:
        """The loss of the whole batch, a scalar."""

    def remember(self, z: Tensor, keys: Tensor | None, batch: ViewBatch) -> None:
        """Keep what `after_step`, `report` and `standing` look at."""
        self._last = z.detach(), keys, batch

    def step(self, batch: ViewBatch) -> dict[str, Tensor]:
        """The loss of a batch, with gradient: all parts in turn."""
        self.check(batch)
        keys = self.keys(batch.views, batch.seed)
        z = self.embed(batch.views)
        loss = self.objective(z, keys, batch)
        self.remember(z, keys, batch)
        return {"loss": loss}

    def after_step(self) -> None:
        """What follows the optimiser's step: moving averages, queues, banks. Nothing, unless a method says so."""

    def across_ranks(self) -> None:
        """Batch norm over the values of all ranks from here on, so that many processes are as one."""
        models.sync_batch_norm(self)

    # ---------------------------------------------------------------------------------------- what it tells

    def check(self, batch: ViewBatch) -> None:
        """An error if the batch is not what the method works on."""
        v = batch.views.shape[1]
        if v < self.fewest_views or (self.most_views is not None and v > self.most_views):
            most = "or more" if self.most_views is None else f"to {self.most_views}"
            wanted = f"{self.fewest_views}" if self.most_views == self.fewest_views else f"{self.fewest_views} {most}"
            raise ValueError(
                f"{type(self).__name__} takes {wanted} views of each sample, got {v} (views {list(batch.views.shape)})"
            )
        if self.needs_labels and batch.labels is None:
            raise ValueError(f"{type(self).__name__} learns from labels, and this batch has none")

    @classmethod
    def protocol_options(cls, protocol: str) -> dict[str, Any]:
        """Options that an evaluation protocol needs to suit this method; none by default.

        Args:
            protocol: The protocol's name. The options of a recipe take precedence.
        """
        return {}

    @torch.no_grad()
    def report(self) -> dict[str, float]:
        """Scalars of the step remembered, for the log: here the mean similarity of two views of a sample."""
        if self._last is None:
            return {}
        z, _, _ = self._last
        if z.shape[1] < 2:
            return {}
        z = F.normalize(z.float(), dim=2)
        return {"positive_similarity": float((z[:, 0] * z[:, 1]).sum(1).mean())}

    @torch.no_grad()
    def standing(self, value: float) -> bounds.Standing | None:
        """Where the loss of the step remembered stands: chance, collapsed, bound. Every rank must ask."""
        if self._last is None:
            return None
        composition = self._composition(*self._last)
        return None if composition is None else bounds.standing(self.loss, value, **composition)

    def _composition(self, z: Tensor, keys: Tensor | None, batch: ViewBatch) -> dict[str, Any] | None:
        """The arguments of `bounds.standing` for this batch; None (the default) if no limits are known."""
        return None


def everyone(rows: Tensor) -> Tensor:
    """The rows of all ranks, without gradient."""
    return distributed.gather(rows.detach(), distributed.row_counts(rows))


def how_many(rows: Tensor) -> int:
    """Rows of all ranks."""
    return sum(distributed.row_counts(rows))


def out_dim(head: nn.Module) -> int:
    """The length of what a head gives."""
    out = getattr(head, "out_dim", None)
    if not isinstance(out, int):
        raise ValueError(
            f"{type(head).__name__} does not say its out_dim, which a queue needs; use a head of models.head"
        )
    return out
