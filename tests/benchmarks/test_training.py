"""The benchmark of training still runs, its peer too, in small: a shared machine's times prove nothing."""

from __future__ import annotations

import pytest
import torch

from tests.benchmarks.loading import loaded


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch):
    with loaded("training", monkeypatch) as module:
        monkeypatch.setattr(module, "BATCH", 8)
        yield module


@pytest.mark.filterwarnings("ignore")  # the peers' own
def test_every_loop_runs_its_epoch(benchmark) -> None:
    found = benchmark.speeds("small-resnet", 16, 1)
    assert list(found) == [benchmark.OURS, benchmark.NO_MONITORS, benchmark.LIGHTLY, benchmark.BARE]
    assert all(value > 0 for value in found.values())
    lines = benchmark.speed_table("small-resnet", 16, found).splitlines()
    assert lines[-1].startswith("| bare encoder")
    assert lines[-1].rstrip(" |").endswith(" 1")


def test_goals_are_ratios(benchmark) -> None:
    found = {benchmark.OURS: 90.0, benchmark.NO_MONITORS: 100.0, benchmark.LIGHTLY: 30.0, benchmark.BARE: 120.0}
    lines = benchmark.goals(found).splitlines()
    assert any("lightly" in line and "3.00 ×" in line and "yes" in line for line in lines)
    assert any("bare" in line and "0.75 ×" in line and "no" in line for line in lines)
    assert any("monitors" in line and "10.0 %" in line and "no" in line for line in lines)


def test_the_large_step_is_the_plain_one_but_for_batch_norm(benchmark) -> None:
    cached, plain = (float(benchmark.large_step(pieces, 16)()) for pieces in (4, 1))
    assert abs(cached - plain) < 1.0  # other noise in the views and norms of 4 images; a wrong loss would be far off
    assert torch.isfinite(torch.tensor([cached, plain])).all()
