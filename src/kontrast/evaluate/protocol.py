"""The base class of evaluation protocols, and the steps that several of them share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from kontrast.checks import whole_number
from kontrast.data import Memory, Split
from kontrast.evaluate.classifier import Classifier
from kontrast.evaluate.result import Progress, Result
from kontrast.evaluate.subject import Subject, chunks


@dataclass(frozen=True, kw_only=True)
class Protocol(ABC):
    """A way to turn features and labels into an accuracy. Its options are the fields of its dataclass.

    Attributes:
        name: The name of the protocol in results.
        title: What a report calls its accuracy; its name in recipes by default.
        phrase: How it stands in a sentence; its name in recipes by default.
        needs_encoder: Whether it trains on augmented images through the encoder, so that features alone do not do.

    >>> class Majority(Protocol):
    ...     name = "majority"
    ...     def run(self, subject, *, seed, progress):
    ...         most = subject.train_labels.bincount().argmax().expand(len(subject.test_labels))
    ...         about = self.about(subject, "the largest class of the training rows", seed=seed)
    ...         return Result.of_predictions(most, subject.test_labels, subject.num_classes, **about)
    >>> subject = Subject.from_features(torch.eye(3), [0, 0, 1], torch.eye(3), [0, 0, 1])
    >>> Majority().run(subject, seed=0, progress=None).value
    0.6666666666666666
    """

    name: ClassVar[str]
    title: ClassVar[str] = ""
    phrase: ClassVar[str] = ""
    needs_encoder: ClassVar[bool] = False

    @abstractmethod
    def run(self, subject: Subject, *, seed: int, progress: Progress | None) -> Result:
        """Evaluate a subject.

        Args:
            subject: Features and labels, perhaps with their encoder.
            seed: Of everything that is drawn.
            progress: Called with ``(what, done, of)`` now and then.

        Returns:
            The accuracy with its protocol.
        """

    def classifier(self, subject: Subject, *, seed: int, progress: Progress | None) -> Classifier | None:
        """The linear classifier of plain features that `run` tests; None (the default) for protocols without one.

        Args:
            subject: As for `run`.
            seed: As for `run`.
            progress: As for `run`.

        Returns:
            The classifier, with the result of `run`.
        """
        return None

    @classmethod
    def is_cheap(cls, train_rows: int, test_rows: int, values: int) -> bool:
        """Whether rows of so many values take seconds, so that raw pixels can stand beside every result."""
        return False

    def about(self, subject: Subject, protocol: str, *, seed: int, **more: Any) -> dict[str, Any]:
        """The keyword arguments of `Result.of_scores` that do not come from scores.

        Args:
            subject: The subject of the run.
            protocol: The protocol in words, with every option that matters; a ``limit`` is added.
            seed: The seed of the run.
            **more: Others, such as ``epochs`` and ``details``.

        Returns:
            The arguments by name.
        """
        rows = len(subject.train_labels)
        words = with_limit(protocol, getattr(self, "limit", None), rows)
        common = {"name": self.name, "protocol": words, "seed": seed, "split": subject.split, "train_rows": rows}
        return {**common, "class_names": subject.class_names, **more}


def limit_rows(features: Tensor, labels: Tensor, limit: int | None, seed: int) -> tuple[Tensor, Tensor]:
    """At most ``limit`` training rows, drawn with ``seed``, the same number of each class.

    Args:
        features: Training features ``[N, D]``.
        labels: int64 ``[N]``.
        limit: How many rows to keep; None keeps all.
        seed: Of the draw.

    Returns:
        The features and labels that stay.

    >>> limit_rows(torch.arange(8.0).view(8, 1), torch.arange(8) % 2, 4, seed=0)[1].bincount()
    tensor([2, 2])
    """
    if limit is None or whole_number("limit", limit, least=1) >= len(labels):
        return features, labels
    split = Split(Memory(features), labels).limited(limit, seed)
    assert isinstance(split.inputs, Memory)
    assert split.labels is not None
    return split.inputs.values, split.labels


def with_limit(words: str, limit: int | None, rows: int) -> str:
    """The words of a protocol, and the limit if there were more rows.

    Args:
        words: The protocol in words.
        limit: The limit; None is none.
        rows: How many rows there were.

    Returns:
        The words.

    >>> with_limit("linear probe", 100, 500)
    'linear probe, limited to 100 training rows'
    """
    return words if limit is None or limit >= rows else f"{words}, limited to {limit:,} training rows"


class Standardisation(NamedTuple):
    """Subtract a mean and multiply by a scale, entry by entry; both are float64 ``[D]``.

    >>> Standardisation.of(torch.tensor([[1.0, 5.0], [3.0, 5.0]]))
    Standardisation(mean=tensor([2., 5.], dtype=torch.float64), scale=tensor([1., 0.], dtype=torch.float64))
    """

    mean: Tensor
    scale: Tensor

    @classmethod
    def of(cls, train: Tensor) -> Standardisation:
        """That of training features: to mean 0 and deviation 1; constant features become 0."""
        mean = sum(part.sum(0, dtype=torch.float64) for part in chunks(train)) / len(train)
        assert isinstance(mean, Tensor)
        std = (sum((part.double() - mean).square().sum(0) for part in chunks(train)) / len(train)) ** 0.5
        is_constant = std <= 1e-6 * mean.abs()  # what rounding leaves of a constant in float32
        return cls(mean, torch.where(is_constant | (std == 0), torch.zeros_like(std), std.reciprocal()))

    def __call__(self, features: Tensor) -> Tensor:
        """The features, standardised."""
        return (features - self.mean.float()).mul_(self.scale.float())

    def unfold(self, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        """Weights ``[K, D]`` and bias ``[K]`` for standardised features as those for plain ones, float32.

        >>> standardise = Standardisation.of(torch.tensor([[1.0, 5.0], [3.0, 6.0]]))
        >>> standardise.unfold(torch.eye(2), torch.zeros(2))
        (tensor([[1., 0.], [0., 2.]]), tensor([ -2., -11.]))
        """
        plain = weight.double() * self.scale
        return plain.float(), (bias.double() - plain @ self.mean).float()


def standardise(train: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
    """Subtract the mean of the training features and divide by their standard deviation; constant features become 0.

    Args:
        train: Training features ``[N, D]``, whose mean and deviation are used.
        *others: More features ``[M, D]``.

    Returns:
        All features, float32, the training features first.

    >>> standardise(torch.tensor([[1.0, 5.0], [3.0, 5.0]]), torch.tensor([[4.0, 6.0]]))
    (tensor([[-1.,  0.],
            [ 1.,  0.]]), tensor([[2., 0.]]))
    """
    scaled = Standardisation.of(train)
    return tuple(scaled(x) for x in (train, *others))
