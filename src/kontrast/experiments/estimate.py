"""How long a sweep will take: a few steps of each kind of run, measured here.

Runs are of one kind if they train the same encoder by the same method on batches of the same size from the same data;
of each kind the first is measured. Evaluation comes on top: about a tenth at the small scale, more at the papers'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kontrast.experiments.cell import Cell
from kontrast.recipe import Recipe


@dataclass(frozen=True)
class Estimate:
    """Seconds of training in all, by one process at a time, or why there is no number."""

    cells: int
    seconds: float | None = None
    why: str = ""


def estimate(cells: Sequence[Cell]) -> Estimate:
    """Of cells that are not done yet; tasks that train nothing count as no time."""
    from kontrast.train.loop import seconds_to_train

    kinds: dict[str, list[Recipe]] = {}
    for cell in cells:
        if isinstance(cell.does, Recipe):
            kinds.setdefault(_kind(cell.does), []).append(cell.does)
    seconds = 0.0
    for recipes in kinds.values():
        try:
            a_step = seconds_to_train(recipes[0])
        except (ValueError, OSError) as error:
            return Estimate(len(cells), why=str(error))
        seconds += sum(a_step * _length(recipe) / _length(recipes[0]) for recipe in recipes)
    return Estimate(len(cells), seconds)


def _kind(recipe: Recipe) -> str:
    parts = (recipe.data, recipe.augment, recipe.encoder, recipe.head, recipe.method.name, recipe.train.batch_size)
    return " ".join(map(str, parts))


def _length(recipe: Recipe) -> float:
    """Steps or epochs: of one kind both mean the same."""
    return float(recipe.train.steps or recipe.train.epochs or 1)
