"""The designs behind the entries of the plan, as JSON: cells, what is done, width, batch, length.

    python scripts/designs.py PLAN [--ledger DIR]      in the folder that has runs/ and data/

Needs kontrast: `scripts/results` runs it in the environment of its clone. `scripts/plan_entries.py` reads the plan.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import plan_entries
from kontrast import experiments
from kontrast.experiments.cell import Cell
from kontrast.experiments.ledger import Ledger
from kontrast.experiments.sweep import Sweep
from kontrast.experiments.tune import Tuning
from kontrast.recipe import Recipe
from kontrast.recipes import recipe as find_recipe
from kontrast.runs import State, TuneFolder


def sweep_of(entry: plan_entries.Entry, *, pilot: bool = False, ledger: Path | None = None) -> Sweep:
    """The cells of an entry that names an experiment; of its pilot: one seed, and the places that ``pilot`` chooses."""
    kept = None if ledger is None or not ledger.is_dir() else Ledger(ledger)
    settings = [*entry.all_settings, *(entry.pilot if pilot else ())]
    seeds = 1 if pilot else entry.seeds
    return Sweep.of(experiments.find(entry.experiment), entry.preset, settings, seeds=seeds, out="runs", ledger=kept)


def tuning_of(entry: plan_entries.Entry) -> Tuning:
    """The search of an entry that names a recipe to tune."""
    chosen = find_recipe(entry.tune).override({"run.out": "runs"})
    return Tuning.of(chosen, entry.all_settings, seeds=entry.seeds or 1, source_name=entry.tune)


def describe(entry: plan_entries.Entry, ledger: Path | None = None) -> dict[str, Any]:
    """Everything known of an entry without running it; ``error`` instead, if it cannot be planned.

    ``folders`` has a run folder's name, status and seconds at work for each cell; the status of a cell that only the
    ledger has is ``kept``. Entries may share run folders.
    """
    try:
        if entry.tune:
            return _describe_tuning(entry)
        sweep = sweep_of(entry, ledger=ledger)
        cells, missing = sweep.cells, {cell.path for cell in sweep.missing}
    except (ValueError, KeyError) as error:
        return {"name": entry.name, "error": str(error)}
    recipes = [cell.does for cell in cells if isinstance(cell.does, Recipe)]
    seeds = str(len({cell.at["seed"] for cell in cells}))
    folders = {cell.path.name: _state(cell, kept=cell.path not in missing) for cell in cells}
    return {"name": entry.name, **_facts(recipes), "seeds": seeds, "folders": folders}


def _describe_tuning(entry: plan_entries.Entry) -> dict[str, Any]:
    tuning = tuning_of(entry)
    record = TuneFolder(tuning.folder).record or {}
    state = {"status": record.get("status", "missing"), "seconds": 0.0}
    seeds = str(len(tuning.seeds))
    return {"name": entry.name, **_facts([tuning.recipe]), "seeds": seeds, "folders": {tuning.folder.name: state}}


def _state(cell: Cell, *, kept: bool) -> dict[str, Any]:
    """Status and seconds as run.json has them; ``unusable`` if the folder is damaged or the data changed.

    A cell that need not be run (``kept``) and is not done in its folder is in the ledger.
    """
    state = cell.state if cell.trouble is None else State(status="unusable")
    if kept and state.status != "done":
        return {"status": "kept", "seconds": 0.0}
    return {"status": state.status or "missing", "seconds": float(state.seconds or 0.0)}


def _facts(recipes: list[Recipe]) -> dict[str, str]:
    """Data, width, batch and length in words; tasks that train nothing have none."""
    return {
        "data": _span(_data(recipe) for recipe in recipes),
        "width": _span(r.encoder.options.get("width", r.encoder.name) for r in recipes),
        "batch": _span(r.train.batch_size for r in recipes),
        "length": _span(
            f"{r.train.epochs} epochs" if r.train.steps is None else f"{r.train.steps:,} steps" for r in recipes
        ),
    }


def _data(recipe: Recipe) -> str:
    """The data set, and how many of its training images, if not all."""
    name = Path(recipe.data.name).stem
    return name if recipe.data.limit is None else f"{name} ({recipe.data.limit:,} images)"


def _span(values: Iterable[Any]) -> str:
    """Each value once, in order of appearance.

    >>> _span([16, 16, 32]), _span([])
    ('16, 32', '–')
    """
    return ", ".join(dict.fromkeys(map(str, values))) or "–"


def main() -> None:
    """Print a list with an object for each entry."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("plan", type=Path)
    arguments.add_argument("--ledger", type=Path)
    asked = arguments.parse_args()
    print(json.dumps([describe(entry, asked.ledger) for entry in plan_entries.read_plan(asked.plan)]))


if __name__ == "__main__":
    main()
