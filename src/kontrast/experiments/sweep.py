"""A sweep: plan, run what is missing, read, compare, write.

A sweep is a set of run folders: run it again and only what is missing or unfinished is done. Its own folder,
``<out>/<experiment>-<preset>``, holds what was made of them, and can be made again at any time:

    result.json     the summary: cells with their run folders, means and intervals, paper's values, claims
    table.csv, table.md, table.tex
    <chart>.vl.json and .svg
"""

from __future__ import annotations

import hashlib
import json
import shlex
import shutil
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kontrast
from kontrast.experiments import charts, outcome, tables
from kontrast.experiments.cell import Cell
from kontrast.experiments.engines import Engine, Told
from kontrast.experiments.experiment import Experiment, Row
from kontrast.experiments.plan import plan
from kontrast.files import expanded, write_atomically, write_json
from kontrast.recipe import Recipe


@dataclass(frozen=True)
class Sweep:
    """An experiment at a preset, with its cells."""

    experiment: Experiment
    preset: str
    settings: tuple[str, ...]
    cells: tuple[Cell, ...]
    out: Path
    seeds: int | None = None  # as asked for; None is the preset's own number

    @staticmethod
    def of(
        experiment: Experiment,
        preset: str = "cpu",
        settings: Sequence[str] = (),
        *,
        seeds: int | None = None,
        out: str | Path = "runs",
    ) -> Sweep:
        """Planned, nothing run."""
        cells = plan(experiment, preset, settings, seeds=seeds, out=out)
        return Sweep(experiment, preset, tuple(settings), tuple(cells), expanded(out), seeds)

    @property
    def folder(self) -> Path:
        """Where tables and charts go; other settings have a folder of their own, more seeds do not."""
        name = f"{self.experiment.name}-{self.preset}"
        if self.settings:
            name += "-" + hashlib.sha256(json.dumps(sorted(self.settings)).encode()).hexdigest()[:8]
        return self.out / name

    @property
    def missing(self) -> list[Cell]:
        """Those that are not done."""
        return [cell for cell in self.cells if not cell.done]

    def run(self, engine: Engine, told: Callable[[Told], None] = lambda event: None) -> dict[str, Any]:
        """Does what is missing, then `write`.

        Raises:
            ValueError: Every run was refused before its first step (a batch above the training rows, say). Then
                nothing is left of them; where others could be trained, a refused one keeps its error for the table.
        """
        before = {folder for cell in self.cells for folder in (cell.path, *cell.path.parents) if folder.exists()}
        _make(self.out)
        refused: dict[Path, str] = {}

        def hear(event: Told) -> None:
            path, is_new = event.cell.path, event.cell.path not in before and isinstance(event.cell.does, Recipe)
            died = event.error.startswith("its process")
            if event.what == "failed" and is_new and not died and not (path / "metrics.jsonl").exists():
                refused[path] = event.error
            told(event)

        engine.run(self.cells, hear)
        if len(refused) == len(self.cells):
            self._forget(refused, before)
            raise ValueError(f"every run of {self.experiment.name} was refused: {refused[self.cells[0].path]}")
        return self.write()

    def _forget(self, refused: Iterable[Path], before: Container[Path]) -> None:
        """Removes the folders of refused runs, and those around them that were made for them."""
        for folder in refused:
            shutil.rmtree(folder, ignore_errors=True)
        for folder in (self.out, *self.out.parents):
            if folder in before or any(folder.iterdir()):
                return
            folder.rmdir()

    def rows(self) -> list[Row]:
        """What the cells came to, so far."""
        return outcome.read(self.cells, self.experiment.measures)

    def write(self) -> dict[str, Any]:
        """Reads the cells and writes tables and charts; the summary comes back."""
        from kontrast.train.folder import commit

        rows = self.rows()
        summary = tables.summary(self.experiment, rows, preset=self.preset, settings=self.settings)
        summary["made"] = {"version": kontrast.__version__, "commit": commit(), "command": self.command}
        folder = self.folder
        _make(folder)
        write_json(folder / "result.json", summary)
        texts = {"csv": tables.csv, "md": tables.markdown, "tex": tables.latex}
        for kind, render in texts.items():
            write_atomically(folder / f"table.{kind}", render(summary).encode())
        titles = {measure.name: measure.title.partition(", ")[0] for measure in self.experiment.measures}
        for chart in self.experiment.charts:
            spec = charts.spec(chart, rows, titles)
            write_json(folder / f"{chart.name}.vl.json", spec)
            write_atomically(folder / f"{chart.name}.svg", charts.svg(spec).encode())
        return summary

    @property
    def command(self) -> str:
        """What makes it again."""
        words = ["kontrast", "reproduce", self.experiment.name, *self.settings, "--preset", self.preset]
        words += [] if self.seeds is None else ["--seeds", str(self.seeds)]
        return shlex.join(words)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"the folder {folder} cannot be made: {error.strerror}; choose another --out") from error
