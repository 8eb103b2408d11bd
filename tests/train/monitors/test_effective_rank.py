"""Effective rank, as geometry has it."""

from __future__ import annotations

import pytest
import torch

from kontrast import geometry
from kontrast.train.monitors import measure
from tests.train.monitors.snapshots import snapshot


def test_of_the_features_and_of_the_first_view() -> None:
    given = snapshot()
    assert measure(["effective-rank"], given) == {
        "monitor/effective_rank": geometry.spectrum(given.features).effective_rank,
        "monitor/effective_rank_embeddings": geometry.spectrum(given.embeddings[:, 0]).effective_rank,
    }


def test_dimensional_collapse_shows() -> None:
    """Rows in a plane have rank at most 2; what rounding adds in float32 is below 1e-3."""
    flat = snapshot().embeddings[:, :, :2] @ torch.randn(2, 8, generator=torch.Generator().manual_seed(1))
    found = measure(["effective-rank"], snapshot(embeddings=flat))
    assert 1.0 < found["monitor/effective_rank_embeddings"] < 2.001
    assert found["monitor/effective_rank"] > 9
    same = measure(["effective-rank"], snapshot(embeddings=flat[:1].repeat(40, 1, 1)))
    assert same["monitor/effective_rank_embeddings"] == pytest.approx(1.0, abs=1e-3)
