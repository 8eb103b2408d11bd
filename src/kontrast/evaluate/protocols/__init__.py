"""One protocol a file; the file name is the protocol's name (``wang-liu`` is ``wang_liu.py``).

>>> from kontrast import evaluate
>>> evaluate.names()
['graf-linear', 'graf-means', ...]
"""

from __future__ import annotations

import dataclasses
from typing import Any

from kontrast.checks import whole_number
from kontrast.evaluate.classifier import Classifier
from kontrast.evaluate.protocol import Protocol
from kontrast.evaluate.result import Progress, Result
from kontrast.evaluate.subject import Subject
from kontrast.registry import FAMILIES

PROTOCOLS = FAMILIES["protocol"]


def names() -> list[str]:
    """Every protocol's name.

    Returns:
        The names in alphabetical order.

    >>> names()[:2]
    ['graf-linear', 'graf-means']
    """
    return PROTOCOLS.names()


def evaluate(
    subject: Subject, protocol: str, *, seed: int = 0, progress: Progress | None = None, **options: Any
) -> Result:
    """Evaluate a subject by the protocol of this name. Under torch.distributed, call it on one rank only.

    Args:
        subject: features and labels, or an encoder and data.
        protocol: one of `names`.
        seed: of everything that is drawn.
        progress: is called with ``(what, done, of)``.
        **options: the protocol's own (``PROTOCOLS.options(name)``).

    Returns:
        The accuracy with its protocol.

    Raises:
        ValueError: an unknown name or option (the error names the nearest one), or a protocol that needs an encoder and
            has features only.

    >>> import torch
    >>> corner = torch.eye(3).repeat_interleave(4, 0)
    >>> features = corner + 0.1 * torch.randn(12, 3, generator=torch.Generator().manual_seed(0))
    >>> labels = torch.arange(3).repeat_interleave(4)
    >>> print(evaluate(Subject.from_features(features, labels, corner, labels), "graf-means"))
    100.00 % ± 0.00: linear classifier of the class means, unit features, no bias (Graf et al., explicit); ...
    >>> evaluate(Subject.from_features(features, labels, corner, labels), "knn")
    Traceback (most recent call last):
        ...
    ValueError: no protocol 'knn'; did you mean 'knn20'? Known: graf-linear, graf-means, knn20, ...
    """
    part = PROTOCOLS.make(protocol, **options)
    if part.needs_encoder and subject.encoder is None:
        without = [name for name in names() if not PROTOCOLS[name].needs_encoder]
        raise ValueError(
            f"{protocol} trains on augmented images through the encoder, and this subject has features only; make it "
            f"with Subject.from_encoder, or choose one that works on features: {', '.join(without)}"
        )
    result: Result = part.run(subject, seed=whole_number("seed", seed, least=0), progress=progress)
    return dataclasses.replace(result, name=PROTOCOLS.canonical(protocol))


def fit_classifier(
    subject: Subject, protocol: str = "probe", *, seed: int = 0, progress: Progress | None = None, **options: Any
) -> Classifier:
    """Fit the linear classifier that a linear protocol tests, for features as the encoder gives them.

    Args:
        subject: features and labels, or an encoder and data.
        protocol: one that fits a linear classifier of features: ``probe`` or ``logistic``.
        seed: as for `evaluate`; with the same seed the result is the same.
        progress: is called with ``(what, done, of)``.
        **options: the protocol's own.

    Returns:
        The classifier, with the result of the protocol.

    Raises:
        ValueError: an unknown name or option, or a protocol that is no linear classifier of features.

    >>> import torch
    >>> corners, labels = torch.eye(3).repeat_interleave(4, 0), torch.arange(3).repeat_interleave(4)
    >>> subject = Subject.from_features(corners, labels, corners, labels)
    >>> classifier = fit_classifier(subject, "logistic")
    >>> classifier.result.value == evaluate(subject, "logistic").value
    True
    >>> fit_classifier(subject, "knn20")
    Traceback (most recent call last):
        ...
    ValueError: knn20 fits no linear classifier of features. Use one that does: logistic, probe
    """
    part = PROTOCOLS.make(protocol, **options)
    classifier: Classifier | None = part.classifier(
        subject, seed=whole_number("seed", seed, least=0), progress=progress
    )
    if classifier is None:
        linear = [name for name in names() if PROTOCOLS[name].classifier is not Protocol.classifier]
        raise ValueError(f"{protocol} fits no linear classifier of features. Use one that does: {', '.join(linear)}")
    result = dataclasses.replace(classifier.result, name=PROTOCOLS.canonical(protocol))
    return dataclasses.replace(classifier, result=result)
