r"""The result of an evaluation: a number that carries its protocol.

With scores [M, K] of M test rows, the prediction is the class of the largest score, and

    (1)  accuracy p = share of rows predicted right,   error = √(p(1 − p)/M)
    (2)  rank of the true class y = how many classes score above it, or as high and stand before it;
         top-5 = share of rows with rank < 5

The error is the binomial standard error of p from M independent rows: what another test set of this size would change.
It says nothing about other seeds of the training.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

import torch
from torch import Tensor

from kontrast.files import finite

Progress = Callable[[str, int, int], object]
"""A function that is called with ``(what, done, of)`` now and then."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Result:
    """The result of one evaluation.

    Attributes:
        name: The protocol's name.
        protocol: The protocol in words.
        value: Top-1 accuracy, 0…1 (retrieval: recall@1).
        error: The standard error of ``value`` (1).
        top5: (2), with more than five classes.
        per_class: The accuracy of each class; NaN where a class has no test rows.
        confusion: ``[true class][predicted class]``.
        split: The name of the rows tested on.
        train_rows: Training rows used; 0 if none.
        test_rows: Rows tested on.
        epochs: Epochs of training, if any.
        seed: Of everything that was drawn.
        class_names: A name for each class.
        details: More numbers, by the protocol.
        predictions: int64 ``[M]``.

    >>> result = Result.of_scores(torch.tensor([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]]), torch.tensor([0, 1, 1]),
    ...     name="demo", protocol="a demonstration", train_rows=10, seed=0)
    >>> result.value, result.per_class, result.confusion
    (0.6666666666666666, [1.0, 0.5], [[1, 0], [1, 1]])
    >>> print(result)
    66.67 % ± 27.22: a demonstration; train: 10 rows, test: 3 rows, seed 0
    """

    name: str
    protocol: str
    value: float
    error: float
    top5: float | None
    per_class: list[float]
    confusion: list[list[int]]
    split: str
    train_rows: int
    test_rows: int
    epochs: int | None
    seed: int
    class_names: list[str] | None = None
    details: dict[str, Any] = field(default_factory=dict)
    predictions: Tensor = field(repr=False)

    def __str__(self) -> str:
        train = [f"train: {self.train_rows:,} rows"] if self.train_rows else []
        about = ", ".join([*train, f"{self.split}: {self.test_rows:,} rows", f"seed {self.seed}"])
        return f"{100 * self.value:.2f} % ± {100 * self.error:.2f}: {self.protocol}; {about}"

    def record(self) -> dict[str, Any]:
        """A dictionary for JSON: everything but the predictions; NaN becomes None."""
        record: dict[str, Any] = finite(
            {f.name: getattr(self, f.name) for f in fields(self) if f.name != "predictions"}
        )
        return record

    @classmethod
    def of_scores(cls, scores: Tensor, labels: Tensor, **about: Any) -> Result:
        """Compute (1) and (2).

        Args:
            scores: ``[M, K]``, larger is more likely.
            labels: int64 ``[M]``.
            **about: The other attributes (`kontrast.evaluate.protocol.Protocol.about`).

        Raises:
            ValueError: A score is NaN, or there are no rows.
        """
        if bool(scores.isnan().any()):
            rows = int(scores.isnan().any(1).sum())
            raise ValueError(
                f"the scores of {rows} of {len(scores)} rows are NaN; expected numbers: the probe diverged"
            )
        classes = scores.shape[1]
        top5 = float((rank_of(scores, labels) < 5).double().mean()) if classes > 5 else None
        return cls.of_predictions(scores.argmax(1), labels, classes, top5=top5, **about)

    @classmethod
    def of_predictions(
        cls, predictions: Tensor, labels: Tensor, num_classes: int, *, top5: float | None = None, **about: Any
    ) -> Result:
        """Compute (1) from predicted classes ``[M]`` and labels ``[M]``."""
        total = len(labels)
        if not total:
            raise ValueError("there are no test rows; expected at least one")
        confusion = torch.bincount(labels * num_classes + predictions, minlength=num_classes**2)
        table = confusion.view(num_classes, num_classes)
        right, counts = table.diagonal().double(), table.sum(1).double()
        p = float(right.sum()) / total
        return cls(
            value=p,
            error=math.sqrt(p * (1 - p) / total),
            top5=top5,
            per_class=(right / counts).tolist(),
            confusion=table.tolist(),
            split=about.pop("split", "test"),
            test_rows=total,
            epochs=about.pop("epochs", None),
            predictions=predictions.to(torch.int64),
            **about,
        )


def rank_of(scores: Tensor, labels: Tensor) -> Tensor:
    """(2): int64 ``[M]``, 0 for the class that is predicted.

    >>> rank_of(torch.tensor([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]]), torch.tensor([0, 1]))
    tensor([0, 1])
    """
    score = scores.gather(1, labels[:, None])
    before = torch.arange(scores.shape[1], device=scores.device) < labels[:, None]
    return ((scores > score) | ((scores == score) & before)).sum(1)
