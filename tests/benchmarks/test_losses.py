"""The benchmark is run in small, only to see that it still works: a shared machine's times prove nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.loading import loaded

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "losses.py"


def run(*arguments: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(BENCHMARK.parent)}
    command = [sys.executable, str(BENCHMARK), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow  # tests/losses/test_memory.py measures the losses in every run
def test_one_call_reports_its_peak() -> None:
    """The dense loss of 1,024 rows holds several matrices of 4 MB, the tiled one does not."""
    dense, tiled = (float(run("--peak", "square", name, "1024")) for name in ("dense SupCon", "kontrast SupCon"))
    assert dense > 12
    assert 0 <= tiled < dense


@pytest.mark.filterwarnings("ignore")  # the peers' own
def test_every_call_of_every_table_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    names = []
    with loaded("losses", monkeypatch) as benchmark:
        for table in benchmark.TABLES.values():
            for name, call in table(32).items():
                call()
                names.append(name)
    assert names.count("two products") == 2
    assert {"kontrast SupCon", "kontrast TCL", "kontrast NT-Xent", "kontrast InfoNCE", "kontrast SCE"} <= set(names)
