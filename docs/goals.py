"""What the small recipes reach, from docs/experiments/goals.toml and goals.json: a part of docs/recipes.md.

`python scripts/goals.py --out DIR --data DIR` measures it, `python docs/recipes.py` writes the page.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from statistics import mean, stdev
from typing import Any

DOCS = Path(__file__).parent / "experiments"
INTRODUCTION = """### What they reach

Accuracy and time on two CPU cores, of training without labels and of `kontrast train` on data without a recipe: kNN
(k = 20) and a linear probe in percent, mean ± standard deviation over seeds, on test rows that no choice used. Minutes
are wall time of training and evaluation (`python scripts/goals.py`). For data without a recipe the length is set to the
one that `kontrast train` chooses on two idle cores.
"""
COLUMNS = ["goal", "command", "test rows", "seeds", "kNN", "linear probe", "raw pixels", "wanted", "reached", "minutes"]


def section() -> str:
    """The introduction and a line for each goal."""
    goals = tomllib.loads((DOCS / "goals.toml").read_text(encoding="utf-8"))["goal"]
    file = DOCS / "goals.json"
    runs = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    head = "| " + " | ".join(COLUMNS) + " |\n" + "|---" * len(COLUMNS) + "|\n"
    return f"{INTRODUCTION}\n{head}" + "".join(row(goal, runs.get(goal["name"], [])) for goal in goals)


def row(goal: dict[str, Any], runs: list[dict[str, Any]]) -> str:
    """A line of the table.

    >>> scores = {"knn20": 84.0, "probe": 85.0, "raw pixels: knn20": 82.0, "raw pixels: probe": 83.0}
    >>> run = {"scores": scores, "test_rows": 2000, "wall_seconds": 120, "cpu_seconds": 180, "threads": 2}
    >>> goal = {"name": "mini", "words": ["simclr"], "minutes": 4, "knn20": "raw pixels", "probe": 86}
    >>> print(row(goal, [run, run]), end="")
    | mini | `kontrast train simclr` | 2,000 | 2 | 84.0 ± 0.0 | 85.0 ± 0.0 | 82.0 / 83.0 | above raw pixels / 86 in 4 minutes | yes / no | 2.0 (2 threads, CPU 3.0) |
    """  # noqa: E501
    command = f"`kontrast train {' '.join(goal['words'])}`"
    wanted = " / ".join(
        "above raw pixels" if goal[name] == "raw pixels" else f"{goal[name]}" for name in ("knn20", "probe")
    )
    wanted += f" in {goal['minutes']} minutes"
    if not runs:
        return "| " + " | ".join([goal["name"], command, "–", "0", "–", "–", "–", wanted, "not run yet", "–"]) + " |\n"
    scores = {name: [run["scores"][name] for run in runs] for name in runs[0]["scores"]}
    raw = {name: mean(scores[f"raw pixels: {name}"]) for name in ("knn20", "probe")}
    reached = []
    for name in ("knn20", "probe"):
        limit = raw[name] if goal[name] == "raw pixels" else goal[name]
        reached.append("yes" if mean(scores[name]) >= limit else "no")
    wall, cpu = (mean(run[f"{kind}_seconds"] for run in runs) / 60 for kind in ("wall", "cpu"))
    threads = max(run["threads"] for run in runs)
    minutes = f"{wall:.1f} ({threads} thread{'s' if threads > 1 else ''}, CPU {cpu:.1f})"
    rows = f"{runs[0]['test_rows']:,}"
    pixels = f"{raw['knn20']:.1f} / {raw['probe']:.1f}"
    each = [spread(scores["knn20"]), spread(scores["probe"])]
    facts = [goal["name"], command, rows, str(len(runs)), *each, pixels, wanted, " / ".join(reached), minutes]
    return "| " + " | ".join(facts) + " |\n"


def spread(values: list[float]) -> str:
    """Mean and standard deviation.

    >>> spread([1.0, 3.0]), spread([1.0])
    ('2.0 ± 1.4', '1.0')
    """
    return f"{mean(values):.1f}" + (f" ± {stdev(values):.1f}" if len(values) > 1 else "")
