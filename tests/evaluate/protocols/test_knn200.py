"""kNN with 200 neighbours is the other with k = 200."""

from __future__ import annotations

import torch

from kontrast.evaluate import Subject, evaluate


def test_two_hundred_neighbours(subject: Subject) -> None:
    found = evaluate(subject, "knn200")
    assert found.protocol == "kNN, k = 200, weights exp(s/0.07), cosine"
    assert torch.equal(found.predictions, evaluate(subject, "knn20", k=200).predictions)
    assert not torch.equal(found.predictions, evaluate(subject, "knn20").predictions)
