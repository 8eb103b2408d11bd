"""``kontrast bench``: the losses against their peers and their limit, on this machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

import kontrast

SCRIPTS = Path(kontrast.__file__).parents[2] / "benchmarks"


def bench(
    whole: Annotated[
        bool, typer.Option("--whole", help="Measure all sizes and rounds: many minutes instead of less than one.")
    ] = False,
    threads: Annotated[int, typer.Option(min=1, help="Threads that torch computes with.")] = 2,
) -> None:
    """Measure time and memory of every loss, beside its peers and the matrix products that it needs at least."""
    script = SCRIPTS / "losses.py"
    if not script.exists():
        raise ValueError(
            f"there is no file {script}: the benchmarks are in the source tree, not in the package. Clone it, install "
            "it (pip install -e '.[peers]'), and run this command there"
        )
    process = subprocess.run([sys.executable, str(script), *([] if whole else ["--quick"]), "--threads", str(threads)])
    raise typer.Exit(process.returncode)
