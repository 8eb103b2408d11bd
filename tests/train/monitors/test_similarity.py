"""Positive and nearest-negative similarity against a literal loop."""

from __future__ import annotations

import pytest
import torch.nn.functional as F

from kontrast.train.monitors import measure
from tests.train.monitors.snapshots import snapshot


def test_means_over_the_images() -> None:
    given = snapshot(m=9, embeddings=snapshot(m=9).embeddings.double())
    z = F.normalize(given.embeddings, dim=2)
    positive = sum(float(z[i, 0] @ z[i, 1]) for i in range(9)) / 9
    negative = sum(max(float(z[i, 0] @ z[j, 1]) for j in range(9) if j != i) for i in range(9)) / 9
    assert measure(["similarity"], given) == pytest.approx(
        {
            "monitor/positive_similarity": positive,
            "monitor/negative_similarity": negative,
            "monitor/similarity_gap": positive - negative,
        },
        rel=1e-9,
    )  # float64 sums of nine terms


def test_collapse_is_one_and_one() -> None:
    given = snapshot(embeddings=snapshot().embeddings[:1, :1].repeat(40, 2, 1))
    assert measure(["similarity"], given) == pytest.approx(
        {"monitor/positive_similarity": 1.0, "monitor/negative_similarity": 1.0, "monitor/similarity_gap": 0.0},
        abs=1e-6,
    )  # float32
