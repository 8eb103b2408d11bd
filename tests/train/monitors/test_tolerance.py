"""Tolerance, as geometry has it."""

from __future__ import annotations

import torch

from kontrast import geometry
from kontrast.train.monitors import measure
from tests.train.monitors.snapshots import snapshot


def test_of_the_first_view_and_of_the_features() -> None:
    given = snapshot()
    assert measure(["tolerance"], given) == {
        "monitor/tolerance": geometry.tolerance(given.embeddings[:, 0], given.labels),
        "monitor/tolerance_features": geometry.tolerance(given.features, given.labels),
    }


def test_classes_of_one_image_each_say_nothing() -> None:
    assert measure(["tolerance"], snapshot(labels=torch.arange(40))) == {}
