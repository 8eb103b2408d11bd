r"""Graf et al.'s explicit classifier: its rows are the class means of the training features.

    (1)  W_c = mean of z over class c,   score_c = ⟨W_c, z⟩,   no bias

(``explicit_linear`` of the published code.) Where classes collapse to the vertices of a simplex this is the optimal
classifier up to scale, and (1) the nearest class mean.

Deviates: the paper's SC network gives unit vectors itself; ours normalise outside the encoder, so features are put on
the unit sphere here. ``normalize=False`` for encoders trained with cross-entropy, which the paper leaves as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from kontrast.evaluate.protocol import Protocol
from kontrast.evaluate.result import Progress, Result
from kontrast.evaluate.subject import Subject
from kontrast.sphere import directions, sized


@dataclass(frozen=True, kw_only=True)
class GrafMeans(Protocol):
    """The classifier (1), on unit features unless ``normalize=False``.

    >>> GrafMeans().normalize
    True
    """

    normalize: bool = True
    name = "graf-means"

    def run(self, subject: Subject, *, seed: int, progress: Progress | None) -> Result:
        """Compute the class means, then test once; ``seed`` has no effect."""
        train, test = subject.features(progress)
        z, z_test = (directions(x) if self.normalize else sized(x)[0] for x in (train, test))
        sums = torch.zeros(subject.num_classes, z.shape[1], dtype=torch.float64)
        sums.index_add_(0, subject.train_labels, z.double())
        counts = torch.bincount(subject.train_labels, minlength=subject.num_classes)
        means = (sums / counts.clamp_min(1)[:, None]).float()  # (1); a class without rows scores 0
        kind = "unit features" if self.normalize else "features as they are"
        words = f"linear classifier of the class means, {kind}, no bias (Graf et al., explicit)"
        return Result.of_scores(z_test @ means.T, subject.test_labels, **self.about(subject, words, seed=seed))
