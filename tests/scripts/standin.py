"""A stand-in for the package kontrast, for tests of scripts/results: it starts in a moment and trains nothing.

`python -m kontrast reproduce NAME …` makes runs/NAME. An experiment called long counts steps until SIGTERM, saves them,
and goes on from there; any other is done at once. `tune NAME` leaves a record of one trial. `ledger add NAME … --ledger
DIR` copies a finished one's record. As scripts/designs.py it knows an experiment for every name but "unknown".
"""

from __future__ import annotations

import json
import signal
import sys
import time
import tomllib
from pathlib import Path
from typing import Any


def write(file: Path, state: dict[str, Any]) -> None:
    part = file.with_suffix(".part")
    part.write_text(json.dumps(state))
    part.rename(file)


def reproduce(name: str) -> int:
    file = Path("runs", name, "run.json")
    file.parent.mkdir(parents=True, exist_ok=True)
    state = json.loads(file.read_text()) if file.exists() else {"status": "training", "step": 0, "seconds": 0.0}
    if state["status"] == "done":
        print(f"{name}: 0 to do", flush=True)
        return 0
    if name != "long":
        write(file, {**state, "status": "done", "seconds": 3600.0})
        return int(name == "failing")
    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda signum, frame: asked.append(signum))
    while not asked:
        state["step"] += 1
        write(file, {**state, "status": "training"})
        time.sleep(0.02)
    write(file, {**state, "status": "interrupted"})
    return 143


def tune(name: str) -> int:
    """The record of a search with one trial; of "endless" it is not ended."""
    file = Path("runs", f"tune-{name}", "tune.json")
    file.parent.mkdir(parents=True, exist_ok=True)
    phase = {"name": "start", "trials": [{"setting": {"k1": 4000.0}}]}
    status = "running" if name == "endless" else "done"
    write(file, {"recipe": name, "phases": [phase], "status": status, "chosen": {"k1": 4000.0}})
    return 0


def add(name: str, ledger: Path) -> int:
    state = json.loads(Path("runs", name, "run.json").read_text())
    ledger.mkdir(parents=True, exist_ok=True)
    (ledger / f"{name}-smoke.jsonl").write_text(json.dumps(state))
    print("added")
    return 0


def designs(plan: Path) -> int:
    found = []
    for entry in tomllib.loads(plan.read_text())["entry"]:
        if "tune" in entry:
            folder = f"tune-{entry['tune']}"
            found.append({"name": entry["name"], "folders": {folder: {"status": "missing", "seconds": 0.0}}})
            continue
        name = entry["experiment"]
        file = Path("runs", name, "run.json")
        state = json.loads(file.read_text()) if file.exists() else {"status": "missing", "seconds": 0.0}
        found.append(
            {"name": name, "folders": {name: state}} if name != "unknown" else {"name": name, "error": "unknown!"}
        )
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    words = sys.argv[1:]
    if words[0] == "reproduce":
        sys.exit(reproduce(words[1]))
    if words[0] == "tune":
        sys.exit(tune(words[1]))
    if words[:2] == ["ledger", "add"]:
        sys.exit(add(words[2], Path(words[words.index("--ledger") + 1])))
    sys.exit(designs(Path(words[0])))
