"""Class means as classifier, by hand."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from kontrast.evaluate import Subject, evaluate


@pytest.mark.parametrize("normalize", [True, False])
def test_rows_are_class_means(subject: Subject, normalize: bool) -> None:
    found = evaluate(subject, "graf-means", normalize=normalize)
    z, z_test = (F.normalize(x) if normalize else x for x in (subject.train, subject.test))
    means = torch.stack([z[subject.train_labels == c].mean(0) for c in range(7)])
    scores = z_test @ means.T
    chosen = scores.gather(1, found.predictions[:, None])[:, 0]
    # Means of 100 rows in float32 and products of 12 terms: a class may be chosen that is this close to the best.
    assert bool((chosen >= scores.amax(1) - 1e-5).all())
    assert ("unit features" in found.protocol) == normalize
