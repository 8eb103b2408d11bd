"""What every protocol is: its options as fields, its words, and a run that gives a `Result`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from kontrast.data import Memory, Split
from kontrast.evaluate._inputs import chunks, whole
from kontrast.evaluate.result import Progress, Result
from kontrast.evaluate.subject import Subject


@dataclass(frozen=True, kw_only=True)
class Protocol(ABC):
    """A way to turn features and labels into an accuracy. Options are the fields of its dataclass."""

    name: ClassVar[str]
    needs_encoder: ClassVar[bool] = False

    @abstractmethod
    def run(self, subject: Subject, *, seed: int, progress: Progress | None) -> Result:
        """Evaluate."""

    def about(self, subject: Subject, protocol: str, *, seed: int, **more: Any) -> dict[str, Any]:
        """What a result says beside its numbers."""
        common = {
            "name": self.name,
            "protocol": protocol,
            "seed": seed,
            "split": subject.split,
            "train_rows": len(subject.train_labels),
            "class_names": subject.class_names,
        }
        return {**common, **more}


def limited(features: Tensor, labels: Tensor, limit: int | None, seed: int) -> tuple[Tensor, Tensor]:
    """At most ``limit`` training rows, classes even."""
    if limit is None or whole("limit", limit) >= len(labels):
        return features, labels
    kept = Split(Memory(features), labels).limited(limit, seed)
    assert isinstance(kept.inputs, Memory)
    assert kept.labels is not None
    return kept.inputs.values, kept.labels


def shortened(words: str, limit: int | None, rows: int) -> str:
    """A protocol's words, and that it was given fewer rows."""
    return words if limit is None or limit >= rows else f"{words}, limited to {limit:,} training rows"


def standardise(train: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
    """Features less the training features' mean, over their standard deviation; constant ones become 0."""
    mean = sum(part.sum(0, dtype=torch.float64) for part in chunks(train)) / len(train)
    assert isinstance(mean, Tensor)
    std = (sum((part.double() - mean).square().sum(0) for part in chunks(train)) / len(train)) ** 0.5
    constant = std <= 1e-6 * mean.abs()  # what rounding leaves of a constant in float32
    scale = torch.where(constant | (std == 0), torch.zeros_like(std), std.reciprocal())
    return tuple((x - mean.float()).mul_(scale.float()) for x in (train, *others))
