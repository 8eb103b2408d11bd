"""Retrieval: recall@k and mAP@R against loops that follow the definitions, and the protocol."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from kontrast.evaluate import Subject, evaluate
from kontrast.evaluate.protocols import retrieval
from kontrast.evaluate.protocols.retrieval import rank
from tests.evaluate.conftest import clouds


def by_loops(q: torch.Tensor, y: torch.Tensor, c: torch.Tensor, z: torch.Tensor, own: bool) -> dict[str, float]:
    """The definitions, one query at a time."""
    s = F.normalize(q) @ F.normalize(c).T
    recalls: dict[int, list[float]] = {1: [], 5: [], 10: []}
    average: list[float] = []
    for i in range(len(q)):
        order = sorted((j for j in range(len(c)) if not (own and j == i)), key=lambda j: (-float(s[i, j]), j))
        hits = [bool(z[j] == y[i]) for j in order]
        total = sum(hits)
        if not total:
            continue
        for k in recalls:
            recalls[k].append(float(any(hits[:k])))
        average.append(sum(sum(hits[: r + 1]) / (r + 1) for r in range(total) if hits[r]) / total)
    means = {f"recall@{k}": sum(v) / len(v) for k, v in recalls.items()}
    return {**means, "mAP@R": sum(average) / len(average)}


@pytest.mark.parametrize("strip", [2**22, 256])
def test_among_each_other(strip: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrieval, "STRIP", strip)
    x, y = clouds(90, 7, 6, 1.5, 0)
    y = torch.where(torch.arange(90) < 20, y, y.clamp(max=2))  # classes of very different sizes
    y[0] = 7  # alone in its class
    found = rank(x, y)
    # Sums of up to 90 float64 terms.
    assert {k: found.measures[k] for k in by_loops(x, y, x, y, True)} == pytest.approx(
        by_loops(x, y, x, y, True), abs=1e-9
    )
    assert found.measures["queries left out"] == 1
    assert not found.has_reference[0]


def test_against_references() -> None:
    (x, y), (c, z) = clouds(40, 5, 6, 1.5, 0), clouds(60, 5, 6, 1.5, 1)
    z = z.clamp(max=3)  # class 4 has no references
    found = rank(x, y, c, z)
    expected = by_loops(x, y, c, z, False)
    assert {k: found.measures[k] for k in expected} == pytest.approx(expected, abs=1e-9)
    assert found.measures["queries left out"] == 8


def test_nothing_to_find_is_an_error() -> None:
    with pytest.raises(ValueError, match="no query has a reference"):
        rank(torch.eye(3), torch.arange(3))
    with pytest.raises(ValueError, match="at least two"):
        rank(torch.eye(3)[:1], torch.zeros(1, dtype=torch.int64))


def test_value_is_recall_at_1_among_the_test_rows(subject: Subject) -> None:
    found = evaluate(subject, "retrieval")
    among = rank(subject.test, subject.test_labels).measures
    against = rank(subject.test, subject.test_labels, subject.train, subject.train_labels).measures
    assert found.value == among["recall@1"] == found.details["recall@1"]
    assert found.details["mAP@R"] == among["mAP@R"]
    assert found.details["test against train"] == against
    assert "without itself" in found.protocol
    assert found.train_rows == 0, "the training rows had no part in it"


def test_against_the_training_rows_it_is_the_nearest_neighbour(subject: Subject) -> None:
    found = evaluate(subject, "retrieval", references="train")
    assert torch.equal(found.predictions, evaluate(subject, "knn20", k=1).predictions)
    assert found.train_rows == 700
