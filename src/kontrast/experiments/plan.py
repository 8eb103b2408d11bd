"""From an experiment to its cells: every place of the grid, with every seed, as a resolved recipe or a task.

Settings are ``key=value``. A key that is an axis replaces the axis's values (``temperature=[0.1,0.2]``,
``data=photos.npz``); any other is an override of every recipe, as for ``kontrast train``.

`estimate` measures how long the cells will take.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kontrast.experiments.cell import At, Cell, Task, Value
from kontrast.experiments.experiment import Experiment, Preset
from kontrast.recipe import Recipe, parse
from kontrast.registry import nearest

LOOKS = 10  # of the monitors, for the learning curve of a cell


def plan(
    experiment: Experiment,
    preset: str = "cpu",
    settings: Iterable[str] = (),
    *,
    seeds: int | None = None,
    out: str | Path = "runs",
) -> list[Cell]:
    """The cells of an experiment in the order of the table, seed after seed.

    So a sweep that is cut short has whole tables.

    Args:
        experiment: The experiment.
        preset: The name of its preset.
        settings: ``key=value``: values of an axis, or an override of every recipe.
        seeds: How many seeds; the preset's own number if left out.
        out: The folder of the run folders.

    Raises:
        ValueError: There is no such preset or cell, a setting is wrong, or two cells are the same run.

    >>> from kontrast import experiments
    >>> cells = plan(experiments.find("graf-toy"), "cpu", ["setting=sc"], seeds=2)
    >>> [cell.name for cell in cells]
    ['setting=sc seed=0', 'setting=sc seed=1']
    """
    scale = find_preset(experiment, preset)
    changes = dict(map(parse, settings))
    axes: dict[str, Sequence[Value]] = {**experiment.axes, **scale.axes}
    for axis in [key for key in changes if key in axes]:
        value = changes.pop(axis)
        axes[axis] = value if isinstance(value, list) else [value]
    if seeds is not None and seeds < 1:
        raise ValueError(f"seeds={seeds}: must be 1 or more. Leave it out for the preset's own number.")
    everywhere = (dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values()))
    places = [(at, _seeds(scale, at, seeds)) for at in everywhere if experiment.keep(at) and scale.keep(at)]
    if not places:
        raise ValueError(f"{experiment.name} has no cell at {' '.join(settings)}")
    order = [(at, seed) for seed in range(max(n for _, n in places)) for at, n in places if seed < n]
    names = {axis: labels(values) for axis, values in axes.items()}
    cells = []
    for at, seed in order:
        place = {axis: names[axis][value] for axis, value in at.items()}
        cells.append(_cell(experiment, scale, {**at, "seed": seed}, {**place, "seed": seed}, changes, str(out)))
    _check_apart(cells)
    return cells


def _seeds(preset: Preset, at: At, count: int | None) -> int:
    if count is not None:
        return count
    return preset.seeds if preset.seeds_at is None else preset.seeds_at(at)


def find_preset(experiment: Experiment, name: str) -> Preset:
    """The preset of an experiment by its name.

    Raises:
        ValueError: It has no such preset; the error names the nearest.
    """
    if name not in experiment.presets:
        names = list(experiment.presets)
        raise ValueError(f"{experiment.name} has no preset {name!r}{nearest(name, names)} It has {', '.join(names)}")
    return experiment.presets[name]


def _cell(experiment: Experiment, preset: Preset, at: At, label_at: At, changes: Mapping[str, Any], out: str) -> Cell:
    try:
        recipe = preset.make(at)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        place = " ".join(f"{axis}={value}" for axis, value in at.items() if axis != "seed")
        axes = "; ".join(f"{axis}: {', '.join(map(str, values))}" for axis, values in experiment.axes.items())
        raise ValueError(f"{experiment.name} has no cell at {place} ({error}); its axes are {axes}") from error
    if isinstance(recipe, Task):
        if changes:
            raise ValueError(
                f"{next(iter(changes))!r} is no axis of this experiment, which trains nothing; leave it out"
            )
        return Cell(label_at, dataclasses.replace(recipe, out=out))
    return Cell(label_at, _resolve(recipe, at["seed"], changes, out))


def _resolve(recipe: Recipe, seed: Value, changes: Mapping[str, Any], out: str) -> Recipe:
    for key, instead in (("seed", "--seeds"), ("run.out", "--out")):
        if key in changes:
            raise ValueError(f"{key} is set for each run of an experiment; say {instead}")
    # Raw pixels would be evaluated once more for every cell; the hash is the same without them. A sweep has them once
    # (`kontrast.experiments.baselines`).
    baselines = {} if recipe.evaluate.baselines else {"evaluate.baselines": False}
    fixed = {"seed": seed, "run.out": out, "run.progress": False}
    whole = recipe.override({**baselines, **changes, **fixed})
    whole = whole.override(_monitoring(whole))
    whole.check_parts()
    from kontrast.train import resolve  # with torch, which takes seconds: a wrong word is told before
    from kontrast.train.micro_batch import refuse_auto

    resolved = resolve(whole)
    refuse_auto(resolved, "an experiment")
    return resolved


def _monitoring(recipe: Recipe) -> dict[str, int]:
    """Monitors look about `LOOKS` times at a run whose steps are known; else once an epoch, which is their default.

    A look reads about a thousand rows: nothing beside an epoch of a whole set, more than an epoch of 200 images.
    """
    train = recipe.train
    if recipe.run.monitor_every is not None:
        return {}
    if train.steps is not None:
        return {"run.monitor_every": math.ceil(train.steps / LOOKS)}
    if recipe.data.limit is None or train.epochs is None or train.epochs <= LOOKS:
        return {}
    an_epoch = max(1, int(recipe.data.limit * (1 - recipe.data.validation)) // train.batch_size)
    return {"run.monitor_every": math.ceil(train.epochs * an_epoch / LOOKS)}


def _check_apart(cells: Sequence[Cell]) -> None:
    """No two cells may be one run: a table would count it twice."""
    cells_by_path: dict[Path, Cell] = {}
    for cell in cells:
        other = cells_by_path.setdefault(cell.path, cell)
        if other is not cell:
            raise ValueError(
                f"{other.name} and {cell.name} are the same run: a value stands twice on an axis, or a setting "
                "overrides what tells them apart"
            )


def labels(values: Sequence[Value]) -> dict[Value, Value]:
    """How the values of an axis are called: by their names, where those tell them apart.

    >>> list(labels(["a/photos.npz", "fashion-mini"]).values()), list(labels(["a/x.npz", "b/x.npz"]).values())
    (['photos', 'fashion-mini'], ['a/x.npz', 'b/x.npz'])
    """
    short = {value: label(value) for value in values}
    return short if len(set(short.values())) == len(short) else {value: value for value in values}


def label(value: Value) -> Value:
    """How a value is called in a table: a path by its name alone.

    >>> label("photos/cats.npz"), label("ce-fix"), label(0.1)
    ('cats', 'ce-fix', 0.1)
    """
    if isinstance(value, str) and ("/" in value or Path(value).suffix in (".npz", ".npy")):
        return Path(value).stem or value
    return value


# ---------------------------------------------------------------------------------------------------- how long it takes


@dataclass(frozen=True)
class Estimate:
    """How long cells will take.

    Attributes:
        cells: How many there are.
        seconds: Seconds of training, one process at a time; None if they cannot be measured.
        why: Why there is no number.
    """

    cells: int
    seconds: float | None = None
    why: str = ""


def estimate(cells: Sequence[Cell]) -> Estimate:
    """Measure a few steps of each kind of run, and add up how long the cells will take.

    Runs are of one kind if they train the same encoder by the same method on batches of the same size from the same
    data; the first of each kind is measured. Evaluation comes on top: about a tenth at the small scale, more at the
    papers'.

    Args:
        cells: Cells that are not done yet; tasks, which train nothing, count as no time.
    """
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
