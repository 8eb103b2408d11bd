"""The benchmark is run in small, only to see that it still works: a shared machine's times prove nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "encoders.py"


def test_the_quick_form_prints_a_row_for_each_encoder_and_layout() -> None:
    environment = os.environ | {"PYTHONPATH": str(BENCHMARK.parent)}
    command = [sys.executable, str(BENCHMARK), "--quick", "--batch", "2", "--rounds", "1", "--threads", "1"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    header, _, small, large = done[done.index("|") :].strip().splitlines()
    assert [cell.strip() for cell in header.split("|")[2:-1]] == ["parameters", "default", "channels_last"]
    assert small.split("|")[2].strip() == "76,168"
    assert large.split("|")[2].strip() == "11,168,832"
    assert all("(1)" in row.split("|")[3] for row in (small, large)), "the default layout is what others are held to"
