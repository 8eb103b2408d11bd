r"""Multinomial logistic regression by L-BFGS: the quick probe for large files of features.

    (1)  minimise  C Σ_i ℓ(W x_i + b, y_i) + ½‖W‖²,    ℓ the cross-entropy, b without penalty

the objective of scikit-learn's LogisticRegression(C), over all rows at once, until no entry of the gradient of the mean
exceeds ``tolerance`` (theirs, 1e-4) or ``iterations`` are done. Features are standardised first (``standardize=False``:
not), which makes C mean the same for every encoder.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kontrast.checks import number, whole_number
from kontrast.eager import LBFGS
from kontrast.evaluate.classifier import Classifier
from kontrast.evaluate.protocol import Protocol, Standardisation, limit_rows
from kontrast.evaluate.result import Progress, Result
from kontrast.evaluate.subject import Subject


@dataclass(frozen=True, kw_only=True)
class Logistic(Protocol):
    """Logistic regression (1); ``C`` is the inverse of the penalty's strength.

    >>> Logistic(C=0.1).iterations
    500
    """

    C: float = 1.0
    iterations: int = 500
    tolerance: float = 1e-4
    standardize: bool = True
    limit: int | None = None
    name = "logistic"

    def __post_init__(self) -> None:
        number("C", self.C, above=0)
        number("tolerance", self.tolerance, above=0)
        whole_number("iterations", self.iterations, least=1)

    def run(self, subject: Subject, *, seed: int, progress: Progress | None) -> Result:
        """Fit, then test once; ``seed`` only chooses the rows of a ``limit``."""
        return self.classifier(subject, seed=seed, progress=progress).result

    def classifier(self, subject: Subject, *, seed: int, progress: Progress | None) -> Classifier:
        """The minimum of (1), for plain features."""
        train, x_test = subject.features(progress)
        x, y = limit_rows(train, subject.train_labels, self.limit, seed)
        standardised = Standardisation.of(x) if self.standardize else None
        if standardised is not None:
            x, x_test = standardised(x), standardised(x_test)
        w, b, end = self.fit(x, y, subject.num_classes)
        kind = "standardised features" if self.standardize else "features as they are"
        words = f"logistic regression, L-BFGS, C = {self.C:g}, {kind}"
        about = self.about(subject, words, seed=seed, train_rows=len(y), details={"C": self.C, **end})
        result = Result.of_scores(torch.addmm(b, x_test, w.T), subject.test_labels, **about)
        weight, bias = (w, b) if standardised is None else standardised.unfold(w, b)
        return Classifier(weight=weight, bias=bias, result=result)

    @torch.no_grad()
    def fit(self, x: Tensor, labels: Tensor, num_classes: int) -> tuple[Tensor, Tensor, dict[str, Any]]:
        """Weights ``[K, D]``, bias ``[K]``, and how it ended; in the precision of ``x``."""
        n, dim = x.shape
        flat = x.new_zeros(num_classes, dim + 1).requires_grad_()
        place = torch.arange(n)

        def closure() -> float:
            now = flat.detach()
            w, b = now[:, :dim], now[:, dim]
            z = torch.addmm(b, x, w.T).log_softmax(1)
            value = -float(z[place, labels].sum(dtype=torch.float64)) / n
            value += 0.5 * float(w.square().sum(dtype=torch.float64)) / (self.C * n)
            p = z.exp_()
            p[place, labels] -= 1.0
            gradient = torch.empty_like(flat)
            gradient[:, :dim] = (p.T @ x).add_(w, alpha=1 / self.C) / n
            gradient[:, dim] = p.mean(0)
            flat.grad = gradient
            return value

        search = LBFGS(
            [flat],
            max_iter=self.iterations,
            max_eval=2 * self.iterations,
            tolerance_grad=self.tolerance,
            tolerance_change=torch.finfo(x.dtype).eps ** 2,  # below it steps are rounding
            history_size=10,
            line_search_fn="strong_wolfe",
        )
        search.step(closure)  # type: ignore[no-untyped-call]
        closure()  # the gradient where it ended
        assert flat.grad is not None
        largest = float(flat.grad.abs().max())
        steps = int(search.state[flat]["n_iter"])
        weights = flat.detach()
        end = {"iterations": steps, "largest gradient": largest, "converged": largest <= self.tolerance}
        return weights[:, :dim].contiguous(), weights[:, dim].contiguous(), end
