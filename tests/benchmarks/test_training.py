"""The benchmark of training still runs, its peer too, in small: a shared machine's times prove nothing."""

from __future__ import annotations

import subprocess

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
    rates = {(): (100.0, 110.0), (0,): (70.0, 77.0), (0, 1): (40.0, 44.0), (2,): (50.0, 55.0), (2, 3): (33.0, 36.0)}
    speeds = {
        (policy, busy): list(rates[which]) for policy in benchmark.POLICIES for busy, which in benchmark.BUSY.items()
    }
    busy = benchmark.Beside(speeds, "nobody else was there")
    lines = benchmark.goals(found, benchmark.Spread((0.7, 0.75, 0.8)), busy).splitlines()
    for what, measured, reached in (
        ("lightly", "3.00 ×", "yes"),
        ("bare encoder", "0.75 (0.72 … 0.78) ×", "no"),
        ("monitors", "10.0 %", "no"),
        ("quiet, against torch's default", "1.00 (1.00 … 1.00) ×", "yes"),
        ("beside one busy process", "0.70 (0.70 … 0.70) ×", "yes"),
        ("beside two", "0.40 (0.40 … 0.40) ×", "no"),
    ):
        found_lines = [line for line in lines if line.startswith(("| " + what, "| kontrast train against " + what))]
        assert len(found_lines) == 1, what
        assert measured in found_lines[0]
        assert f" {reached} " in found_lines[0]
    assert "nobody else was there" in benchmark.beside_table(busy)


def test_training_is_measured_against_the_bare_encoder_in_turns(benchmark, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "LONG", 1)
    found = benchmark.against_bare(2, 1)
    assert len(found.values) == 2
    assert all(value > 0 for value in found.values)


@pytest.mark.slow  # processes that train: test_training_is_measured_against_the_bare_encoder_in_turns
def test_processes_train_beside_busy_ones_and_leave_none(benchmark, monkeypatch: pytest.MonkeyPatch) -> None:
    """One policy, one round; every process that was started has ended."""
    begun: list[subprocess.Popen] = []

    class Popen(subprocess.Popen):
        def __init__(self, *arguments, **options) -> None:
            super().__init__(*arguments, **options)
            begun.append(self)

    monkeypatch.setattr(benchmark.subprocess, "Popen", Popen)
    monkeypatch.setattr(benchmark, "BUSY", {"quiet": (), "beside one of each": (0, 2)})
    monkeypatch.setattr(benchmark, "POLICIES", {"torch's default": {}})
    found = benchmark.beside(1, 1)
    assert set(found.speeds) == {("torch's default", "quiet"), ("torch's default", "beside one of each")}
    assert all(len(values) == 1 and values[0] > 0 for values in found.speeds.values())
    assert len(begun) == 5  # one that trains, and four that are let go or not
    assert all(process.poll() is not None for process in begun)


def test_the_large_step_is_the_plain_one_but_for_batch_norm(benchmark) -> None:
    cached, plain = (float(benchmark.large_step(pieces, 16)()) for pieces in (4, 1))
    assert abs(cached - plain) < 1.0  # other noise in the views and norms of 4 images; a wrong loss would be far off
    assert torch.isfinite(torch.tensor([cached, plain])).all()
