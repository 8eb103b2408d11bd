r"""Weighted k nearest neighbours.

    (1)  score_c(i) = Σ over the k nearest training rows j of class c of exp(s_ij/τ),    s = cosine

(Wu et al. 2018, after whom Wang & Liu monitor their runs; τ = 0.07 in both.) Where equal cosines compete for the k-th
place, the row that stands first has it; between equal scores, the class that stands first.
"""

from __future__ import annotations

from dataclasses import dataclass

from kontrast.checks import number, whole_number
from kontrast.evaluate.neighbours import votes
from kontrast.evaluate.protocol import Protocol
from kontrast.evaluate.result import Progress, Result
from kontrast.evaluate.subject import Subject

MOST_PRODUCTS = 20_000_000_000
"""Training rows × test rows × values of a row: about two seconds on a core."""


@dataclass(frozen=True, kw_only=True)
class NearestNeighbours(Protocol):
    """Votes (1) of ``k`` neighbours (all, if there are fewer rows) and ``temperature`` τ.

    >>> NearestNeighbours(k=20)
    NearestNeighbours(k=20, temperature=0.07)
    """

    k: int
    temperature: float = 0.07
    name = "knn"
    title = "kNN accuracy"
    phrase = "kNN"

    def __post_init__(self) -> None:
        whole_number("k", self.k, least=1)
        number("temperature", self.temperature, above=0)

    @classmethod
    def is_cheap(cls, train_rows: int, test_rows: int, values: int) -> bool:
        """Whether the products are at most `MOST_PRODUCTS`."""
        return train_rows * test_rows * values <= MOST_PRODUCTS

    def run(self, subject: Subject, *, seed: int, progress: Progress | None) -> Result:
        """Let the training rows vote; ``seed`` has no effect."""
        train, test = subject.features(progress)
        k = min(self.k, len(train))
        scores = votes(test, train, subject.train_labels, subject.num_classes, k=k, temperature=self.temperature)
        few = "" if k == self.k else f" (all: there are fewer than {self.k})"
        words = f"kNN, k = {k}{few}, weights exp(s/{self.temperature:g}), cosine"
        return Result.of_scores(scores, subject.test_labels, **self.about(subject, words, seed=seed))


ENTRIES = {
    "knn20": (NearestNeighbours, {"k": 20}, "kNN with 20 neighbours: the default here: close to the data, and quick."),
    "knn200": (NearestNeighbours, {"k": 200}, "kNN with 200 neighbours: Wu et al.'s, Wang & Liu's monitor."),
}
