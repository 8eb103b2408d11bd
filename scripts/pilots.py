"""Pilots of the plan: a few cells of each entry with one seed, to see what they learn and what a cell costs.

    python scripts/pilots.py [NAME …] [--data DIR] [--folder DIR]

Runs the cells that ``pilot`` of an entry chooses (docs/experiments/plan.toml), one after another on one core, and
writes measures, learning curve and core-seconds (CPU time of the process, so that other work on the machine does not
count) to docs/experiments/pilots/<entry>.json. `python docs/plan.py` then writes the page of the plan. Without names
all entries are run. For two cores, start it twice with different names. Stopped by Ctrl-C or SIGTERM, it goes on from
its checkpoint when called again. Runs lie in --folder, by default ../<working tree>-pilots.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sys
import time
from pathlib import Path
from typing import Any

import torch

import designs
import kontrast
import plan_entries
from kontrast.experiments.cell import Cell
from kontrast.experiments.experiment import Row
from kontrast.files import finite, write_atomically, write_json
from kontrast.runs import commit

ROOT = Path(__file__).resolve().parents[1]


def measure(cell: Cell) -> float:
    """Run a cell, or what is left of it; the core-seconds it took in all, over several calls too.

    Raises:
        ValueError: The cell is done, but nobody measured it.
    """
    spent = Path("spent") / f"{cell.path.name}.json"
    spent.parent.mkdir(exist_ok=True)
    before = json.loads(spent.read_text(encoding="utf-8"))["core_seconds"] if spent.exists() else 0.0
    if cell.done:
        if not before:
            raise ValueError(f"{cell.path}: was run by something else, which did not measure it. Remove the folder")
        return float(before)
    began = time.process_time()
    try:
        cell.perform()
    finally:  # also if it is stopped
        write_json(spent, {"core_seconds": before + time.process_time() - began})
    return measure(cell)


def record(entry: plan_entries.Entry) -> dict[str, Any]:
    """Run the pilot of an entry; what came of it."""
    sweep = designs.sweep_of(entry, pilot=True)
    cells = []
    for cell in sweep.cells:
        print(f"{entry.name}: {cell.name}", flush=True)
        seconds = measure(cell)
        print(f"  {seconds:.0f} core-seconds", flush=True)
        cells.append(seconds)
    return {
        "made": {"version": kontrast.__version__, "commit": commit(), "machine": platform.machine()},
        "cells": [_cell(row, seconds) for row, seconds in zip(sweep.rows(), cells, strict=True)],
    }


def _cell(row: Row, seconds: float) -> dict[str, Any]:
    curve = [{name: float(f"{value:.5g}") for name, value in point.items()} for point in row.curve]
    return {"at": dict(row.at), "core_seconds": round(seconds, 1), "values": dict(row.values), "curve": curve}


def main() -> int:
    """Run the pilots that are asked for; 1 if one failed."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("names", nargs="*", metavar="NAME", help="entries of the plan; all if left out")
    arguments.add_argument("--data", default=os.environ.get("KONTRAST_DATA"), help="the folder with the data files")
    arguments.add_argument("--folder", type=Path, default=ROOT.parent / f"{ROOT.name}-pilots")
    arguments.add_argument("--plan", type=Path, default=ROOT / plan_entries.PLAN)
    arguments.add_argument("--to", type=Path, default=ROOT / plan_entries.PILOTS, help="where the records go")
    asked = arguments.parse_args()
    entries = {entry.name: entry for entry in plan_entries.read_plan(asked.plan) if not entry.tune}
    unknown = [name for name in asked.names if name not in entries]
    if unknown:
        arguments.error(f"{unknown[0]}: is no entry with a pilot. Use {', '.join(entries)}")
    chosen = [entries[name] for name in asked.names or entries]
    to = asked.to.resolve()
    asked.folder.mkdir(parents=True, exist_ok=True)
    try:
        plan_entries.link_data(asked.folder.resolve(), asked.data, chosen)
    except ValueError as error:
        arguments.error(str(error))
    os.chdir(asked.folder)
    os.nice(5)
    torch.set_num_threads(1)
    to.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: what it took is written down
    failed = 0
    for entry in chosen:
        try:
            text = json.dumps(finite(record(entry)), ensure_ascii=False)
        except (ValueError, OSError) as error:  # the other entries can still be run
            print(f"{entry.name}: {error}", file=sys.stderr)
            failed += 1
        else:
            write_atomically(to / f"{entry.name}.json", f"{text}\n".encode())
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
