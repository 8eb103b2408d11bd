"""Patients into records: the folder of a run, arrays of features, a recipe.

A folder that is no run's, or whose files are damaged, is a `ValueError` that says which; a file that is not there yet
(a run that failed has no analysis) is not: the rules that need it say so.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kontrast import analysed
from kontrast.checks import number
from kontrast.data import DataSet, Split
from kontrast.data.arrays import number_labels
from kontrast.data.images import native_type
from kontrast.doctor.record import Record
from kontrast.files import RUN_AGAIN, expanded, read_json
from kontrast.plain import NOTHING, Shape, items, record, scalar, text, whole_or_error
from kontrast.plain import number as finite
from kontrast.recipe import Recipe
from kontrast.train.folder import RunFolder
from kontrast.train.job import load_data, make_job
from kontrast.train.metrics import read_metrics
from kontrast.train.resolving import resolve

CPU = torch.device("cpu")


def measure(value: Any, place: str, wrong: list[str]) -> Any:
    """A line of analysis.json's geometry."""
    kept = record({"name": text, "value": finite}, needed=["name"])(value, place, wrong)
    return kept if kept is NOTHING else {"value": None, **kept}


STATUS = {"status": text, "error": text, "step": finite, "total_steps": finite}
RUN = record({**STATUS, "machine": record({"folder": text})})
LINES = items(record({}, others=finite))
MEASURES = items(measure)
SIMPLEX = record({}, others=record({"within": finite}))
GEOMETRY = {"features": MEASURES, "embeddings": MEASURES, "simplex": SIMPLEX, "protocol": record({"split": text})}
ANALYSIS = record({"geometry": record(GEOMETRY), "class_names": items(scalar)})
NORMALS = {"mean": items(finite), "std": items(finite)}
MODEL = record({"input": record({"kind": text, **NORMALS}, needed=["kind", *NORMALS])})
DIFFERENCE = {"value": finite, "error": finite}
START = {
    "result": record({"value": finite}, needed=["value"]),
    "difference": record(DIFFERENCE, needed=[*DIFFERENCE]),
}
RESULT = record({"start": record(START, needed=[*START])})


def collect_run(path: Path) -> Record:
    """What the files of a run's folder tell."""
    path = expanded(path)
    folder = RunFolder(path)
    if not path.is_dir():
        raise ValueError(f"there is no folder {path}; expected the folder of a run")
    if not folder.recipe_file.exists():
        raise ValueError(
            f"{path} has no recipe.yaml, so it is not the folder of a run (an experiment has its runs beside it): "
            "pass a run, a file of features, or a recipe"
        )
    recipe, about = resolve(Recipe.read(folder.recipe_file)), folder.read()
    about = whole_or_error(about, RUN, path / "run.json", RUN_AGAIN)
    return Record(
        patient="run",
        path=path,
        written=recipe,
        run=about,
        lines=_lines(folder.metrics),
        analysis=_json(path / "analysis.json", ANALYSIS),
        arrays=_arrays(path / "analysis.npz"),
        model=_json(folder.model, MODEL),
        result=_json(folder.result, RESULT),
        opened=partial(_opened, recipe, about.get("machine", {}).get("folder")),
    )


def collect_features(features: Any, labels: Any = None, *, temperature: float | None = None) -> Record:
    """Rows ``[N, D]`` with labels ``[N]`` of any kind, and the temperature of the loss they were trained with."""
    x = features.detach().cpu() if isinstance(features, Tensor) else _tensor(features)
    if x.ndim != 2 or len(x) < 2 or not x.shape[1]:
        raise ValueError(f"features are {list(x.shape)}; expected [N, D], two rows or more")
    if not x.is_floating_point():
        x = x.float()
    if not bool(torch.isfinite(x).all()):
        bad = int((~torch.isfinite(x)).any(1).sum())
        raise ValueError(f"{bad} of {len(x)} rows of features hold NaN or infinity: leave them out, and find out why")
    arrays = {"features": x}
    if labels is not None:
        y, _, _ = number_labels(labels, None)
        assert y is not None
        if len(y) != len(x):
            raise ValueError(f"there are {len(y)} labels for {len(x)} rows of features; expected one a row")
        arrays["labels"] = y
    if temperature is not None:
        temperature = number("temperature", temperature, above=0.0)
    return Record(patient="features", arrays=arrays, given_temperature=temperature)


def collect_recipe(recipe: Recipe) -> Record:
    """A recipe, with every default written out."""
    whole = resolve(recipe)
    return Record(
        patient="recipe", written=whole, opened=partial(_opened, whole, None), making=partial(make_job, whole, CPU)
    )


def _opened(recipe: Recipe, began_in: str | None) -> tuple[DataSet, Split]:
    name = recipe.data.name
    if (
        recipe.data.digest is None and began_in and not Path(name).exists() and (Path(began_in) / name).exists()
    ):  # a path from where it was run
        recipe = recipe.override({"data.name": str(Path(began_in or "") / name)})
    data, train, _ = load_data(recipe)
    return data, train


def _lines(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return list(whole_or_error(read_metrics(path), LINES, path, RUN_AGAIN))


def _json(path: Path, shape: Shape) -> dict[str, Any]:
    return dict(whole_or_error(read_json(path, RUN_AGAIN), shape, path, RUN_AGAIN)) if path.exists() else {}


def _arrays(path: Path) -> dict[str, Tensor]:
    if not path.exists():
        return {}
    strange: list[str] = []
    found = analysed.read(path, strange, analysed.NUMBERS)
    if strange:
        raise ValueError(f"{path} is damaged ({'; '.join(strange)}); {RUN_AGAIN}")
    return {name: torch.from_numpy(array) for name, array in found.items()}


def _tensor(values: Any) -> Tensor:
    """An array of numbers of any type and layout, as torch takes them."""
    try:
        x = np.asarray(values)
    except ValueError:
        raise ValueError("the rows of features differ in length; expected [N, D], two rows or more") from None
    if x.dtype.kind not in "fiub":
        raise ValueError(f"features are an array of {x.dtype}; expected numbers [N, D], two rows or more")
    return torch.from_numpy(x.astype(native_type(x.dtype), order="C"))
