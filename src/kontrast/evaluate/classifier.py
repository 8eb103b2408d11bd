r"""A linear classifier of an encoder's features, as a linear protocol leaves it: what is deployed behind the encoder.

The linear protocols learn on standardised features x̂ = (x − μ) ∘ s. On features as the encoder gives them, the same
scores are

    (1)  Ŵ x̂ + b̂ = W x + b,    W = Ŵ diag(s),    b = b̂ − W μ
"""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from kontrast.evaluate.result import Result


@dataclass(frozen=True, kw_only=True, eq=False)
class Classifier:
    """A linear classifier of plain features, with the accuracy that its protocol found.

    Attributes:
        weight: W of (1), float32 ``[K, D]``.
        bias: b of (1), float32 ``[K]``.
        result: The protocol's result on the test rows.

    >>> import torch
    >>> from kontrast import evaluate
    >>> corners = torch.eye(3).repeat_interleave(4, 0)
    >>> labels = torch.arange(3).repeat_interleave(4)
    >>> subject = evaluate.Subject.from_features(corners, labels, corners, labels, class_names=["a", "b", "c"])
    >>> classifier = evaluate.fit_classifier(subject, "logistic")
    >>> classifier.logits(corners).argmax(1).equal(labels), classifier.class_names
    (True, ['a', 'b', 'c'])
    """

    weight: Tensor = field(repr=False)
    bias: Tensor = field(repr=False)
    result: Result

    @property
    def class_names(self) -> list[str]:
        """A name for each class; its number where the data have no names."""
        names = self.result.class_names
        return [str(name) for name in names] if names else [str(label) for label in range(len(self.bias))]

    def logits(self, features: Tensor) -> Tensor:
        """The scores ``[n, K]`` of features ``[n, D]`` as the encoder gives them (1)."""
        return features @ self.weight.T + self.bias
