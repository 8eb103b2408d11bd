"""The benchmark of the augmentations still runs, its peers too, and all make the same kind of view."""

from __future__ import annotations

import pytest
import torch

from tests.benchmarks.loading import loaded


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch):
    with loaded("augment", monkeypatch) as module:
        monkeypatch.setattr(module, "SIZES", {32: 8, 224: 2})
        yield module


@pytest.mark.filterwarnings("ignore")  # the peers' own
def test_every_call_makes_a_normalised_view(benchmark) -> None:
    torch.manual_seed(0)
    for make in benchmark.TABLES.values():
        for name, call in make(32).items():
            views = call()
            assert views.shape == (8, 3, 32, 32), name
            assert views.dtype == torch.float32, name
            if "alone" not in name:
                assert -2.5 < views.min() < 0 < views.max() < 2.9, name  # (0 − mean)/std … (1 − mean)/std


def test_tables_tell_views_and_goals(benchmark) -> None:
    times = dict.fromkeys(("kontrast SimAugment", "kontrast AutoAugment, crop, flip"), 10.0)
    results = {
        "SimAugment": {32: times | {"lightly SimCLRTransform": 90.0, "kornia": 15.0}},
        "AutoAugment": {32: times | {"torchvision, PIL": 50.0}},
    }
    goals = benchmark.goals(results)
    assert "9.0 × |     yes" in goals
    assert "1.5 × |      no" in goals
    assert "5.0 × |     yes" in goals
    assert "800" in benchmark.table("SimAugment", results["SimAugment"]), "8 images in 10 ms"
