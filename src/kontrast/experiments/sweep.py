"""A sweep: plan, run what is missing, read, compare, write.

A sweep is a set of run folders: run it again and only what is missing or unfinished is done. Its own folder,
``<out>/<experiment>-<preset>`` (`kontrast.runs.ExperimentFolder`), holds the summary, tables and charts that were made
of them, and can be made again at any time.

With a ledger, a cell that is not done in a run folder is read from there; a finished run folder goes before the ledger.
A cell that the ledger has with this version's recipe is not run again: a new machine goes on where another one ended.
Without ``seeds``, further seeds that the ledger has at the sweep's places come in too.
"""

from __future__ import annotations

import hashlib
import json
import shlex
import shutil
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import kontrast
from kontrast.experiments import baselines, outcome, tables
from kontrast.experiments.baselines import Baseline
from kontrast.experiments.cell import Cell, Value
from kontrast.experiments.engines import Engine, Event
from kontrast.experiments.experiment import Experiment, Row
from kontrast.experiments.ledger import Design, Entry, Ledger, recipe_hash
from kontrast.experiments.plan import plan
from kontrast.files import expanded
from kontrast.recipe import Recipe
from kontrast.runs import ExperimentFolder, Run, commit


@dataclass(frozen=True)
class Sweep:
    """An experiment at a preset, with its cells; `Sweep.of` plans one.

    Attributes:
        experiment: The experiment.
        preset: The name of its preset.
        settings: The user's settings, ``key=value``.
        cells: Every place of the grid with every seed.
        out: The folder of run folders and tables.
        seeds: The number of seeds that the user asked for; None is the preset's own.
        ledger: Where cells without a finished run folder are read.
    """

    experiment: Experiment
    preset: str
    settings: tuple[str, ...]
    cells: tuple[Cell, ...]
    out: Path
    seeds: int | None = None
    ledger: Ledger | None = None

    @staticmethod
    def of(
        experiment: Experiment,
        preset: str = "cpu",
        settings: Sequence[str] = (),
        *,
        seeds: int | None = None,
        out: str | Path = "runs",
        ledger: Ledger | None = None,
    ) -> Sweep:
        """Plan a sweep; nothing is run. For the arguments see `Sweep` and `kontrast.experiments.plan.plan`.

        >>> from kontrast import experiments
        >>> sweep = Sweep.of(experiments.find("wl-table-1"), "smoke", seeds=1)
        >>> len(sweep.cells), sweep.folder.name
        (3, 'wl-table-1-smoke')
        """
        cells = plan(experiment, preset, settings, seeds=seeds, out=out)
        return Sweep(experiment, preset, tuple(settings), tuple(cells), expanded(out), seeds, ledger)

    @property
    def folder(self) -> Path:
        """Where tables and charts go; other settings have a folder of their own, more seeds do not."""
        name = f"{self.experiment.name}-{self.preset}"
        if self.settings:
            name += "-" + hashlib.sha256(json.dumps(sorted(self.settings)).encode()).hexdigest()[:8]
        return self.out / name

    @property
    def design(self) -> Design:
        """The design of its cells in a ledger."""
        return Design.of(self.experiment, self.preset, self.settings)

    @cached_property
    def baselines(self) -> tuple[Baseline, ...]:
        """Raw pixels and untrained encoders, beside the cells."""
        return tuple(baselines.baselines_of(self.cells))

    @property
    def missing(self) -> list[Cell]:
        """The cells that are left to run."""
        return [cell for cell in self._new_cells if not cell.done]

    @property
    def missing_baselines(self) -> list[Cell]:
        """The baselines that are left to run."""
        return [cell for cell in self._new_baselines if not cell.done]

    @property
    def _new_cells(self) -> list[Cell]:
        """The cells that the ledger does not have with this version's recipe."""
        entries = {
            (_place(entry.at), entry.seed, entry.origin.recipe) for entry in self._entries() if not entry.baseline
        }
        return [cell for cell in self.cells if (_place(cell.at), cell.at["seed"], recipe_hash(cell)) not in entries]

    @property
    def _new_baselines(self) -> list[Cell]:
        entries = {(entry.baseline, entry.origin.recipe) for entry in self._entries()}
        return [baseline.cell for baseline in self.baselines if (baseline.name, baseline.hash) not in entries]

    def run(self, engine: Engine, notify: Callable[[Event], None] = lambda event: None) -> dict[str, Any]:
        """Run the missing cells and baselines, then `write`.

        Args:
            engine: Runs the cells, see `kontrast.experiments.engines`.
            notify: Called when something happens to a cell.

        Returns:
            The summary, as result.json has it.

        Raises:
            ValueError: Every run was refused before its first step (a batch above the training rows, for example). Then
                nothing is left of them; if others could be trained, a refused one keeps its error for the table.
        """
        cells, untrained = self._new_cells, self._new_baselines
        every = [*cells, *untrained]
        before = {folder for cell in every for folder in (cell.path, *cell.path.parents) if folder.exists()}
        _make(self.out)
        refused: dict[Path, str] = {}

        def record(event: Event) -> None:
            path, is_new = event.cell.path, event.cell.path not in before and isinstance(event.cell.does, Recipe)
            died = event.error.startswith("its process")
            if event.what == "failed" and is_new and not died and not Run(path).metrics_file.exists():
                refused[path] = event.error
            notify(event)

        engine.run(every, record)
        if cells and len(refused) == len(self.cells):
            self._forget([*refused, *(cell.path for cell in untrained if cell.path not in before)], before)
            raise ValueError(f"every run of {self.experiment.name} was refused: {refused[cells[0].path]}")
        return self.write()

    def _forget(self, refused: Iterable[Path], before: Container[Path]) -> None:
        """Remove the folders of refused runs, and those around them that were created for them."""
        for folder in refused:
            shutil.rmtree(folder, ignore_errors=True)
        for folder in (self.out, *self.out.parents):
            if folder in before or any(folder.iterdir()):
                return
            folder.rmdir()

    def folder_rows(self) -> list[Row]:
        """What the cells came to in their run folders, so far: a row a cell."""
        return outcome.read(self.cells, self.experiment.measures, self.experiment.keeps)

    def rows(self) -> list[Row]:
        """What the cells came to, so far: from run folders, then from the ledger."""
        return self._read(self._entries())[0]

    def baseline_rows(self, entries: Sequence[Entry] = ()) -> list[Row]:
        """What the baselines came to, in their order; ``entries`` are the ledger's."""
        entry_of = {(entry.baseline, _place(entry.at), entry.seed): entry for entry in entries if entry.baseline}
        rows = []
        for baseline in self.baselines:
            row = baselines.read(baseline)
            entry = entry_of.get((baseline.name, _place(row.at), int(row.at["seed"] or 0)))
            rows.append(row if row.status == "done" or entry is None else entry.row())
        return rows

    def _entries(self) -> list[Entry]:
        return [] if self.ledger is None else self.ledger.entries(self.design)

    def _read(self, entries: Sequence[Entry]) -> tuple[list[Row], dict[str, int]]:
        """The rows, and how many came from the ledger, and of those how many with another recipe than this version's.

        A cell of the ledger stands for one that has no finished run folder.
        """
        entry_of = {(_place(entry.at), entry.seed): entry for entry in entries if entry.baseline is None}
        rows, counts = [], {"cells": 0, "other_recipe": 0}
        for cell, row in zip(self.cells, self.folder_rows(), strict=True):
            entry = entry_of.pop((_place(row.at), int(row.at["seed"] or 0)), None)
            if row.status == "done" or entry is None:
                rows.append(row)
                continue
            counts["cells"] += 1
            counts["other_recipe"] += entry.origin.recipe != recipe_hash(cell)
            rows.append(entry.row())
        if self.seeds is None:
            places = {_place(row.at) for row in rows}
            more = [entry.row() for (place, _), entry in entry_of.items() if place in places]
            counts["cells"] += len(more)
            rows += sorted(more, key=lambda row: int(row.at["seed"] or 0))
        return rows, counts

    def write(self) -> dict[str, Any]:
        """Read the cells, and write summary, tables and charts.

        Returns:
            The summary, as result.json has it.
        """
        from kontrast.experiments import charts  # with Altair, which takes a second

        entries = self._entries()
        rows, from_ledger = self._read(entries)
        summary = tables.summary(self.experiment, rows, preset=self.preset, settings=self.settings)
        summary["baselines"] = tables.baselines(
            self.experiment, [baseline.name for baseline in self.baselines], self.baseline_rows(entries)
        )
        summary["made"] = {"version": kontrast.__version__, "commit": commit(), "command": self.command}
        if from_ledger["cells"]:
            summary["ledger"] = from_ledger
        folder = ExperimentFolder(self.folder)
        _make(folder.path)
        folder.write_summary(summary)
        folder.write_table("csv", tables.csv(summary))
        folder.write_table("md", tables.markdown(summary))
        folder.write_table("tex", tables.latex(summary))
        titles = {measure.name: measure.title.partition(", ")[0] for measure in self.experiment.measures}
        for chart in [*self.experiment.charts, *charts.learning(self.experiment, rows)]:
            spec = charts.spec(chart, rows, titles)
            folder.write_chart(chart.name, spec, charts.svg(spec))
        return summary

    @property
    def command(self) -> str:
        """The command that makes it again."""
        words = ["kontrast", "reproduce", self.experiment.name, *self.settings, "--preset", self.preset]
        words += [] if self.seeds is None else ["--seeds", str(self.seeds)]
        return shlex.join(words)


def _place(at: Mapping[str, Value]) -> frozenset[tuple[str, Value]]:
    """A place of the grid, without the seed."""
    return frozenset((axis, value) for axis, value in at.items() if axis != "seed")


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"the folder {folder} cannot be made: {error.strerror}; choose another --out") from error
