"""The online kNN against a literal vote."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from kontrast.train.monitors import measure
from tests.train.monitors.snapshots import snapshot


@pytest.mark.parametrize("rows", [60, 7])
def test_twenty_neighbours_vote_by_their_cosines(rows: int) -> None:
    full = snapshot()
    assert full.reference is not None
    assert full.reference_labels is not None
    given = snapshot(reference=full.reference[:rows], reference_labels=full.reference_labels[:rows])
    right = 0
    for i in range(40):
        s = [float(F.cosine_similarity(given.features[i], full.reference[j], dim=0)) for j in range(rows)]
        votes = [0.0] * 4
        for j in sorted(range(rows), key=lambda j: -s[j])[:20]:
            votes[int(full.reference_labels[j])] += math.exp(s[j] / 0.07)
        right += votes.index(max(votes)) == i % 4
    assert 0 < right < 40, "else the comparison says little"
    assert measure(["knn"], given) == {"monitor/knn20": right / 40}


def test_classes_that_no_training_row_has_are_wrong_and_no_error() -> None:
    given = snapshot(labels=torch.arange(40) + 100)
    assert measure(["knn"], given) == {"monitor/knn20": 0.0}


def test_without_training_rows_it_is_an_error() -> None:
    with pytest.raises(ValueError, match="needs reference, reference_labels"):
        measure(["knn"], snapshot(reference=None))
