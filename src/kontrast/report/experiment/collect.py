"""What an experiment's folder holds, as one record: its summary, its charts, its runs, the ways of its points.

Files alone: result.json and the charts of the folder itself, and of the run folders beside it whether they have a
report, and points.npz.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kontrast.files import read_regular
from kontrast.report.experiment import sphere
from kontrast.report.experiment.sphere import Way
from kontrast.report.figures import leading_out


@dataclass(frozen=True)
class Ran:
    """One run of the grid: where it stands, what became of it, whether it has a page."""

    place: str
    seed: Any
    folder: str
    status: str
    error: str | None
    seconds: float | None
    has_report: bool


@dataclass(frozen=True)
class Record:
    """``summary`` is result.json; ``charts`` are Vega-Lite specifications by name."""

    path: Path
    summary: Mapping[str, Any]
    charts: Mapping[str, Mapping[str, Any]]
    runs: tuple[Ran, ...]
    ways: tuple[Way, ...] = ()

    def count(self, *statuses: str) -> int:
        """How many runs stand so."""
        return sum(run.status in statuses for run in self.runs)


def collect(path: Path) -> Record:
    """Reads a folder; a ValueError if it is no experiment's."""
    file = path / "result.json"
    try:
        summary = json.loads(read_regular(file).decode())
    except FileNotFoundError:
        raise ValueError(f"{path} has no result.json; expected an experiment's folder: kontrast reproduce") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file} is damaged ({error}); make it again: kontrast reproduce … --only-read") from error
    if not isinstance(summary, dict) or "experiment" not in summary or "places" not in summary:
        raise ValueError(f"{file} is not an experiment's; expected what kontrast reproduce writes")
    found = {}
    for chart in sorted(path.glob("*.vl.json")):
        try:
            found[chart.name.removesuffix(".vl.json")] = json.loads(read_regular(chart).decode())
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{chart} is damaged ({error}); make it again: kontrast reproduce") from error
        if key := leading_out(found[chart.name.removesuffix(".vl.json")]):
            raise ValueError(
                f"{chart} has the key {key!r}, by which a chart loads or opens something from elsewhere. Those of "
                "kontrast reproduce have their data inside: make it again, or remove it"
            )
    runs = tuple(
        Ran(
            place=words(place["at"]),
            seed=run["seed"],
            folder=run["folder"],
            status=run["status"],
            error=run.get("error"),
            seconds=run.get("seconds"),
            has_report=_beside(path, run["folder"], "report.html") is not None,
        )
        for place in summary["places"]
        for run in place["runs"]
    )
    return Record(path, summary, found, runs, tuple(_ways(path, summary)))


def words(at: Mapping[str, Any]) -> str:
    """A place in words.

    >>> words({"method": "tcl", "temperature": 0.1})
    'method = tcl, temperature = 0.1'
    """
    return ", ".join(f"{axis} = {value}" for axis, value in at.items())


def _ways(path: Path, summary: Mapping[str, Any]) -> list[Way]:
    """The first finished seed of each place that has points."""
    found = []
    for place in summary["places"]:
        for run in place["runs"]:
            file = _beside(path, run["folder"], "points.npz") if run["status"] == "done" else None
            way = None if file is None else sphere.read(file.parent, words(place["at"]), run["seed"])
            if way is not None:
                found.append(way)
                break
    return found


def _beside(path: Path, folder: str, name: str) -> Path | None:
    """A file of a run folder beside the experiment's; a folder's name with a path in it is nobody's."""
    file = path.parent / folder / name
    return file if Path(folder).name == folder and file.is_file() else None
