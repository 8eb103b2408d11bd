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
    assert torch.equal(found.predictions, (z_test @ means.T).argmax(1))
    assert ("unit features" in found.protocol) == normalize
