"""What the doctor knows of a patient (a run, an array of features, a recipe): collected once, read by every rule.

Reading something that the patient does not have raises `Missing`. A rule need not catch it: its finding is then
``unknown``, with the reason. The training data are opened only when a rule reads them.

A folder that is not a run's, or whose files are damaged, is a ValueError that names the file. A file that does not
exist yet is no error: a run that failed has no analysis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from kontrast import methods
from kontrast.checks import number
from kontrast.data import DataSet, Split
from kontrast.data.arrays import number_labels
from kontrast.data.images import native_type
from kontrast.recipe import Recipe
from kontrast.runs import Analysis, ModelCard, Result, Run, State
from kontrast.runs.reading import read_json_file
from kontrast.runs.schemas import MetricsLine
from kontrast.train.job import Job, load_data, make_job
from kontrast.train.resolving import resolve

Patient = Literal["run", "features", "recipe"]
ARRAYS = ("features", "labels", "sample_views")
CPU = torch.device("cpu")


class Missing(Exception):
    """A rule needs something that the patient does not have; the message says what."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Record:
    """A patient, as the rules see it.

    Args:
        patient: What it is.
        path: The run's folder.
        resolved: The recipe with every default.
        state: run.json.
        metrics: The lines of metrics.jsonl.
        analysis: analysis.json.
        arrays: Arrays of analysis.npz, or the features and labels that were passed.
        card: model.json.
        result: result.json.
        loss_temperature: The temperature of the loss behind features.
        open_data: Opens the data set and the training rows.
        make_job: Makes all that training makes before its first step (of a recipe only).

    >>> Record(patient="run", metrics=[{"step": 1, "loss": 2.5}]).last("loss")
    2.5
    """

    patient: Patient
    path: Path | None = None
    resolved: Recipe | None = None
    state: State = field(default_factory=State)
    metrics: Sequence[MetricsLine] = ()
    analysis: Analysis = field(default_factory=Analysis)
    arrays: Mapping[str, Tensor] = field(default_factory=dict)
    card: ModelCard | None = None
    result: Result = field(default_factory=Result)
    loss_temperature: float | None = None
    open_data: Callable[[], tuple[DataSet, Split]] | None = None
    make_job: Callable[[], Job] | None = None

    # ---------------------------------------------------------------------------------------------------------- recipe

    @property
    def recipe(self) -> Recipe:
        """The resolved recipe; `Missing` for features."""
        if self.resolved is None:
            raise Missing("a file of features has no recipe")
        return self.resolved

    @property
    def method(self) -> type[methods.Method]:
        """The class of the recipe's method."""
        return methods.find(self.recipe.method.name)

    @property
    def options(self) -> dict[str, Any]:
        """The method's options."""
        return self.recipe.method.options

    @property
    def temperature(self) -> float | None:
        """The loss's temperature; None for a loss without one."""
        if self.resolved is None:
            return self.loss_temperature
        tau = self.method.loss_temperature(self.options)
        return None if tau is None else float(tau)

    # -------------------------------------------------------------------------------------------------- files of a run

    def values(self, key: str) -> list[float]:
        """A metric over the run, in order; `Missing` if the log does not have it."""
        values = [float(value) for line in self.metrics if (value := line.get(key)) is not None]
        if not values:
            raise Missing(f"metrics.jsonl has no {key!r}")
        return values

    def last(self, key: str) -> float:
        """The last value of a metric."""
        return self.values(key)[-1]

    def measure(self, where: Literal["features", "embeddings"], name: str) -> float:
        """A measure of the geometry in analysis.json."""
        line = None if self.analysis.geometry is None else self.analysis.geometry.measure(where, name)
        if line is None or line.value is None:
            raise Missing(f"analysis.json has no {name!r} of the {where}")
        return float(line.value)

    def array(self, name: str) -> Tensor:
        """An array by its name."""
        if name not in self.arrays:
            source = "the file" if self.patient == "features" else "analysis.npz"
            raise Missing(f"{source} has no {name}")
        return self.arrays[name]

    @property
    def features(self) -> Tensor:
        """A run's analysed rows, or the features that were passed, ``[N, D]``."""
        return self.array("features")

    @property
    def labels(self) -> Tensor:
        """The labels of `features`, int64 ``[N]`` in 0 … K−1."""
        return self.array("labels")

    # ----------------------------------------------------------------------------------------------- the training rows

    @property
    def data(self) -> tuple[DataSet, Split]:
        """The data set and its training rows."""
        if isinstance(self._data, Missing):
            raise self._data
        return self._data

    @cached_property
    def _data(self) -> tuple[DataSet, Split] | Missing:
        """Opened once; a failure is kept too."""
        if self.open_data is None:
            return Missing("there are no training data to look at")
        try:
            if self.make_job is not None and not isinstance(self.job, Exception):
                return self.job.data, self.job.train  # not read a second time
            return self.open_data()
        except (ValueError, OSError, ImportError) as error:
            return Missing(f"the training data could not be read: {error}")

    @cached_property
    def job(self) -> Job | Exception:
        """All that training makes of a recipe before its first step, or the error that it raises."""
        if self.make_job is None:
            raise Missing("there are no training data to look at")
        try:
            return self.make_job()
        except (ValueError, OSError, ImportError, RuntimeError) as error:
            return error

    @property
    def class_sizes(self) -> list[int]:
        """The number of rows of each class: of the training rows, or of the features that were passed."""
        labels = self.labels if self.patient == "features" else self.data[1].labels
        if labels is None:
            raise Missing("the training rows have no labels")
        sizes: list[int] = torch.unique(labels, return_counts=True)[1].tolist()
        return sizes

    @property
    def rows(self) -> int:
        """The number of training rows; by the log if the data of a run are gone."""
        try:
            return len(self.data[1])
        except Missing:
            for line in self.metrics:
                step, epoch = line.get("step"), line.get("epoch")
                if step and epoch:
                    return round(float(step / epoch) * self.recipe.train.batch_size)
            raise


