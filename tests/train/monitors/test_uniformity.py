"""Uniformity, as geometry has it."""

from __future__ import annotations

import pytest

from kontrast import geometry
from kontrast.train.monitors import measure
from tests.train.monitors.snapshots import snapshot


def test_of_the_first_view_and_of_the_features() -> None:
    given = snapshot()
    assert measure(["uniformity"], given) == {
        "monitor/uniformity": geometry.uniformity(given.embeddings[:, 0]),
        "monitor/uniformity_features": geometry.uniformity(given.features),
    }


def test_collapse_is_zero() -> None:
    given = snapshot(embeddings=snapshot().embeddings[:1, :1].repeat(40, 2, 1))
    assert measure(["uniformity"], given)["monitor/uniformity"] == pytest.approx(0.0, abs=1e-6)  # float32
