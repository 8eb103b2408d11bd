"""Retrieval as a protocol: its value is recall@1, the rest are details."""

from __future__ import annotations

import torch

from kontrast.evaluate import Subject, evaluate
from kontrast.evaluate.ranking import ranking


def test_value_is_recall_at_1_among_the_test_rows(subject: Subject) -> None:
    found = evaluate(subject, "retrieval")
    among = ranking(subject.test, subject.test_labels).numbers
    against = ranking(subject.test, subject.test_labels, subject.train, subject.train_labels).numbers
    assert found.value == among["recall@1"] == found.details["recall@1"]
    assert found.details["mAP@R"] == among["mAP@R"]
    assert found.details["test against train"] == against
    assert "without itself" in found.protocol
    assert found.train_rows == 0, "the training rows had no part in it"


def test_against_the_training_rows_it_is_the_nearest_neighbour(subject: Subject) -> None:
    found = evaluate(subject, "retrieval", references="train")
    assert torch.equal(found.predictions, evaluate(subject, "knn20", k=1).predictions)
    assert found.train_rows == 700
