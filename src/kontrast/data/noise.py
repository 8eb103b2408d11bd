"""Label noise, for the random-labels experiment.

A share of the labels, chosen once by the seed, is replaced:

- "changed": by one of the K − 1 others, so that every chosen label is wrong;
- "redrawn": by any of the K, uniformly, so that about one in K stays as it was.

(Graf et al.: their current script has the first, after `NoisyLabels`; one of their stored results the second, after
Zhang et al.) The samples chosen for a smaller share are among those chosen for a larger one.
"""

from __future__ import annotations

import torch
from torch import Tensor

from kontrast.data.seeds import Stream, generator

KINDS = ("changed", "redrawn")


def noisy_labels(labels: Tensor, noise: float, num_classes: int, *, kind: str = "changed", seed: int = 0) -> Tensor:
    """``labels [N]`` in 0 … K−1 with the share ``noise`` of them replaced; the rest, and the input, stay as they are.

    >>> labels = torch.zeros(10, dtype=torch.long)
    >>> int((noisy_labels(labels, 0.3, num_classes=5) != labels).sum())
    3
    """
    if not isinstance(labels, Tensor):
        raise ValueError(f"label noise needs labels, a tensor [N] of whole numbers; got {type(labels).__name__}")
    if not 0 <= noise <= 1:
        raise ValueError(f"noise is a share of the labels, 0 … 1, got {noise}")
    if kind not in KINDS:
        raise ValueError(f"kind is {kind!r}; it must be one of {', '.join(map(repr, KINDS))}")
    if num_classes < 2:
        raise ValueError(f"labels of {num_classes} class cannot be changed: noise needs at least 2")
    if len(labels) and not (int(labels.min()) >= 0 and int(labels.max()) < num_classes):
        raise ValueError(
            f"labels run from {int(labels.min())} to {int(labels.max())}; with num_classes={num_classes} they must be "
            f"in 0 … {num_classes - 1}"
        )
    n = len(labels)
    chosen = torch.randperm(n, generator=generator(seed, Stream.NOISE, 0))[: round(noise * n)].to(labels.device)
    # One draw for every sample, so that what a sample gets does not depend on the share.
    draws = generator(seed, Stream.NOISE, 1)
    if kind == "redrawn":
        other = torch.randint(num_classes, (n,), generator=draws).to(labels)
    else:
        other = (labels + 1 + torch.randint(num_classes - 1, (n,), generator=draws).to(labels)) % num_classes
    noisy = labels.clone()
    noisy[chosen] = other[chosen]
    return noisy
