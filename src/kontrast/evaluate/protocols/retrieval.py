"""Retrieval: are the rows nearest to a query of its class? See `kontrast.evaluate.ranking` for the measures.

Among the test rows each query searches the others; beside it, among the training rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from kontrast.evaluate.protocols._base import Protocol
from kontrast.evaluate.ranking import Ranking, ranking
from kontrast.evaluate.result import Progress, Result
from kontrast.evaluate.subject import Subject


@dataclass(frozen=True, kw_only=True)
class Retrieval(Protocol):
    """Recall@1, 5, 10 and mAP@R; ``value`` is recall@1 among the test rows.

    ``references`` are "test" (the other test rows), "train", or "both", which adds the second to the details.

    >>> Retrieval()
    Retrieval(references='both')
    """

    references: str = "both"
    name: ClassVar[str] = "retrieval"

    def __post_init__(self) -> None:
        if self.references not in ("test", "train", "both"):
            raise ValueError(f"references is {self.references!r}; expected 'test', 'train' or 'both'")

    def run(self, subject: Subject, *, seed: int, progress: Progress | None) -> Result:
        """Nothing is trained and nothing drawn."""
        train, test = subject.features(progress)
        y, y_test = subject.train_labels, subject.test_labels
        found: dict[str, Ranking] = {}
        if self.references in ("test", "both"):
            found["test against test, without itself"] = ranking(test, y_test)
        if self.references in ("train", "both"):
            found["test against train"] = ranking(test, y_test, train, y)
        first, main = next(iter(found.items()))
        details: dict[str, Any] = {key: value.numbers for key, value in found.items()}
        details = {**main.numbers, **details}
        words = f"retrieval by cosine, recall@1, {first}"
        about = self.about(subject, words, seed=seed, train_rows=0 if "test against test" in first else len(y))
        return Result.of_predictions(
            main.nearest[main.counted], y_test[main.counted], subject.num_classes, details=details, **about
        )
