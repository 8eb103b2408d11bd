"""The benchmark of exploring still runs: what it plants is there, and ours finds it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from kontrast import models
from kontrast.train import preparing
from tests.benchmarks.loading import loaded
from tests.explore.made import blobs, picture


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch):
    with loaded("explore", monkeypatch) as module:
        yield module


@pytest.fixture
def net() -> models.Encoder:
    encoder = models.encoder("small-resnet", width=4, seed=0, image_size=32).eval()
    encoder.preprocessing = models.Preprocessing(32, (0.5,) * 3, (0.25,) * 3, "bilinear", 1.0)
    encoder.embedder = preparing.embed
    return encoder


def test_copies_are_planted_and_found(benchmark, net: models.Encoder, tmp_path: Path) -> None:
    for i in range(80):
        place = tmp_path / "photos" / ("train", "val")[i % 4 == 0] / ("cat", "dog")[i // 4 % 2]
        place.mkdir(parents=True, exist_ok=True)
        picture(i, (160, 160)).save(place / f"{i}.png")
    planted = benchmark.plant_copies(tmp_path / "photos", tmp_path / "copied", seed=0)
    assert len(planted) == 8
    assert all((tmp_path / "copied" / name).is_file() for pair in planted for name in pair)
    seconds, found = benchmark.find_ours(tmp_path / "copied", net)
    assert found == planted
    assert seconds > 0


def test_labels_are_moved_and_judged(benchmark) -> None:
    x, y = blobs(400, 4, apart=5.0)
    given, rows = benchmark.move_labels(x, y, seed=0)
    assert len(rows) == 20
    assert set((given != y).nonzero()[:, 0].tolist()) == rows
    found, score = benchmark.judge_ours(x, given)
    assert len(rows & set(found)) >= 18
    assert benchmark.average_precision(score, rows) > 0.9
    assert benchmark.average_precision(torch.arange(4.0), {3, 1}) == pytest.approx((1 + 2 / 3) / 2)
    assert "| kontrast |" in benchmark.scores({"kontrast": [(1.0, 0.5, 2.0), (0.8, 0.5, 2.0)]})
    assert benchmark.percent([0.9, 0.7]) == "80.0 ± 10.0"
