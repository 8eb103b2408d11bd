"""What every method shares: networks and views in, a loss out, and the updates after the optimiser's step.

A step has parts that can be called one by one, so that batches larger than memory can go through the networks in
pieces (`kontrast.train.gradients`) while the loss sees them whole:

    keys = method.keys(views, seed)            without gradient: what the loss compares with (momentum methods)
    z    = method.embed(views)                 with gradient, [n, V', D]: sample by sample but for batch norm
    loss = method.objective(z, keys, batch)    on the whole batch; may have parameters of its own
    method.remember(z, keys, batch)            for `after_step`, `report` and `standing`

What other stages want to know of a method they ask it (the last part of `Method`); every answer has a default, so that
a constructor and `objective` are a method.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kontrast import distributed, losses, models
from kontrast.geometry import bounds

LossOptions = Mapping[str, Mapping[str, Any]]  # the name of a loss → a method's options for it
OptionWords = Mapping[str, str]  # the name of an option → how a methods section says it


@dataclass(frozen=True)
class Setting:
    """What a method may need to know of its run.

    Args:
        num_samples: Rows of the training split, for a memory bank.
        num_classes: Classes of the labels.
        total_steps: Steps of the run, for schedules of the method.
        seed: Seed of the method's own random numbers.
    """

    num_samples: int | None = None
    num_classes: int | None = None
    total_steps: int | None = None
    seed: int = 0

    def need(self, name: str, who: str) -> int:
        """The number of this name, which a method cannot do without.

        Args:
            name: A field of the setting.
            who: Who needs it, for the error.

        Raises:
            ValueError: It was not passed.
        """
        value: int | None = getattr(self, name)
        if value is None:
            raise ValueError(f"{who} needs {name}: pass setting=Setting({name}=…)")
        return value


@dataclass(frozen=True, eq=False)
class ViewBatch:
    """One rank's rows of a batch, augmented.

    Args:
        views: float ``[n, V, C, H, W]`` or ``[n, V, D]``.
        labels: int64 ``[n]``, or None.
        indices: The rows of the training split, int64 ``[n]``, or None.
        seed: The seed of the step, the same on every rank.
    """

    views: Tensor
    labels: Tensor | None = None
    indices: Tensor | None = None
    seed: int = 0

    def __len__(self) -> int:
        return len(self.views)


class Network(nn.Module):
    """An encoder and a head, one after the other: ``x → z``.

    Args:
        encoder: From inputs to features.
        head: From features to embeddings.
    """

    def __init__(self, encoder: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.encoder, self.head = encoder, head

    def forward(self, x: Tensor) -> Tensor:
        """``x [n, …]`` → ``z [n, D]``."""
        return self.head(self.encoder(x))  # type: ignore[no-any-return]


class Method(nn.Module, ABC):
    """Base of the methods. A new method needs a constructor and `objective`.

    Args:
        encoder: The encoder that is trained.
        head: The projector behind it.

    Attributes:
        needs_labels: Whether the method learns from labels.
        fewest_views: How many views of each sample it takes at least.
        most_views: How many views at most; None is any number.
        estimator_losses: The losses by which `kontrast.sklearn.ContrastiveEncoder` trains with this method, each with
            the options that it passes; none by default. If the method needs labels, it is taken for data with labels.
        option_words: How `words` says an option, ``{}`` being its value. A subclass declares its own options alone.
        loss: The loss; a method that has one gets its temperature into log lines and monitors.
    """

    needs_labels: ClassVar[bool] = False
    fewest_views: ClassVar[int] = 1
    most_views: ClassVar[int | None] = None
    estimator_losses: ClassVar[LossOptions] = {}
    option_words: ClassVar[OptionWords] = {"loss": "{} loss", "temperature": "temperature τ = {}"}

    loss: losses.Loss
    network: Network

    def __init__(self, encoder: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.network = Network(encoder, head)
        self._last: tuple[Tensor, Tensor | None, ViewBatch] | None = None

    @property
    def online(self) -> Network:
        """The network that is trained and evaluated."""
        return self.network

    @property
    def embedding_modules(self) -> list[nn.Module]:
        """Trained modules: the networks that `embed` runs through."""
        return [self.online]

    @property
    def fewest_at_once(self) -> int:
        """How many images must go through the networks together in training: batch norm needs two values."""
        return 2

    @property
    def encoder(self) -> nn.Module:
        """The online encoder: what is evaluated, exported and returned by `kontrast.load`."""
        return self.online.encoder

    # ---------------------------------------------------------------------------------------- the parts of a step

    def keys(self, views: Tensor, seed: int) -> Tensor | None:
        """What the loss compares with, without gradient; None (the default) if that is the embeddings themselves.

        Args:
            views: ``[n, V, …]``, the whole batch of this rank or a part of it.
            seed: For random numbers of the method, such as an order of the keys.

        Returns:
            The keys ``[n, V', D]``.
        """
        return None

    def embed(self, views: Tensor) -> Tensor:
        """``views [n, V, …]`` → ``z [n, V, D]``, all in one forward pass."""
        n, v = views.shape[:2]
        z: Tensor = self.online(views.flatten(0, 1))
        return z.view(n, v, -1)

    @abstractmethod
    def objective(self, z: Tensor, keys: Tensor | None, batch: ViewBatch) -> Tensor:
        """The loss of the whole batch, a scalar with gradient.

        Args:
            z: The embeddings ``[n, V', D]`` (`embed`).
            keys: What they are compared with (`keys`), or None.
            batch: Labels and row numbers; with micro-batches its views have been embedded in parts.
        """

    def loss_of(self, z: Tensor, keys: Tensor | None, batch: ViewBatch) -> Tensor:
        """`objective`, checked.

        Raises:
            ValueError: It is no tensor, no scalar, or has no gradient; the error names the method.
        """
        loss = self.objective(z, keys, batch)
        problem = None
        if not isinstance(loss, Tensor):
            problem = f"a {type(loss).__name__}"
        elif loss.ndim:
            problem = f"a tensor of shape {list(loss.shape)}. Is the reduction of its loss mean?"
        elif z.requires_grad and torch.is_grad_enabled() and not loss.requires_grad:
            problem = "a tensor without a gradient. Is it detached, or made of a number?"
        if problem is not None:
            raise ValueError(
                f"{type(self).__name__}.objective must return a scalar tensor with a gradient, got {problem}"
            )
        return loss

    def remember(self, z: Tensor, keys: Tensor | None, batch: ViewBatch) -> None:
        """Store the arguments of `objective` for `after_step`, `report` and `standing`."""
        self._last = z.detach(), keys, batch

    def step(self, batch: ViewBatch) -> dict[str, Tensor]:
        """Compute the loss of a batch, with gradient: all parts in order.

        Args:
            batch: The views of this rank.

        Returns:
            ``{"loss": …}``.

        Raises:
            ValueError: The batch does not fit the method.
        """
        self.check(batch)
        keys = self.keys(batch.views, batch.seed)
        z = self.embed(batch.views)
        loss = self.loss_of(z, keys, batch)
        self.remember(z, keys, batch)
        return {"loss": loss}

    def after_step(self) -> None:
        """Update moving averages, queues or banks after the optimiser's step; nothing by default."""

    def across_ranks(self) -> None:
        """Use batch norm over the values of all ranks from now on, so that many processes compute as one."""
        models.sync_batch_norm(self)

    # ---------------------------------------------------------------------------------------- what others ask it

    def check(self, batch: ViewBatch) -> None:
        """Raise a ValueError if the number of views or the labels of a batch do not fit the method."""
        v = batch.views.shape[1]
        if v < self.fewest_views or (self.most_views is not None and v > self.most_views):
            most = "or more" if self.most_views is None else f"to {self.most_views}"
            count = f"{self.fewest_views}" if self.most_views == self.fewest_views else f"{self.fewest_views} {most}"
            raise ValueError(
                f"views has shape {list(batch.views.shape)}: must have {count} views of each sample for "
                f"{type(self).__name__}, got {v}"
            )
        if self.needs_labels and batch.labels is None:
            raise ValueError(f"{type(self).__name__}: needs labels, and this batch has none. Use data with labels")

    @classmethod
    def protocol_options(cls, protocol: str) -> dict[str, Any]:
        """Options that an evaluation protocol needs to suit this method; none by default.

        Args:
            protocol: The protocol's name. The options of a recipe take precedence.
        """
        return {}

    @classmethod
    def words(cls, options: Mapping[str, Any], *, number: Callable[[float], str]) -> str:
        """The options that are set, as a methods section has them: by `option_words`, else ``name = value``.

        Args:
            options: All options of the method, as a resolved recipe has them.
            number: Formats a number.
        """
        words = {name: text for kind in cls.__mro__[::-1] for name, text in vars(kind).get("option_words", {}).items()}
        return ", ".join(
            words.get(name, f"{name} = {{}}").format(
                value if isinstance(value, str) or value is True else number(value)
            )
            for name, value in options.items()
            if value is not None and value is not False
        )

    @classmethod
    def loss_temperature(cls, options: Mapping[str, Any]) -> float | None:
        """The temperature of the loss that a recipe's options choose; None if it has none.

        Args:
            options: The method's options in a recipe. By default the option ``temperature`` is the loss's.
        """
        temperature: float | None = options.get("temperature")
        return temperature

    @classmethod
    def keeps_nearest_negatives(cls, options: Mapping[str, Any]) -> bool:
        """Whether the loss that a recipe's options choose keeps only the nearest negatives; False by default.

        Args:
            options: The method's options in a recipe.
        """
        return False

    @torch.no_grad()
    def report(self) -> dict[str, float]:
        """Scalars of the last step for the log; by default the mean similarity of two views of a sample."""
        if self._last is None:
            return {}
        z, _, _ = self._last
        if z.shape[1] < 2:
            return {}
        z = F.normalize(z.float(), dim=2)
        return {"positive_similarity": float((z[:, 0] * z[:, 1]).sum(1).mean())}

    @torch.no_grad()
    def standing(self, value: float) -> bounds.Standing | None:
        """Where a loss value of the last step stands between chance and its bound; every rank must call it.

        Returns:
            The standing; None if nothing is known of the batch or of the loss's limits.
        """
        composition = None if self._last is None else self.composition(*self._last)
        limits = None if composition is None else self.loss.limits(composition)
        return None if limits is None else bounds.Standing(*limits, value)

    def composition(self, z: Tensor, keys: Tensor | None, batch: ViewBatch) -> losses.Batch | None:
        """What the batch of all ranks consists of, for `kontrast.losses.Loss.limits`; None (the default) if unknown.

        The arguments are those of `objective`.
        """
        return None

    @property
    def temperature(self) -> float | None:
        """The temperature of the loss now; None if it has none."""
        temperature = getattr(getattr(self, "loss", None), "temperature", None)
        return None if temperature is None else float(temperature)

    @property
    def class_weights(self) -> Tensor | None:
        """The weights of the method's linear classifier ``[K, D]``; None (the default) if it has none."""
        return None

    @property
    def memory_bank(self) -> models.MemoryBank | None:
        """The memory bank with a slot for each training row; None (the default) if there is none."""
        return None

    @property
    def response(self) -> tuple[float, float] | None:
        """(k1, k2) of the loss's response to hard positives and negatives (`kontrast.geometry.gradient_response`).

        (0, 1) is SupCon's; None (the default) if the loss has no such response.
        """
        return None

    @property
    def interaction_temperature(self) -> float | None:
        """The temperature by which rows interact as in SupCon (`kontrast.train.interaction`); None if they do not."""
        return None


def everyone(rows: Tensor) -> Tensor:
    """Gather the rows of all ranks, without gradient."""
    return distributed.gather(rows.detach(), distributed.row_counts(rows))


def how_many(rows: Tensor) -> int:
    """Count the rows of all ranks."""
    return sum(distributed.row_counts(rows))


def out_dim(head: nn.Module) -> int:
    """The number of values that a head gives for a sample."""
    out = getattr(head, "out_dim", None)
    if not isinstance(out, int):
        raise ValueError(
            f"{type(head).__name__} does not say its out_dim, which a queue needs; use a head of models.head"
        )
    return out
