"""The page of the trials, docs/experiments/trials.md, from the log docs/experiments/trials.jsonl.

python docs/trials.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
LOG, PAGE = DOCS / "experiments" / "trials.jsonl", DOCS / "experiments" / "trials.md"
INTRODUCTION = """# Trials behind the recipes

Every trial that chose something in our recipes: `python scripts/trials.py PLAN --log docs/experiments/trials.jsonl
--out DIR`. A trial trains on the rows that `data.validation` leaves and is scored on the rows held out (kNN with 20
neighbours, a linear probe; percent); the test rows were not read. Trials with one digest were scored on the same
rows. Settings are overrides of the recipe as it was then: `simclr-fashion-mini` had two `strong` views,
`sce-fashion-mini`, `moco-fashion-mini` and `ressl-fashion-mini` a momentum of 0.99. CPU seconds are those of one
thread, evaluation included, beside other work on the machine; – where the trial was read again later. With 2,000
held-out rows the standard error of an accuracy of 83 % is 0.8 points, that of 46 % is 1.1: differences of a point
between single trials say little. This page is written by `python docs/trials.py` from [trials.jsonl](trials.jsonl).
"""
SHOWN = ("knn20", "probe", "raw pixels: knn20")
COLUMNS = ["recipe and settings", "seed", "held out", "kNN", "linear probe", "raw pixels, kNN", "CPU seconds"]
HEAD = "| " + " | ".join(COLUMNS) + " |\n" + "|---" * len(COLUMNS) + "|\n"


def page() -> str:
    """The whole page."""
    lines = [json.loads(line) for line in LOG.read_text(encoding="utf-8").splitlines()]
    return f"{INTRODUCTION}\n{HEAD}" + "".join(map(row, lines))


def row(trial: dict[str, Any]) -> str:
    """A line of the table.

    >>> found = {"held_out": {"rows": 20, "sha256": "abc"}, "scores": {"knn20": 80.0}, "cpu_seconds": 9}
    >>> row({"settings": ["simclr", "seed=1"], "seed": 0, **found})
    '| `simclr seed=1` | 0 | 20 rows, abc | 80.00 | – | – | 9 |\\n'
    """
    scores = (f"{trial['scores'][name]:.2f}" if name in trial["scores"] else "–" for name in SHOWN)
    held, seconds = trial["held_out"], trial["cpu_seconds"]
    rest = [trial["seed"], f"{held['rows']:,} rows, {held['sha256'][:6]}", *scores, "–" if seconds is None else seconds]
    settings = " ".join(trial["settings"]).replace("|", "\\|")
    return f"| `{settings}` | " + " | ".join(map(str, rest)) + " |\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
