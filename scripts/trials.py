"""Trials of settings, scored on held-out training rows: every one is logged, and the test rows are never read.

    python scripts/trials.py PLAN --log docs/experiments/trials.jsonl --out DIR [--seeds 1] [--jobs 2] [--data DIR]

PLAN is a text file with one trial a line: a recipe's name and overrides, as for ``kontrast train``. A line ``# …`` says
which question the trials below it answer; ``{data}`` stands for the folder given by --data. A trial trains on the rows
that ``data.validation`` leaves and is scored on the others by the recipe's protocols
(`kontrast.experiments.tune.trials`), on one thread. The log has a line a trial: question, settings, seed, scores, CPU
seconds, and a digest of the held-out rows, so that trials with the same digest were scored on the same rows. A trial
that is in the log is not run again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any


def main() -> None:
    """Run what the plan has and the log has not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", type=Path)
    parser.add_argument("--log", type=Path, required=True, help="JSON lines; new trials are appended")
    parser.add_argument("--out", type=Path, required=True, help="the folder of the run folders")
    parser.add_argument("--data", default="", help="what {data} stands for in the plan")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="trials at a time, of one thread each")
    asked = parser.parse_args()
    known = {json.dumps([t["settings"], t["seed"]]) for t in read_log(asked.log)}
    trials = read_plan(asked.plan.read_text())
    wanted = [(question, settings, seed) for question, settings in trials for seed in range(asked.seeds)]
    left = [trial for trial in wanted if json.dumps(trial[1:]) not in known]
    print(f"{len(wanted)} trials, {len(left)} to do", flush=True)

    def perform(trial: tuple[str, list[str], int]) -> None:
        question, settings, seed = trial
        words = [word.replace("{data}", asked.data) for word in settings]
        command = [sys.executable, __file__, "one", str(asked.out), str(seed), *words]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        found = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {"error": f"{done.returncode}"}
        line = {"question": question, "settings": settings, "seed": seed, **found}
        with asked.log.open("a") as file:
            file.write(json.dumps(line, sort_keys=True) + "\n")
        print(seed, " ".join(settings), {k: v for k, v in found.items() if k != "versions"}, flush=True)

    with ThreadPoolExecutor(asked.jobs) as pool:
        list(pool.map(perform, left))


def read_plan(text: str) -> list[tuple[str, list[str]]]:
    """Question and settings of every trial.

    >>> read_plan("# Which rate?\\nsimclr-fashion-mini optim.lr=0.1")
    [('Which rate?', ['simclr-fashion-mini', 'optim.lr=0.1'])]
    """
    found, question = [], "Other trials"
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.startswith("#"):
            question = line.lstrip("# ")
        else:
            found.append((question, shlex.split(line)))
    return found


def read_log(log: Path) -> list[dict[str, Any]]:
    """The trials of a log; none where there is no file yet."""
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def perform_one(out: str, seed: int, name: str, *settings: str) -> dict[str, Any]:
    """Train and score one trial in this process."""
    import torch

    from kontrast import recipes
    from kontrast.experiments.tune.trials import run_trial
    from kontrast.recipe import parse
    from kontrast.runs import Run
    from kontrast.train import make_job, resolve

    asked = {"run.out": out, "run.threads": 1, "run.progress": False, "seed": seed}
    recipe = resolve(recipes.find(name).override({**asked, **dict(map(parse, settings))}))
    was_done = Run.of(recipe).has_result
    found = run_trial(recipe)
    used = resource.getrusage(resource.RUSAGE_SELF)
    if found.state != "done":
        return {"error": found.note or found.state}
    held = make_job(recipe, torch.device("cpu")).validation
    assert held is not None
    rows = held.inputs.read(torch.arange(len(held)))
    digest = hashlib.sha256(rows.numpy().tobytes()).hexdigest()[:12]
    results = Run(found.folder).read_result().results
    return {
        "hash": recipe.hash[:8],
        "held_out": {"rows": len(held), "sha256": digest},
        "scores": {each.name: round(100 * (each.value or 0.0), 2) for each in results},
        "cpu_seconds": None if was_done else round(used.ru_utime + used.ru_stime),
        "versions": {"torch": torch.__version__},
    }


if __name__ == "__main__":
    if sys.argv[1:2] == ["one"]:
        print(json.dumps(perform_one(sys.argv[2], int(sys.argv[3]), *sys.argv[4:])))
    else:
        main()
