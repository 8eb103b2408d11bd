"""Baselines that need no training: raw pixels, and the untrained encoder, by the protocols of the cells.

A table of accuracies says little until one knows which accuracy needs no training at all. Both baselines are tasks
(`kontrast.experiments.cell.Task`) beside the cells of a sweep, done once:

    raw pixels           once for each data set and list of protocols
    untrained encoder    once for each encoder, data set and list of protocols: the initial weights of the first seed

so a grid of twelve temperatures has two of them, and experiments on the same data share them. The protocols are those
of the recipe, with its options; a recipe that has none (random labels) gets kNN, which trains nothing. Labels are the
right ones, whatever noise the cell has. The place of an untrained encoder also has the switches that its recipe turns
on (``signed=True``): an axis of methods, some with signed encoders, does not tell them apart by itself.

Raw pixels of large images are left out: kNN would hold them all as float32 (`MOST_BYTES`).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kontrast.experiments.cell import Cell, Task, Value
from kontrast.experiments.experiment import ERROR, Row
from kontrast.recipe import Recipe

RAW, UNTRAINED = "raw pixels", "untrained encoder"
NO_TRAINING = {"method": "supcon", "train": {"epochs": 1}}  # a recipe needs both; neither is used here
MOST_BYTES = 2**31
"""All rows of raw pixels as float32."""


@dataclass(frozen=True)
class Baseline:
    """A baseline of a sweep.

    Args:
        name: `RAW` or `UNTRAINED`.
        at: The seed, and the values on the axes on which it differs from other baselines.
        task: What computes it.
    """

    name: str
    at: dict[str, Value]
    task: Task

    @property
    def cell(self) -> Cell:
        """The cell that an engine performs; its place says that it is a baseline."""
        return Cell({"baseline": self.name, **self.at}, self.task)

    @property
    def hash(self) -> str:
        """Eight digits over what decides it; where this machine keeps its data (``run.data_root``) does not count."""
        recipe = {key: value for key, value in self.task.options["recipe"].items() if key != "run"}
        return replace(self.task, options={"recipe": recipe}).folder.rpartition("-")[2]


def baselines_of(cells: Sequence[Cell]) -> list[Baseline]:
    """The baselines of a sweep's cells. Cells that train no encoder have none.

    >>> from kontrast import experiments
    >>> from kontrast.experiments.plan import plan
    >>> made = baselines_of(plan(experiments.find("wl-table-1"), "smoke"))
    >>> [(baseline.name, baseline.at) for baseline in made]
    [('raw pixels', {'data': 'fashion-mini', 'seed': 0}), ('untrained encoder', {'data': 'fashion-mini', 'seed': 0})]
    """
    first = [(cell, cell.does) for cell in cells if isinstance(cell.does, Recipe) and cell.at["seed"] == 0]
    baselines = []
    for name, make in ((RAW, _raw_task), (UNTRAINED, _untrained_task)):
        groups: dict[str, tuple[Task, list[tuple[Cell, Recipe]]]] = {}
        for cell, recipe in first:
            task = make(recipe)
            groups.setdefault(task.folder, (task, []))[1].append((cell, recipe))
        for task, group in groups.values():
            at = _shared([cell.at for cell, _ in group], [cell.at for cell, _ in first])
            switches = _switches(group[0][1]) if name == UNTRAINED else {}
            baselines.append(Baseline(name, {**at, **switches, "seed": 0}, task))
    return baselines


def read(baseline: Baseline) -> Row:
    """The row of a baseline: the accuracy in percent, and its error, by the protocol's name."""
    cell, at, folder = baseline.cell, baseline.at, baseline.cell.path.name
    try:
        if (trouble := cell.trouble) is not None:
            return Row(at, folder, "failed", error=trouble)
        state = cell.state
        if state.status != "done":
            return Row(at, folder, state.status or "missing", error=state.error)
        values: dict[str, float | None] = {}
        for result in cell.run.read_result().results:
            values[result.name] = None if result.value is None else 100 * result.value
            if result.error is not None:
                values[f"{ERROR}:{result.name}"] = 100 * result.error
    except (OSError, ValueError) as error:
        return Row(at, folder, "failed", error=str(error))
    return Row(at, folder, "done", values, seconds=state.seconds)


