"""Measures over all pairs never hold all pairs: the rise of a process's peak, each measure in a fresh one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

CHILD = """
import sys, torch
sys.path.insert(0, sys.argv[1])
from kontrast import geometry
from measure import peak_megabytes
torch.set_num_threads(2)

def call(name, n, dim):
    x = torch.randn(n, dim, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(n) % 100
    return {
        "uniformity": lambda: geometry.uniformity(x, with_error=True),
        "entropy": lambda: geometry.penalty_entropy(x, x, temperature=[0.1, 1.0]),
        "separation": lambda: geometry.local_separation(x, x),
        "magnitudes": lambda: geometry.gradient_magnitudes(x, x, temperature=0.1),
        "response": lambda: geometry.gradient_response(x, labels, temperature=0.1, k1=1.0, k2=1.0),
        "tolerance": lambda: geometry.tolerance(x, labels, with_error=True),
        "simplex": lambda: geometry.simplex(x, labels, with_error=True),
        "neural collapse": lambda: geometry.neural_collapse(x, labels),
        "spectrum": lambda: geometry.spectrum(x, with_error=True),
    }[name]

name, n, dim = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
call(name, 1000, dim)()  # libraries and threads are there before the count begins
print(peak_megabytes(call(name, n, dim)))
"""
BUDGET = 160.0  # MB: a strip or a block and what is made of it
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak is read from /proc")


def peak(name: str, n: int, dim: int) -> float:
    command = [sys.executable, "-c", CHILD, str(BENCHMARKS), name, str(n), str(dim)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def check(name: str, n: int, dim: int) -> None:
    """A fixed budget and some copies of the features, where one float32 matrix of all pairs would be 4 N² bytes."""
    features, pairs = 4 * n * dim / 2**20, 4 * n * n / 2**20
    found = peak(name, n, dim)
    assert found <= BUDGET + 6 * features, f"{name} adds {found:.0f} MB at {n} × {dim}"
    assert BUDGET + 6 * features < 0.8 * pairs, "the limit would not notice the whole matrix"


def test_budget_at_9000_rows() -> None:
    check("entropy", 9000, 32)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "uniformity",
        "entropy",
        "separation",
        "magnitudes",
        "response",
        "tolerance",
        "simplex",
        "neural collapse",
        "spectrum",
    ],
)
def test_budget_at_20000_rows_of_256(name: str) -> None:
    check(name, 20_000, 256)
