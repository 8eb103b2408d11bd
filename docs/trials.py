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

How the settings of the small recipes and the small encoder were chosen: every trial, with its score on rows held out
of the training rows. With 2,000 held-out rows the standard error of an accuracy of 83 % is 0.8 points, of 50 % 1.1.

Scores are kNN (k = 20) and a linear probe, or the paper's own classifier where the settings name it, in percent.
Trials with one digest have the same held-out rows. Settings are overrides of the recipe as it was then. CPU seconds
are of one thread, evaluation included. `python scripts/trials.py PLAN --log docs/experiments/trials.jsonl --out DIR`
runs trials, `python docs/trials.py` writes this page from [trials.jsonl](trials.jsonl).
"""
SHOWN = (("knn20",), ("probe", "graf-linear"))  # protocols of the two columns of scores: the first that a trial has
COLUMNS = ["settings", "seed", "held out", "kNN", "linear", "CPU seconds"]
HEAD = "| " + " | ".join(COLUMNS) + " |\n" + "|---" * len(COLUMNS) + "|\n"


def page() -> str:
    """The whole page: a section a question, in the order in which they were asked."""
    questions: dict[str, list[dict[str, Any]]] = {}
    for line in LOG.read_text(encoding="utf-8").splitlines():
        trial = json.loads(line)
        questions.setdefault(trial["question"], []).append(trial)
    return "\n".join([INTRODUCTION, *(section(title, trials) for title, trials in questions.items())])


def section(title: str, trials: list[dict[str, Any]]) -> str:
    """What all trials of a question have in common, raw pixels, and a line a trial."""
    settings = [effective(trial["settings"]) for trial in trials]
    common = {key: value for key, value in settings[0].items() if all(s.get(key) == value for s in settings)}
    raw = {trial["held_out"]["sha256"]: trial["scores"].get("raw pixels: knn20") for trial in trials}
    pixels = ", ".join(f"{value:.2f} ({digest[:6]})" for digest, value in raw.items() if value is not None)
    rows = [row(trial, own, common) for trial, own in zip(trials, settings, strict=True)]
    beside = f" kNN of raw pixels: {pixels}." if pixels else ""
    return f"## {title}\n\nCommon settings: `{words(common)}`.{beside}\n\n{HEAD}" + "".join(rows)


def effective(settings: list[str]) -> dict[str, str]:
    """Recipe and overrides by key; of a key that stands twice the last.

    >>> effective(["simclr", "seed=1", "seed=2"])
    {'recipe': 'simclr', 'seed': '2'}
    """
    return {"recipe": settings[0], **dict(word.split("=", 1) for word in settings[1:])}


def words(settings: dict[str, str]) -> str:
    """Settings as they are typed.

    >>> words({"recipe": "simclr", "seed": "2"})
    'simclr seed=2'
    """
    said = (value if key == "recipe" else f"{key}={value}" for key, value in settings.items())
    return " ".join(said).replace("|", "\\|")


def row(trial: dict[str, Any], settings: dict[str, str], common: dict[str, str]) -> str:
    """A line of the table, without the common settings.

    >>> trial = {"held_out": {"rows": 20, "sha256": "abc"}, "scores": {"knn20": 80.0}, "cpu_seconds": 9, "seed": 0}
    >>> row(trial, {"recipe": "simclr", "optim.lr": "0.1"}, {"recipe": "simclr"})
    '| `optim.lr=0.1` | 0 | 20 rows, abc | 80.00 | – | 9 |\\n'
    """
    own = words({key: value for key, value in settings.items() if key not in common})
    each = ([trial["scores"][name] for name in names if name in trial["scores"]] for names in SHOWN)
    scores = (f"{values[0]:.2f}" if values else "–" for values in each)
    held, seconds = trial["held_out"], trial["cpu_seconds"]
    rest = [trial["seed"], f"{held['rows']:,} rows, {held['sha256'][:6]}", *scores, "–" if seconds is None else seconds]
    return f"| {f'`{own}`' if own else 'as above'} | " + " | ".join(map(str, rest)) + " |\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