def raw_pixels(folder: Path, *, recipe: Mapping[str, Any]) -> dict[str, Any]:
    """The task: evaluate the flattened inputs by each protocol of the recipe."""
    from kontrast.evaluate import baselines
    from kontrast.evaluate.features import has_several_sizes
    from kontrast.train.job import load_data, view_size

    whole = Recipe.of({**NO_TRAINING, **recipe})
    data, train, _ = load_data(whole)
    size = view_size(whole, data, train)
    shape = data.train.inputs.shape or (len(data.mean), size or 1, size or 1)
    rows = len(data.train) + (0 if data.test is None else len(data.test))
    if (size_in_bytes := 4 * rows * math.prod(shape)) > MOST_BYTES:
        return {"results": [], "note": f"raw pixels take {size_in_bytes / 2**30:.1f} GB; at most 2 GB are evaluated"}
    how: dict[str, Any] = {"seed": whole.seed, "size": size if has_several_sizes(data) else None}
    records = []
    for protocol in whole.evaluate.protocols:
        [result] = baselines(data, [protocol.name], **how, **protocol.options)
        records.append({**result.record(), "name": protocol.name})
    return {"results": records}


def untrained(folder: Path, *, recipe: Mapping[str, Any]) -> dict[str, Any]:
    """The task: evaluate the encoder before its first step by each protocol of the recipe."""
    from kontrast.evaluate import evaluate
    from kontrast.train.evaluation import untrained_subject

    whole = Recipe.of({**NO_TRAINING, **recipe})
    subject, protocols = untrained_subject(whole), whole.evaluate.protocols
    return {"results": [evaluate(subject, p.name, seed=whole.seed, **p.options).record() for p in protocols]}


def _raw_task(recipe: Recipe) -> Task:
    return Task(f"{__name__}:raw_pixels", {"recipe": _part(recipe)}, recipe.run.out)


def _untrained_task(recipe: Recipe) -> Task:
    encoder = {"encoder": recipe.encoder.model_dump(mode="json")}
    return Task(f"{__name__}:untrained", {"recipe": {**_part(recipe), **encoder}}, recipe.run.out)


def _part(recipe: Recipe) -> dict[str, Any]:
    """What decides an evaluation, as JSON: data without noise, protocols, and the views where a protocol has them."""
    from kontrast.evaluate import PROTOCOLS

    data = recipe.data.model_copy(update={"noise": 0.0, "validation": 0.0, "split": "train"})
    protocols = [protocol.model_dump(mode="json") for protocol in recipe.evaluate.protocols] or [{"name": "knn20"}]
    part: dict[str, Any] = {
        "seed": recipe.seed,
        "data": data.model_dump(mode="json", exclude_defaults=True),
        "evaluate": {"protocols": protocols},
    }
    augment: dict[str, Any] = {} if recipe.augment.size is None else {"size": recipe.augment.size}
    if any(PROTOCOLS[protocol["name"]].needs_encoder for protocol in protocols):
        augment["views"] = [recipe.augment.described[-1]]
    if augment:
        part["augment"] = augment
    if recipe.run.data_root is not None:
        part["run"] = {"data_root": recipe.run.data_root}
    return part


def _switches(recipe: Recipe) -> dict[str, Value]:
    """The encoder's options that are on and by default are not.

    They are named whether or not other cells of the sweep differ in them: a part of a grid gives the same names.
    """
    from kontrast.models.encoders import FAMILY

    if recipe.encoder.name not in FAMILY:
        return {}
    defaults = inspect.signature(FAMILY[recipe.encoder.name]).parameters
    return {
        name: True
        for name, value in recipe.encoder.options.items()
        if value is True and not (name in defaults and defaults[name].default is True)
    }


def _shared(group: Sequence[Mapping[str, Value]], every: Sequence[Mapping[str, Value]]) -> dict[str, Value]:
    """The axes on which a group has one value: the data always, others where the sweep has several values."""
    one = {axis: value for axis, value in group[0].items() if all(at.get(axis) == value for at in group)}
    several = {axis for axis in one if len({at.get(axis) for at in every}) > 1}
    return {axis: value for axis, value in one.items() if axis != "seed" and (axis == "data" or axis in several)}