def collect_run(path: Path, recipe: Recipe | None = None) -> Record:
    """Read the folder of a run.

    Args:
        path: The folder.
        recipe: Its resolved recipe; read from the folder and resolved by default.

    Raises:
        ValueError: It is not a run's folder, or a file in it is damaged.
    """
    run = Run(path)
    run.check_is_run()
    recipe, state = resolve(run.recipe) if recipe is None else recipe, run.state
    return Record(
        patient="run",
        path=run.path,
        resolved=recipe,
        state=state,
        metrics=run.metrics(),
        analysis=run.analysis,
        arrays={name: torch.from_numpy(array) for name, array in run.arrays(ARRAYS).items()},
        card=read_json_file(run.card_file, ModelCard),
        result=read_json_file(run.result_file, Result) or Result(),
        open_data=partial(_open_data, recipe, state.machine.get("folder")),
    )


def collect_features(features: Any, labels: Any = None, *, temperature: float | None = None) -> Record:
    """Check features and labels.

    Args:
        features: Rows ``[N, D]`` of any number type.
        labels: A label of any kind for each row.
        temperature: The temperature of the loss that the features were trained with.

    Raises:
        ValueError: A wrong shape or type, or rows with NaN or infinity.
    """
    x = features.detach().cpu() if isinstance(features, Tensor) else _to_tensor(features)
    if x.ndim != 2 or len(x) < 2 or not x.shape[1]:
        raise ValueError(f"features: shape {list(x.shape)} must be [N, D] with two rows or more")
    if not x.is_floating_point():
        x = x.float()
    if not bool(torch.isfinite(x).all()):
        bad = int((~torch.isfinite(x)).any(1).sum())
        raise ValueError(f"features: {bad} of {len(x)} rows have NaN or infinity. Leave them out, and find the cause")
    arrays = {"features": x}
    if labels is not None:
        y, _, _ = number_labels(labels, None)
        assert y is not None
        if len(y) != len(x):
            raise ValueError(f"labels: there are {len(y)} labels for {len(x)} rows of features; must be one per row")
        arrays["labels"] = y
    if temperature is not None:
        temperature = number("temperature", temperature, above=0.0)
    return Record(patient="features", arrays=arrays, loss_temperature=temperature)


def collect_recipe(recipe: Recipe) -> Record:
    """Resolve a recipe; its data are opened when a rule reads them."""
    resolved = resolve(recipe)
    return Record(
        patient="recipe",
        resolved=resolved,
        open_data=partial(_open_data, resolved, None),
        make_job=partial(make_job, resolved, CPU),
    )


def _open_data(recipe: Recipe, started_in: Any) -> tuple[DataSet, Split]:
    """Open the training data; a relative path is also looked for in the folder where the run was started."""
    name = recipe.data.name
    if recipe.data.digest is None and started_in and not Path(name).exists():
        path = Path(str(started_in)) / name
        recipe = recipe.override({"data.name": str(path)}) if path.exists() else recipe
    data, train, _ = load_data(recipe)
    return data, train


def _to_tensor(values: Any) -> Tensor:
    try:
        x = np.asarray(values)
    except ValueError:
        raise ValueError("features: the rows differ in length; must be [N, D] with two rows or more") from None
    if x.dtype.kind not in "fiub":
        raise ValueError(f"features: an array of {x.dtype}; must be numbers [N, D] with two rows or more")
    return torch.from_numpy(x.astype(native_type(x.dtype), order="C"))
