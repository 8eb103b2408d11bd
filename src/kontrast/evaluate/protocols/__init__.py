"""One protocol a file; the file name is the protocol's name (``wang-liu`` is ``wang_liu.py``).

>>> from kontrast import evaluate
>>> evaluate.names()
['graf-linear', 'graf-means', 'knn20', 'knn200', 'logistic', 'probe', 'retrieval', 'sce', 'tcl', 'wang-liu']
"""

from __future__ import annotations

import dataclasses
from typing import Any

from kontrast.checks import whole_number
from kontrast.evaluate.result import Progress, Result
from kontrast.evaluate.subject import Subject
from kontrast.registry import Family, nearest

PROTOCOLS = Family("kontrast.evaluate.protocols")


def names() -> list[str]:
    """Every protocol's name, as one writes it."""
    return [name.replace("_", "-") for name in PROTOCOLS.names()]


def evaluate(
    subject: Subject, protocol: str, *, seed: int = 0, progress: Progress | None = None, **options: Any
) -> Result:
    """A subject's accuracy by a protocol's name; ``options`` are the protocol's own.

    All that is drawn depends on ``seed``. ``progress`` is told ``(what, done, of)``. Under torch.distributed, call it
    on one rank.

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
    key = str(protocol).replace("-", "_")
    if key not in PROTOCOLS.names():
        hint = nearest(str(protocol).lower(), names())
        raise ValueError(f"no protocol {protocol!r}{hint} Known: {', '.join(names())}")
    kind = PROTOCOLS[key]
    known = [field.name for field in dataclasses.fields(kind)]
    for option in options:
        if option not in known:
            hint = nearest(option, known)
            raise ValueError(f"{protocol} has no option {option!r}{hint} It has {', '.join(known) or 'none'}")
    if kind.needs_encoder and subject.encoder is None:
        without = [name for name in names() if not PROTOCOLS[name].needs_encoder]
        raise ValueError(
            f"{protocol} trains on augmented images through the encoder, and this subject has features only; make it "
            f"with Subject.from_encoder, or choose one that works on features: {', '.join(without)}"
        )
    found: Result = kind(**options).run(subject, seed=whole_number("seed", seed, least=0), progress=progress)
    return found
