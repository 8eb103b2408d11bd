"""What an experiment's folder holds, as one record: its summary, its charts, its runs, the paths of its points.

Besides the folder itself, the run folders beside it are read: whether they have a report, and the points of a task.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kontrast.report.experiment import sphere
from kontrast.report.experiment.sphere import PointPaths
from kontrast.report.figures import outside_key
from kontrast.runs import ExperimentFolder, Summary


@dataclass(frozen=True)
class GridRun:
    """One run of the grid: its place, its status, and whether it has a page."""

    place: str
    seed: Any
    folder: str
    status: str
    error: str | None
    seconds: float | None
    has_report: bool


@dataclass(frozen=True)
class Record:
    """An experiment's folder. ``charts`` are Vega-Lite specifications by name."""

    path: Path
    summary: Summary
    charts: Mapping[str, Mapping[str, Any]]
    runs: tuple[GridRun, ...]
    paths: tuple[PointPaths, ...] = ()

    def count(self, *statuses: str) -> int:
        """How many runs have one of these statuses."""
        return sum(run.status in statuses for run in self.runs)


def collect(path: Path) -> Record:
    """Read an experiment's folder.

    Raises:
        ValueError: It is not an experiment's folder, a file is damaged, or a chart would load something.
    """
    folder = ExperimentFolder(path)
    summary, charts = folder.summary, folder.charts()
    for name, spec in charts.items():
        if key := outside_key(spec):
            raise ValueError(
                f"the chart {name!r} in {path} has the key {key!r}, with which a chart loads or opens something. The "
                "charts of kontrast reproduce have their data inside: make it again, or remove it"
            )
    runs = tuple(
        GridRun(
            place=words(place.at),
            seed=run.seed,
            folder=run.folder,
            status=run.status,
            error=run.error,
            seconds=run.seconds,
            has_report=(beside := folder.run(run.folder)) is not None and beside.report_file.is_file(),
        )
        for place in summary.places
        for run in place.runs
    )
    return Record(path, summary, charts, runs, tuple(_paths(folder, summary)))


def words(at: Mapping[str, Any]) -> str:
    """A place of the grid in words.

    >>> words({"method": "tcl", "temperature": 0.1})
    'method = tcl, temperature = 0.1'
    """
    return ", ".join(f"{axis} = {value}" for axis, value in at.items())


def _paths(folder: ExperimentFolder, summary: Summary) -> list[PointPaths]:
    """The first finished seed of each place that has points."""
    result = []
    for place in summary.places:
        for run in place.runs:
            beside = folder.run(run.folder) if run.status == "done" else None
            paths = None if beside is None else sphere.read(beside, words(place.at), run.seed)
            if paths is not None:
                result.append(paths)
                break
    return result
