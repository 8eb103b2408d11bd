"""L-BFGS against scikit-learn's LogisticRegression on the same features."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from kontrast.evaluate import Subject, evaluate
from kontrast.evaluate.protocols.logistic import Logistic


@pytest.mark.parametrize("C", [1e-3, 0.1, 10.0])
def test_weights_are_scikit_learns(subject: Subject, C: float) -> None:
    x, y = subject.train.double(), subject.train_labels
    oracle = LogisticRegression(C=C, tol=1e-8, max_iter=5000).fit(x.numpy(), y.numpy())
    w, b, done = Logistic(C=C, tolerance=1e-7, iterations=2000).fit(x, y, 7)
    assert done["converged"]
    # Gradients of 1e-7 (what a line search on float64 losses can tell, about √eps) over a curvature of 1e-2: 1e-5.
    assert np.allclose(w.numpy(), oracle.coef_, atol=2e-5, rtol=0)
    # Adding a number to all biases changes nothing, so they are compared without their mean.
    assert np.allclose((b - b.mean()).numpy(), oracle.intercept_ - oracle.intercept_.mean(), atol=2e-5, rtol=0)


def test_predictions_are_scikit_learns_on_standardised_features(subject: Subject) -> None:
    scaler = StandardScaler().fit(subject.train.numpy())
    oracle = LogisticRegression(C=0.3, tol=1e-6, max_iter=2000)
    oracle.fit(scaler.transform(subject.train.numpy()), subject.train_labels.numpy())
    expected = oracle.predict(scaler.transform(subject.test.numpy()))
    found = evaluate(subject, "logistic", C=0.3)
    assert found.details["converged"]
    # The gradient's tolerance of 1e-4 may turn a row that lies on a boundary.
    assert (found.predictions.numpy() != expected).sum() <= 1


def test_too_few_iterations_are_told(subject: Subject) -> None:
    found = evaluate(subject, "logistic", C=100.0, iterations=2)
    assert found.details["converged"] is False
    assert found.details["iterations"] == 2


def test_a_constant_feature_does_no_harm(subject: Subject) -> None:
    def with_constant(x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, torch.full((len(x), 1), 0.1)], 1)

    more = Subject.from_features(
        with_constant(subject.train), subject.train_labels, with_constant(subject.test), subject.test_labels
    )
    assert torch.equal(evaluate(more, "logistic").predictions, evaluate(subject, "logistic").predictions)
