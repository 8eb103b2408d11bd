"""Several runs' folders as records: what each was, where it stands, what it measured. Files alone.

What a run that did not end has not written is empty here, never guessed. A file that cannot be read is a `ValueError`;
a value of another type than it should be is left out, and told in ``troubles``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from kontrast import analysed
from kontrast.files import RUN_AGAIN, read_json, read_regular
from kontrast.plain import Shape, checked
from kontrast.report import _shapes as shapes
from kontrast.report.comparison import recipes

Json = shapes.Json
ARRAYS = ("predictions", "labels", "test_labels", "between_means", "within")


@dataclass(frozen=True)
class Run:
    """One run. ``recipe`` has dotted keys; ``group`` is that of the runs that differ from it in the seed alone."""

    path: Path
    name: str
    seed: int
    recipe: Mapping[str, str]
    state: Json
    results: Sequence[Json] = ()
    geometry: Json = field(default_factory=dict)
    metrics: Sequence[Json] = ()
    class_names: Sequence[str] | None = None
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    label: str = ""
    group: str = ""
    troubles: Sequence[str] = ()

    @property
    def status(self) -> str:
        """done, training, interrupted, failed …"""
        return str(self.state.get("status") or "not begun")

    def line(self, name: str, of: str = "embeddings") -> Json | None:
        """A line of the geometry by how its name begins."""
        lines = self.geometry.get(of) or []
        return next((one for one in lines if one["name"].startswith(name) and one.get("value") is not None), None)


def collect(paths: Sequence[Path]) -> list[Run]:
    """Reads the folders, and gives each run a short name that tells it from the others.

    A folder given twice counts once.
    """
    apart = list({Path(path).resolve(): Path(path) for path in paths}.values())
    if len(apart) < 2:
        raise ValueError(f"a comparison needs at least 2 runs; got {', '.join(map(str, paths)) or 'none'}")
    runs = [_read(path) for path in apart]
    groups = recipes.group_names([run.name for run in runs], [run.recipe for run in runs])
    seeded = len({run.seed for run in runs}) > 1 or len(set(groups)) < len(runs)
    labels = [f"{group}, seed {run.seed}" if seeded else group for group, run in zip(groups, runs, strict=True)]
    labels = [
        label if labels.count(label) == 1 else f"{label} ({run.path})" for label, run in zip(labels, runs, strict=True)
    ]
    return [replace(run, label=label, group=group) for run, label, group in zip(runs, labels, groups, strict=True)]


def _read(path: Path) -> Run:
    if not (path / "recipe.yaml").is_file():
        kind = "a task's folder: it trains no encoder" if (path / "task.json").is_file() else "no run's folder"
        raise ValueError(f"{path} is {kind} (there is no recipe.yaml); give folders that `kontrast train` wrote")
    troubles: list[str] = []
    recipe = shapes.read_recipe(path / "recipe.yaml")
    known = checked(recipe, shapes.RECIPE, "recipe.yaml", troubles) or {}
    result = _json(path / "result.json", shapes.RESULT, troubles)
    analysis = _json(path / "analysis.json", shapes.ANALYSIS, troubles)
    return Run(
        path=path,
        name=str(known.get("name") or path.name),
        seed=known.get("seed") or 0,
        recipe=recipes.flat(recipe),
        state=_json(path / "run.json", shapes.STATE, troubles),
        results=[record for record in result.get("results") or [] if record.get("value") is not None],
        geometry=result.get("geometry") or analysis.get("geometry") or {},
        metrics=_lines(path / "metrics.jsonl", troubles),
        class_names=analysis.get("class_names"),
        arrays=_arrays(path / "analysis.npz", troubles),
        troubles=troubles,
    )


def _json(path: Path, shape: Shape, troubles: list[str]) -> Json:
    try:
        return checked(read_json(path, RUN_AGAIN), shape, path.name, troubles) or {}
    except FileNotFoundError:
        return {}


def _lines(path: Path, troubles: list[str]) -> list[Json]:
    """A last line that a kill cut short is left out."""
    try:
        found = [json.loads(line) for line in read_regular(path).split(b"\n")[:-1] if line]
    except FileNotFoundError:
        return []
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged ({error}); {RUN_AGAIN}") from error
    return checked(found, shapes.LINES, path.name, troubles) or []


def _arrays(path: Path, troubles: list[str]) -> dict[str, np.ndarray]:
    try:
        return analysed.read(path, troubles, ARRAYS)
    except FileNotFoundError:
        return {}
