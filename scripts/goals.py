"""Run what the small recipes are to reach (docs/experiments/goals.toml), as a user would, and keep what came out.

    python scripts/goals.py [NAME …] --out DIR [--data DIR] [--seeds 3] [--threads 2]

Each goal is one `kontrast train` a seed, one after another, on test rows that nothing was chosen by. Accuracies, wall
and CPU seconds go to docs/experiments/goals.json; `python docs/recipes.py` then writes the page. What that file has is
not run again; to run a goal anew, remove it there. Every run has a new folder, since the times of a resumed or finished
run would be too short. On a machine with other work wall time is longer; CPU time beside it tells how much.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

from kontrast.runs import Run

ROOT = Path(__file__).resolve().parents[1]
GOALS, FOUND = ROOT / "docs" / "experiments" / "goals.toml", ROOT / "docs" / "experiments" / "goals.json"
PROTOCOLS = ("knn20", "probe", "raw pixels: knn20", "raw pixels: probe")


def main() -> None:
    """Run the goals that are asked for, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="goals; all if left out")
    parser.add_argument("--out", type=Path, required=True, help="the folder of the run folders")
    parser.add_argument("--data", default="", help="what {data} stands for")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    asked = parser.parse_args()
    goals = {goal["name"]: goal for goal in tomllib.loads(GOALS.read_text(encoding="utf-8"))["goal"]}
    unknown = [name for name in asked.names if name not in goals]
    if unknown:
        parser.error(f"{unknown[0]!r}: is no goal. Use {', '.join(map(repr, goals))}")
    asked.out.mkdir(parents=True, exist_ok=True)
    for name in asked.names or goals:
        for seed in range(asked.seeds):
            goal = {"words": goals[name]["words"], "seed": seed}
            if any({key: run[key] for key in goal} == goal for run in read_found().get(name, [])):
                continue
            words = [word.replace("{data}", asked.data) for word in goals[name]["words"]]
            run = perform([*words, f"seed={seed}"], Path(tempfile.mkdtemp(dir=asked.out)), asked.threads)
            found = read_found()  # anew: another call may have written meanwhile
            others = [old for old in found.get(name, []) if old["seed"] != seed]
            found[name] = sorted([*others, {**goal, **run}], key=lambda run: run["seed"])
            FOUND.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            print(name, run, flush=True)


def read_found() -> dict[str, list[dict[str, Any]]]:
    """The runs of every goal so far."""
    found: dict[str, list[dict[str, Any]]] = json.loads(FOUND.read_text(encoding="utf-8")) if FOUND.exists() else {}
    return found


def perform(words: list[str], out: Path, threads: int) -> dict[str, Any]:
    """Train in an empty folder; accuracies in percent, wall and CPU seconds."""
    settings = [*words, f"run.threads={threads}", "run.progress=false", "evaluate.baselines=true"]
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "kontrast", "train", *settings, "--out", str(out)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - began
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    [run] = [Run(folder) for folder in out.iterdir() if folder.is_dir()]
    result = run.read_result()
    results = {each.name: each for each in result.results}
    return {
        "scores": {name: round(100 * run.value(name), 2) for name in PROTOCOLS},
        "test_rows": results["knn20"].test_rows,
        "hash": result.hash,
        "wall_seconds": round(wall),
        "cpu_seconds": round(used),
        "threads": threads,
        "cores": os.cpu_count(),
        "versions": {key: run.state.versions[key] for key in ("kontrast", "commit", "torch")},
    }


if __name__ == "__main__":
    main()
