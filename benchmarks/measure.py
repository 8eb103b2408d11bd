"""Measuring side by side: interleaved rounds for time, a fresh process for peak memory."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median

import torch

Call = Callable[[], object]
SLOW = 2.0  # a call that takes longer (seconds) is timed once


def milliseconds(calls: dict[str, Call], *, rounds: int) -> dict[str, float]:
    """Median over the rounds of each call's time. The calls take turns, so that a neighbour's load on the machine meets
    all alike; a turn is three calls in a row of which the fastest counts, so that none pays for the memory that the one
    before it gave back to the system."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            if not times[name] or times[name][0] < SLOW:
                times[name].append(_fastest(call))
    return {name: 1e3 * median(seen) for name, seen in times.items()}


def _fastest(call: Call) -> float:
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
        if best > SLOW:
            break
    return best


def resident() -> tuple[float, float]:
    """Resident memory of this process now and at its peak, in MB."""
    status = Path("/proc/self/status")
    if not status.exists():
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
        return peak, peak
    text = status.read_text()
    now, peak = (int(re.search(rf"{key}:\s+(\d+)", text)[1]) / 1024 for key in ("VmRSS", "VmHWM"))  # type: ignore[index]
    return now, peak


def peak_megabytes(call: Call) -> float:
    """How far a call raises this process's memory above what it holds before."""
    reset = Path("/proc/self/clear_refs")
    if reset.exists():
        reset.write_text("5")  # the peak starts anew from here
    before, _ = resident()
    call()
    return resident()[1] - before


def in_fresh_process(script: str, arguments: Iterable[object], *, timeout: float = 600) -> float | None:
    """The last line a script prints, as a number; None if it failed (out of memory, say)."""
    command = [sys.executable, script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    return float(done.stdout.split()[-1]) if done.returncode == 0 else None


def print_peak(tables: Mapping[str, Callable[[int], dict[str, Call]]], table: str, name: str, size: str) -> None:
    """One call's peak memory, as the last line printed: what `in_fresh_process` reads."""
    tables[table](64)[name]()  # libraries and threads are there before the count begins
    call = tables[table](int(size))[name]
    print(peak_megabytes(call))


class Sections(list[str]):
    """What a benchmark has to say, printed as it comes."""

    def show(self, section: str) -> None:
        self.append(section)
        print(section, end="\n\n", flush=True)


def setting() -> str:
    """The versions and threads a table was made with."""
    versions = f"torch {torch.__version__.partition('+')[0]}, Python {sys.version.split()[0]}"
    return f"{versions}, {torch.get_num_threads()} CPU threads"


def write_page(name: str, doc: str, sections: Iterable[str]) -> None:
    """Write docs/benchmarks/NAME.md: what it shows, the tables, and how it was measured, in the script's own words."""
    command = " ".join(["benchmarks/" + Path(sys.argv[0]).name, *sys.argv[1:]])
    shows, _, method = doc.split("\n\n", 2)
    page = [f"# Benchmarks: {name}", f"{shows} Written by `python {command}`.", *sections]
    page += ["## How it was measured", method.strip()]
    (Path(__file__).parents[1] / "docs" / "benchmarks" / f"{name}.md").write_text("\n\n".join(page) + "\n")


def number(value: float | None, digits: int = 3) -> str:
    """Three digits, or all before the point."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.{digits}g}"


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, its columns aligned so that it reads well in a terminal too."""
    lines = [list(header), *map(list, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    cells = [
        "| " + " | ".join(c.rjust(w) if i else c.ljust(w) for i, (c, w) in enumerate(zip(r, widths, strict=True)))
        for r in lines
    ]
    rule = "|" + "|".join("-" * (w + 1) + (":" if i else "-") for i, w in enumerate(widths)) + "|"
    return "\n".join(line + " |" if not line.endswith("|") else line for line in [cells[0], rule, *cells[1:]])
