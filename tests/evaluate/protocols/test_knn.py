"""kNN against scikit-learn's, with the same weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.neighbors import KNeighborsClassifier

from kontrast.evaluate import Subject, evaluate, votes


@pytest.mark.parametrize(("k", "temperature"), [(1, 0.07), (20, 0.07), (20, 0.5), (150, 0.07)])
def test_knn_is_scikit_learns(subject: Subject, k: int, temperature: float) -> None:
    oracle = KNeighborsClassifier(
        k, metric="cosine", algorithm="brute", weights=lambda d: np.exp((1 - d.astype(np.float64)) / temperature)
    )
    oracle.fit(subject.train.numpy(), subject.train_labels.numpy())
    found = evaluate(subject, "knn20", k=k, temperature=temperature)
    assert np.array_equal(found.predictions.numpy(), oracle.predict(subject.test.numpy()))
    scores = votes(subject.test, subject.train, subject.train_labels, 7, k=k, temperature=temperature)
    share = scores / scores.sum(1, keepdim=True)
    # Cosines in float32 are off by 1e-7, weights by that over the temperature.
    assert np.allclose(share.numpy(), oracle.predict_proba(subject.test.numpy()), atol=2e-5)


def test_more_neighbours_than_rows_are_all_of_them_and_the_words_say_so() -> None:
    few = Subject.from_features(torch.eye(5), [0, 0, 1, 1, 1], torch.eye(5), [0, 0, 1, 1, 1])
    found = evaluate(few, "knn20")
    assert found.protocol == "kNN, k = 5 (all: there are fewer than 20), weights exp(s/0.07), cosine"
    assert found.value == 1.0


def test_words_of_the_usual_case(subject: Subject) -> None:
    assert evaluate(subject, "knn20").protocol == "kNN, k = 20, weights exp(s/0.07), cosine"


def test_a_tiny_temperature_is_the_nearest_alone(subject: Subject) -> None:
    cold, one = evaluate(subject, "knn20", temperature=1e-6), evaluate(subject, "knn20", k=1)
    assert torch.equal(cold.predictions, one.predictions)


def test_two_hundred_neighbours(subject: Subject) -> None:
    """``knn200`` is the other with k = 200, under its own name."""
    found = evaluate(subject, "knn200")
    assert found.name == "knn200"
    assert found.protocol == "kNN, k = 200, weights exp(s/0.07), cosine"
    assert torch.equal(found.predictions, evaluate(subject, "knn20", k=200).predictions)
    assert not torch.equal(found.predictions, evaluate(subject, "knn20").predictions)
