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
    """L-BFGS ends where no entry of the gradient g exceeds 1e-7, which is H⁻¹g away from the minimum.

    How far that is depends on the curvature H and, through the path of the search, on the CPU's rounding: up to 3e-5
    here. One Newton step takes it away; what it leaves is of second order, about (3e-5)². scikit-learn's Newton solver,
    whose gradient ends at 1e-13, is the oracle.
    """
    x, y = subject.train.double(), subject.train_labels
    (n, dim), classes = x.shape, 7
    w, b, done = Logistic(C=C, tolerance=1e-7, iterations=2000).fit(x, y, classes)
    assert done["converged"]
    assert done["largest gradient"] <= 1e-7

    def objective(flat: torch.Tensor) -> torch.Tensor:  # (1), divided by C n
        rows = flat.view(classes, dim + 1)
        loss = torch.nn.functional.cross_entropy(x @ rows[:, :dim].T + rows[:, dim], y)
        return loss + rows[:, :dim].square().sum() / (2 * C * n)

    found = torch.cat([w, b[:, None]], 1).flatten().requires_grad_()
    (gradient,) = torch.autograd.grad(objective(found), found)
    # Adding a number to all biases changes nothing: H has one eigenvalue 0, and the least others are 1/(C n) or more.
    curvature = torch.autograd.functional.hessian(objective, found.detach())
    step = torch.linalg.pinv(curvature, hermitian=True, rtol=1e-9) @ gradient
    corrected = (found.detach() - step).view(classes, dim + 1).numpy()
    oracle = LogisticRegression(C=C, tol=1e-12, max_iter=100, solver="newton-cholesky").fit(x.numpy(), y.numpy())
    assert np.allclose(corrected[:, :dim], oracle.coef_, atol=1e-8, rtol=0)
    bias = corrected[:, dim] - corrected[:, dim].mean()
    assert np.allclose(bias, oracle.intercept_ - oracle.intercept_.mean(), atol=1e-8, rtol=0)


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
    # Two searches of other dimensions in float32, whose gradients cannot be brought below some units of 1e-7.
    first, other = (evaluate(s, "logistic", tolerance=1e-5) for s in (more, subject))
    assert first.details["converged"]
    assert (first.predictions != other.predictions).sum() <= 1  # a row that lies on a boundary
    assert not torch.equal(first.predictions, evaluate(subject, "logistic", C=1e-4).predictions), "it can differ"
