"""What is known of a patient, collected once and read by every rule.

Everything comes from files. What is not there is asked for all the same, and answers with `Missing`, which the rule
need not catch: its finding is then ``unknown``, with the reason. The training data are opened only when a rule asks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from kontrast import methods
from kontrast.data import DataSet, Split
from kontrast.recipe import Recipe
from kontrast.train.job import Job

Patient = Literal["run", "features", "recipe"]


class Missing(Exception):
    """What a rule needs is not there; the message says what."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Record:
    """A patient. ``features`` and ``labels`` are a run's analysed rows or a file's; the rest is of runs and recipes."""

    patient: Patient
    path: Path | None = None
    written: Recipe | None = None
    run: Mapping[str, Any] = field(default_factory=dict)  # run.json
    lines: list[dict[str, Any]] = field(default_factory=list)  # metrics.jsonl
    analysis: Mapping[str, Any] = field(default_factory=dict)  # analysis.json
    arrays: Mapping[str, Tensor] = field(default_factory=dict)  # analysis.npz, or the files given
    model: Mapping[str, Any] = field(default_factory=dict)  # model.json
    result: Mapping[str, Any] = field(default_factory=dict)  # result.json
    given_temperature: float | None = None
    opened: Callable[[], tuple[DataSet, Split]] | None = None  # the data, and the rows that are learned from
    making: Callable[[], Job] | None = None  # of a recipe: all that train makes before its first step

    # ---------------------------------------------------------------------------------------- recipe

    @property
    def recipe(self) -> Recipe:
        """What it is made from."""
        if self.written is None:
            raise Missing("a file of features has no recipe")
        return self.written

    @property
    def method(self) -> type[methods.Method]:
        """The class of the recipe's method."""
        return methods.find(self.recipe.method.name)

    @property
    def options(self) -> dict[str, Any]:
        """The method's."""
        return self.recipe.method.options

    @property
    def temperature(self) -> float | None:
        """The loss's; None where it has none."""
        tau = self.given_temperature if self.written is None else self.options.get("temperature")
        chosen = "ordinary" if self.written is None else self.options.get("loss", "ordinary")
        return None if tau is None or chosen in ("simple", "hard-simple") else float(tau)

    # ---------------------------------------------------------------------------------------- files of a run

    def course(self, key: str) -> list[float]:
        """A metric over the run, in order; `Missing` if it was never written."""
        found = [float(line[key]) for line in self.lines if line.get(key) is not None]
        if not found:
            raise Missing(f"metrics.jsonl has no {key!r}")
        return found

    def last(self, key: str) -> float:
        """Its last value."""
        return self.course(key)[-1]

    def measured(self, where: str, name: str) -> float:
        """A measure of analysis.json's geometry, ``where`` features or embeddings."""
        for line in self.analysis.get("geometry", {}).get(where, []):
            if line["name"] == name and line["value"] is not None:
                return float(line["value"])
        raise Missing(f"analysis.json has no {name!r} of the {where}")

    def array(self, name: str) -> Tensor:
        """An array by name."""
        if name not in self.arrays:
            where = "the file" if self.patient == "features" else "analysis.npz"
            raise Missing(f"{where} has no {name}")
        return self.arrays[name]

    @property
    def features(self) -> Tensor:
        """Rows ``[N, D]``."""
        return self.array("features")

    @property
    def labels(self) -> Tensor:
        """Of those rows, int64 ``[N]`` in 0 … K−1."""
        return self.array("labels")

    # ---------------------------------------------------------------------------------------- the training rows

    @property
    def data(self) -> tuple[DataSet, Split]:
        """The data set and the rows that are learned from."""
        if isinstance(self._data, Missing):
            raise self._data
        return self._data

    @cached_property
    def _data(self) -> tuple[DataSet, Split] | Missing:
        """Opened once, and if that fails not tried again."""
        if self.opened is None:
            return Missing("there are no training data to look at")
        try:
            if self.making is not None and not isinstance(self.made, Exception):
                return self.made.data, self.made.train  # once is enough
            return self.opened()
        except (ValueError, OSError, ImportError) as error:
            return Missing(f"the training data could not be read: {error}")

    @cached_property
    def made(self) -> Job | Exception:
        """What train would make of the recipe, or the error with which it would refuse it."""
        if self.making is None:
            raise Missing("there are no training data to look at")
        try:
            return self.making()
        except (ValueError, OSError, ImportError, RuntimeError) as error:
            return error

    @property
    def class_sizes(self) -> list[int]:
        """Rows of each class that is there: of the training rows, or of the file."""
        labels = self.labels if self.patient == "features" else self.data[1].labels
        if labels is None:
            raise Missing("the training rows have no labels")
        sizes: list[int] = torch.unique(labels, return_counts=True)[1].tolist()
        return sizes

    @property
    def rows(self) -> int:
        """How many training rows there are; of a run by its log, if the data are gone."""
        try:
            return len(self.data[1])
        except Missing:
            for line in self.lines:
                if line.get("step") and line.get("epoch"):
                    return round(float(line["step"] / line["epoch"]) * self.recipe.train.batch_size)
            raise
