"""The folders of an experiment and of a search. The runs of an experiment's cells lie beside its folder.

<out>/<experiment>-<preset>/
    result.json                  the summary (`kontrast.runs.schemas.Summary`)
    table.csv, table.md, table.tex
    <chart>.vl.json, <chart>.svg
    report.html

<out>/tune-<recipe>-<hash8>/
    tune.json                    the record of the search
    optuna.jsonl                 Optuna's journal
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from kontrast.files import read_json, read_regular, write_atomically, write_json
from kontrast.runs.folder import File, Folder
from kontrast.runs.reading import validate
from kontrast.runs.run import Run
from kontrast.runs.schemas import Summary

AGAIN = "make it again: kontrast reproduce … --only-read"
CHART = ".vl.json"


class ExperimentFolder(Folder):
    """An experiment, by its folder.

    Args:
        path: The folder; it need not exist yet.
    """

    summary_file = File("result.json")
    report_file = File("report.html")

    @property
    def summary(self) -> Summary:
        """result.json.

        Raises:
            ValueError: The folder has none, or it is damaged.
        """
        return validate(Summary, self.summary_values, self.summary_file, hint=AGAIN)

    @property
    def summary_values(self) -> dict[str, Any]:
        """result.json as plain values.

        Raises:
            ValueError: The folder has none, or it is damaged.
        """
        try:
            return read_json(self.summary_file, AGAIN)
        except FileNotFoundError:
            raise ValueError(
                f"{self.path} has no result.json; expected an experiment's folder: kontrast reproduce"
            ) from None

    def charts(self) -> dict[str, dict[str, Any]]:
        """The Vega-Lite specification of each chart, by name.

        Raises:
            ValueError: A chart's file is damaged.
        """
        charts = {}
        for file in sorted(self.path.glob(f"*{CHART}")):
            try:
                charts[file.name.removesuffix(CHART)] = json.loads(read_regular(file).decode())
            except (ValueError, RecursionError) as error:
                raise ValueError(f"{file} is damaged ({error}); {AGAIN}") from error
        return charts

    def run(self, folder: str) -> Run | None:
        """A run beside the experiment, by its folder's name; None if it does not exist or the name is a path."""
        path = self.path.parent / folder
        return Run(path) if Path(folder).name == folder and path.is_dir() else None

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        """Write result.json."""
        write_json(self.summary_file, summary)

    def write_table(self, kind: Literal["csv", "md", "tex"], text: str) -> None:
        """Write the table in one of its formats.

        Args:
            kind: The format, which is the file's ending.
            text: The content.
        """
        write_atomically(self.path / f"table.{kind}", text.encode())

    def write_chart(self, name: str, spec: Mapping[str, Any], svg: str) -> None:
        """Write a chart.

        Args:
            name: The chart's name.
            spec: Its Vega-Lite specification.
            svg: The picture.
        """
        write_json(self.path / f"{name}{CHART}", spec)
        write_atomically(self.path / f"{name}.svg", svg.encode())


class TuneFolder(Folder):
    """A search of `kontrast tune`, by its folder.

    Args:
        path: The folder; it need not exist yet.
    """

    record_file = File("tune.json")
    journal_file = File("optuna.jsonl")  # Optuna's journal of the search, one JSON line for each event

    @property
    def record(self) -> dict[str, Any] | None:
        """tune.json as plain values; None if it does not exist."""
        try:
            return read_json(self.record_file, "remove it, and it is written again")
        except FileNotFoundError:
            return None

    def write_record(self, record: Mapping[str, Any]) -> None:
        """Write tune.json, unless it holds this already."""
        if self.record != record:
            write_json(self.record_file, record)


def kind_of_folder(path: str | os.PathLike[str]) -> Literal["run", "task", "experiment"]:
    """Whose folder it is.

    Raises:
        ValueError: There is no such folder, or it is neither a run's nor an experiment's.
    """
    run = Run(path)
    if not run.path.is_dir():
        raise ValueError(
            f"there is no folder {run.path}; a report is made of run folders, or of an experiment's folder"
        )
    if run.has_recipe:
        return "run"
    try:
        if "experiment" in read_json(run.result_file, AGAIN):
            return "experiment"
    except (OSError, ValueError):
        pass
    if run.task_file.exists():
        return "task"
    names = ", ".join(sorted(entry.name for entry in run.path.iterdir())[:6]) or "nothing"
    raise ValueError(
        f"{run.path} is neither a run's folder (recipe.yaml) nor an experiment's (result.json); it has {names}. "
        "Give the folder that `kontrast train` or `kontrast reproduce` printed"
    )
