"""How long a run was, and what to say of one that was too short to be judged by what it learned.

After a few dozen steps the embeddings still lie about as the random weights put them, near one point, and the loss is
at chance, whatever is right or wrong with the recipe. `ENOUGH` is about what the shortest recipes here have (those of
fashion-mini: 585 steps).
"""

from __future__ import annotations

import math

from kontrast.doctor.record import Missing, Record
from kontrast.doctor.rules._words import counted

FEWEST, ENOUGH = 50, 500


def steps_of(record: Record) -> int:
    """Steps that were trained, by the log, or run.json where that has none."""
    steps = [int(line["step"]) for line in record.lines if line.get("step") is not None]
    found = max(steps, default=int(record.run.get("step") or 0))
    if not found:
        raise Missing("metrics.jsonl has no step")
    return found


def shortness(record: Record) -> tuple[str, str] | None:
    """Evidence and cure of a run that is too short to judge; None for others, and for what is no run or failed."""
    if record.patient != "run" or record.run.get("status") == "failed":
        return None
    try:
        steps = steps_of(record)
    except Missing:
        return None
    if steps >= FEWEST:
        return None
    return f"{counted(steps, 'step')} in all: too short to judge", f"train longer ({_longer(record)})"


def _longer(record: Record) -> str:
    train = record.recipe.train
    if train.steps is not None:
        return f"train.steps={ENOUGH}"
    epochs = [line["step"] / line["epoch"] for line in record.lines if line.get("step") and line.get("epoch")]
    each = epochs[-1] if epochs else 1.0
    return f"train.epochs={max(math.ceil(ENOUGH / each), 2 * (train.epochs or 1))}"
