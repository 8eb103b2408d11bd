"""The benchmark of the measures still runs, and what it calls usual computes the same as ours."""

from __future__ import annotations

import pytest
import torch

from kontrast import geometry
from tests.benchmarks.loading import loaded


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch):
    with loaded("geometry", monkeypatch) as module:
        yield module


def test_every_call_runs(benchmark) -> None:
    for call in benchmark.calls(700).values():
        call()


def test_the_usual_ways_agree_with_ours(benchmark) -> None:
    x, labels = benchmark.data(600)
    tau = benchmark.TAU
    torch.testing.assert_close(float(benchmark.usual_uniformity(x)), geometry.uniformity(x), atol=1e-5, rtol=0)
    torch.testing.assert_close(
        benchmark.usual_entropy(x), geometry.penalty_entropy(x, x, temperature=tau), atol=1e-5, rtol=1e-5
    )
    torch.testing.assert_close(
        benchmark.similarities(x).topk(10, dim=1).values, geometry.local_separation(x, x).nearest, atol=1e-6, rtol=0
    )
    ours = geometry.gradient_response(x, labels, temperature=tau, k1=0.0, k2=1.0).positive
    torch.testing.assert_close(benchmark.usual_response(x, labels), ours, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(
        float(benchmark.usual_tolerance(x, labels)), geometry.tolerance(x, labels), atol=1e-6, rtol=0
    )
