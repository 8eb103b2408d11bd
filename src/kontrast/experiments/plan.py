"""From an experiment to its cells: every place of the grid, with every seed, as a resolved recipe or a task.

Settings are ``key=value``. A key that is an axis replaces the axis's values (``temperature=[0.1,0.2]``,
``data=photos.npz``); any other is an override of every recipe, as for ``kontrast train``.

`check` refuses an experiment that names an axis or a measure which it does not have: a claim or a chart about it would
be an error after days of training. `estimate` measures how long the cells will take.
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
from kontrast.experiments.chart_records import KINDS, PANEL
from kontrast.experiments.experiment import Experiment, Preset, Row
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
        ValueError: There is no such preset or cell, a setting is wrong, two cells are the same run, or `check` refuses
            the experiment.

    >>> from kontrast import experiments
    >>> cells = plan(experiments.find("graf-toy"), "cpu", ["setting=sc"], seeds=2)
    >>> [cell.name for cell in cells]
    ['setting=sc seed=0', 'setting=sc seed=1']
    """
    check(experiment)
    scale = find_preset(experiment, preset)
    settings = list(settings)
    changes = dict(map(parse, settings))
    axes: dict[str, Sequence[Value]] = {**experiment.axes, **scale.axes}
    for key in changes:
        if key.partition(".")[0] not in {*axes, *Recipe.model_fields} and (near := nearest(key, axes)) != ".":
            raise ValueError(f"{experiment.name} has no axis {key!r}{near} It has {', '.join(axes)}")
    for axis in [key for key in changes if key in axes]:
        value = changes.pop(axis)
        axes[axis] = value if isinstance(value, list) else [value]
    if seeds is not None and seeds < 1:
        raise ValueError(f"seeds={seeds}: must be 1 or more. Leave it out for the preset's own number.")
    everywhere = (dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values()))
    places = [(at, _seeds(scale, at, seeds)) for at in everywhere if experiment.keep(at) and scale.keep(at)]
    if not places:
        if settings:
            raise ValueError(f"{experiment.name} has no cell at {' '.join(settings)}; its axes are {_axes(experiment)}")
        raise ValueError(f"{experiment.name}: keep must leave a place of the preset {preset!r}, and it leaves none")
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
        have = ", ".join(names) or "none"
        raise ValueError(f"{experiment.name} has no preset {name!r}{nearest(name, names)} It has {have}")
    return experiment.presets[name]


def _cell(experiment: Experiment, preset: Preset, at: At, label_at: At, changes: Mapping[str, Any], out: str) -> Cell:
    place = " ".join(f"{axis}={value}" for axis, value in at.items() if axis != "seed")
    try:
        recipe = preset.make(at)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if _is_about(error, at, {**experiment.axes, **preset.axes}):
            text = f"{experiment.name} has no cell at {place} ({error}); its axes are {_axes(experiment)}"
        else:
            text = f"{experiment.name}: make raised {type(error).__name__}: {error} at {place}; correct the experiment"
        raise ValueError(text) from error
    if not isinstance(recipe, Recipe | Task):
        kind = type(recipe).__name__
        raise ValueError(f"{experiment.name}: make must return a Recipe or a Task, and returned a {kind} at {place}")
    if isinstance(recipe, Task):
        if changes:
            raise ValueError(
                f"{next(iter(changes))!r} is no axis of this experiment, which trains nothing; leave it out"
            )
        return Cell(label_at, dataclasses.replace(recipe, out=out))
    return Cell(label_at, _resolve(recipe, at["seed"], changes, out))


def _is_about(error: Exception, at: At, axes: Mapping[str, Sequence[Value]]) -> bool:
    """Whether an error of `Preset.make` says that there is no such place, and is no defect of the function."""
    if any(axis in axes and value not in axes[axis] for axis, value in at.items()):
        return True  # a place of the user's own
    if isinstance(error, KeyError):  # of a table of places
        key = error.args[0] if error.args else None
        return all(part in at.values() for part in (key if isinstance(key, tuple) else (key,)))
    return isinstance(error, ValueError)


def _axes(experiment: Experiment) -> str:
    return "; ".join(f"{axis}: {', '.join(map(str, values))}" for axis, values in experiment.axes.items())


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


# --------------------------------------------------------------------------------------------- is the experiment whole


def check(experiment: Experiment) -> None:
    """Raise if an experiment names an axis, a measure or a kind of chart that there is not.

    Args:
        experiment: The experiment; none of its cells is made.

    Raises:
        ValueError: With the name that is wrong, and those that there are.

    >>> from dataclasses import replace
    >>> from kontrast import experiments
    >>> check(replace(experiments.find("wl-table-1"), rows="temprature"))
    Traceback (most recent call last):
        ...
    ValueError: wl-table-1: rows='temprature': must be an axis; did you mean 'temperature'? It has data, temperature
    """
    axes, measures = list(experiment.axes), [measure.name for measure in experiment.measures]

    def known(what: str, name: str, names: Sequence[str], kind: str) -> None:
        if name not in names:
            have = ", ".join(names) or "none"
            raise ValueError(f"{experiment.name}: {what}={name!r}: must be {kind}{nearest(name, names)} It has {have}")

    if not axes:
        raise ValueError(f"{experiment.name}: axes must have an axis with its values, and there is none")
    known("rows", experiment.rows, axes, "an axis")
    for where, values_by_axis in [
        ("axes", experiment.axes),
        *((f"{n}'s axes", p.axes) for n, p in experiment.presets.items()),
    ]:
        for axis, values in values_by_axis.items():
            known(where, axis, axes, "an axis")
            if isinstance(values, str) or not len(values):
                raise ValueError(
                    f"{experiment.name}: {where}: {axis} must have a list of one value or more, got {values!r}"
                )
    place = Row({**{axis: values[0] for axis, values in experiment.axes.items()}, "seed": 0}, "", "missing")
    for claim in experiment.claims:
        for measure in claim.measures:
            known(f"claim {claim.text!r}: measure", measure, measures, "a measure")
        try:
            claim.test([place])
        except (ValueError, KeyError) as error:
            raise ValueError(f"{experiment.name}: claim {claim.text!r}: {error}") from error
    for chart in experiment.charts:
        known(f"chart {chart.name!r}: kind", chart.kind, list(KINDS), "a kind of chart")
        # Records of a chart's own have keys of their own.
        for what in ("x", "y", "colour", "panel") if chart.data is None else ():
            name = getattr(chart, what)
            if name is not None and name not in (PANEL, "seed"):
                known(f"chart {chart.name!r}: {what}", name, [*axes, *measures], "an axis or a measure")


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
