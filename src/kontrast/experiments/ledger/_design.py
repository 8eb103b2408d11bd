"""A design: what the cells of one table have in common."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from kontrast.experiments.experiment import Experiment
from kontrast.experiments.ledger._entry import Entry, settings_hash
from kontrast.recipe import parse


@dataclass(frozen=True)
class Design:
    """An experiment at a preset, with what was set by hand for every recipe.

    The same experiment at ``cpu`` and at ``paper``, or with other settings, is another design. A setting of an axis
    (``temperature=[0.1,0.2]``) chooses cells, and ``run.…`` says how they are run: neither is part of it.

    >>> Design("wl-table-1", "cpu", {"train.epochs": 20}).name
    'wl-table-1-cpu-002f99c3'
    """

    experiment: str
    preset: str
    settings: dict[str, Any] = field(default_factory=dict)

    @staticmethod
    def of(experiment: Experiment, preset: str, settings: Iterable[str] = ()) -> Design:
        """From the words of a command."""
        given = dict(map(parse, settings))
        own = {key: given[key] for key in sorted(given) if key not in experiment.axes and not key.startswith("run.")}
        return Design(experiment.name, preset, own)

    @staticmethod
    def of_entry(entry: Entry) -> Design:
        """That a cell belongs to."""
        return Design(entry.experiment, entry.preset, entry.settings)

    @property
    def name(self) -> str:
        """The name of its file."""
        name = f"{self.experiment}-{self.preset}"
        return f"{name}-{settings_hash(self.settings)}" if self.settings else name

    @property
    def words(self) -> list[str]:
        """The settings as a command has them."""
        return [f"{key}={json.dumps(value)}" for key, value in self.settings.items()]
