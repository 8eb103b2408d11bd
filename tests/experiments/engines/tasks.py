"""Tasks of a moment, what they leave behind, and a driver that is a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kontrast.experiments.cell import Cell, Task
from kontrast.experiments.engines import Event
from kontrast.train import resolve
from tests.train.small import recipe

ROOT = Path(__file__).parents[3]
ADDRESS = "tests.experiments.engines.tasks:"


def task(function: Callable[..., dict[str, Any]], out: Path, **options: Any) -> Cell:
    return Cell({"task": function.__name__, **options}, Task(ADDRESS + function.__name__, options, str(out)))


def training(out: Path, seed: int = 0, **changes: Any) -> Cell:
    """A run that writes a checkpoint every third step."""
    small = {"train.epochs": 3, "run.checkpoint_every": 3, "run.log_every": 2, "seed": seed, **changes}
    return Cell({"seed": seed}, resolve(recipe("supcon", out, **small)))


def square(folder: Path, x: float) -> dict[str, Any]:
    print("squaring")
    return {"value": x * x}


def threads(folder: Path) -> dict[str, Any]:
    import torch

    names = {"omp": "OMP_NUM_THREADS", "spins": "GOMP_SPINCOUNT", "policy": "OMP_WAIT_POLICY"}
    return {"torch": torch.get_num_threads(), **{key: os.environ.get(name) for key, name in names.items()}}


def counted(folder: Path, i: int, seconds: float = 0.3) -> dict[str, Any]:
    """Leaves a line each time it is done."""
    time.sleep(seconds)
    with (folder / "count.txt").open("a") as file:
        file.write(f"{os.getpid()}\n")
    return {"value": i}


def broken(folder: Path) -> dict[str, Any]:
    raise ArithmeticError("no such number")


def dies(folder: Path, times: int) -> dict[str, Any]:
    """Kills its process the first ``times`` times; a child that it has forked lives on, and holds all that it held."""
    deaths = folder / "deaths.txt"
    before = len(deaths.read_text()) if deaths.exists() else 0
    if before < times:
        deaths.write_text("x" * (before + 1))
        if os.fork() == 0:
            time.sleep(300)
            os._exit(0)
        os.kill(os.getpid(), signal.SIGKILL)
    return {"deaths": before}


class Heard(list[Event]):
    """Everything that was event, to be asked about."""

    def __call__(self, event: Event) -> None:
        self.append(event)

    def of(self, cell: Cell) -> list[str]:
        return [event.what for event in self if event.cell is cell]


def driver(cells: Sequence[Cell], **options: Any) -> subprocess.Popen[str]:
    """A process that runs the cells and prints the events; its main module has no guard, as in a notebook."""
    code = f"""
from kontrast.experiments.cell import Cell, Task
from kontrast.experiments.engines.local import Local
from kontrast.recipe import Recipe
cells = [Cell(at, Task(*does) if isinstance(does, tuple) else Recipe.of(does)) for at, does in {_plain(cells)!r}]
Local(**{options!r}).run(cells, lambda event: print(event.what, event.cell.path.name, flush=True))
"""
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", code], stdout=pipe, stderr=pipe, text=True, cwd=ROOT)


def _plain(cells: Sequence[Cell]) -> list[tuple[dict[str, Any], Any]]:
    def does(cell: Cell) -> Any:
        what = cell.does
        return (what.call, dict(what.options), what.out) if isinstance(what, Task) else what.model_dump(mode="json")

    return [(dict(cell.at), does(cell)) for cell in cells]


def workers_of(pid: int) -> list[int]:
    """The processes that a driver has started."""
    found = subprocess.run(["pgrep", "-P", str(pid), "-f", "engines.local"], capture_output=True, text=True)
    return [int(line) for line in found.stdout.split()]


def wait_for(condition: Callable[[], Any], seconds: float = 300.0) -> None:  # far beyond what a loaded machine takes
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def pid_of(cell: Cell) -> int:
    """The process that holds the lock of a cell's folder, on Linux."""
    inode = (cell.path / ".lock").stat().st_ino
    for line in Path("/proc/locks").read_text().splitlines():
        fields = line.split()  # 1: FLOCK ADVISORY WRITE pid major:minor:inode 0 EOF
        if fields[1] == "FLOCK" and fields[5].rpartition(":")[2] == str(inode):
            return int(fields[4])
    raise AssertionError(f"nobody holds {cell.path}")
