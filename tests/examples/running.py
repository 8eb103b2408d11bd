"""An example as a reader runs it: a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def accuracies(name: str, *words: str) -> tuple[float, float]:
    """What ``examples/<name>.py`` prints of kNN before and after, in per cent."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py"), *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    before, after = re.findall(r"kNN (?:before|after \d+ steps): ([\d.]+) %", done.stdout)
    return float(before), float(after)
