"""The benchmark is run in small, only to see that it still works: a shared machine's times prove nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "losses.py"


def run(*arguments: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(BENCHMARK.parent)}
    command = [sys.executable, str(BENCHMARK), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def test_one_call_reports_its_peak() -> None:
    """The dense loss of 1,024 rows holds several matrices of 4 MB, the tiled one does not."""
    dense, tiled = (float(run("--peak", "square", name, "1024")) for name in ("dense SupCon", "kontrast SupCon"))
    assert dense > 12
    assert 0 <= tiled < dense


def test_every_call_of_every_table_runs() -> None:
    code = (
        "import losses\n"
        "for table in losses.TABLES.values():\n"
        "    for name, call in table(32).items():\n"
        "        call(); print(name)\n"
    )
    environment = os.environ | {"PYTHONPATH": str(BENCHMARK.parent)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    names = done.stdout.splitlines()
    assert names.count("two products") == 2
    assert {"kontrast SupCon", "kontrast TCL", "kontrast NT-Xent", "kontrast InfoNCE", "kontrast SCE"} <= set(names)
