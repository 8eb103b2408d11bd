"""The benchmark of the evaluation still runs, and its peers find the same neighbours."""

from __future__ import annotations

import numpy as np
import pytest

from tests.benchmarks.loading import loaded


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch):
    with loaded("evaluation", monkeypatch) as module:
        yield module


def test_all_find_the_same_neighbours(benchmark) -> None:
    calls = benchmark.searches(20, 300, 16, 5)
    expected = calls[benchmark.OURS]()[1].numpy()
    for name, call in calls.items():
        found = call()
        if name not in (benchmark.OURS, "product alone"):
            assert np.array_equal(found[1], expected), name


def test_tables_and_goals_tell_who_is_ahead(benchmark) -> None:
    times = benchmark.in_turns(benchmark.heads(64, 4), rounds=2)
    assert list(times) == ["kontrast, 24 heads", "kontrast, one head", "one head, nn.Linear and SGD"]
    assert "kontrast, 24 heads" in benchmark.table("Heads", times, "ms")
    found = {20: {"kontrast": 1.0, "product alone": 0.9, "faiss": 2.0}}
    trained = {"small": {"many": 3.0, "one": 1.0}}
    lines = benchmark.goals(found, trained).splitlines()
    assert any("faiss" in line and "0.50 ×" in line and "yes" in line for line in lines)
    assert any("one" in line and "3.00 ×" in line and "no" in line for line in lines)
    assert not any("product alone" in line for line in lines)
