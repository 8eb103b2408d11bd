"""A run as the pages show it: the content of its folder, and the questions that several pages ask.

Reading is tolerant (`kontrast.runs.Run.read`): a damaged file, or a value that does not fit, leaves its part of the
page empty and is named in ``messages``. So a run that has only begun, or that failed, has a page too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from kontrast.files import open_regular
from kontrast.recipe import MOST_BYTES
from kontrast.runs import Contents, Geometry, Measure, ProtocolResult, Run, State
from kontrast.runs.reading import read_json_file
from kontrast.runs.schemas import Analysis, MetricsLine

MOST_OTHERS = 200  # runs of the same folder that are read


@dataclass(frozen=True)
class Other:
    """Another run on the same data: the position of its features."""

    name: str
    uniformity: float
    tolerance: float


@dataclass(frozen=True)
class RunRecord:
    """A run's folder.

    Args:
        contents: What the folder holds.
        others: Runs beside it on the same data.

    >>> RunRecord(Contents(Run("runs/toy-1"))).name
    'toy-1'
    """

    contents: Contents
    others: Sequence[Other] = ()

    @property
    def path(self) -> Path:
        """The run's folder."""
        return self.contents.run.path

    @property
    def shown_path(self) -> str:
        """The folder for a command, without its place on this machine."""
        full = self.path.resolve()
        return f"{full.parent.name}/{full.name}"

    @property
    def name(self) -> str:
        """The recipe's name as recipe.yaml has it, else the folder's."""
        return str(self.contents.recipe_values.get("name") or self.path.name)

    @property
    def seed(self) -> int:
        """The recipe's seed."""
        return 0 if self.contents.recipe is None else self.contents.recipe.seed

    @property
    def state(self) -> State:
        """run.json."""
        return self.contents.state

    @property
    def status(self) -> str:
        """training, evaluating, done, interrupted or failed; unknown without run.json."""
        return self.state.status or "unknown"

    @property
    def results(self) -> list[ProtocolResult]:
        """The protocols that have a value."""
        return [result for result in self.contents.result.results if result.value is not None]

    @property
    def geometry(self) -> Geometry:
        """The geometry of features and embeddings."""
        return self.contents.geometry

    @property
    def arrays(self) -> Mapping[str, Any]:
        """The arrays of analysis.npz."""
        return self.contents.arrays

    @property
    def messages(self) -> Sequence[str]:
        """What could not be read."""
        return self.contents.messages

    @property
    def steps(self) -> list[MetricsLine]:
        """The lines of the log with a loss."""
        return [line for line in self.contents.metrics if _has(line, "step") and _has(line, "loss")]

    @property
    def monitors(self) -> list[MetricsLine]:
        """The lines of the log with values of monitors."""
        lines = [line for line in self.contents.metrics if _has(line, "step")]
        return [line for line in lines if any(key.startswith("monitor/") for key in line)]

    @property
    def class_names(self) -> list[str]:
        """The names of the classes; empty if they are unknown."""
        names = self.contents.analysis.class_names
        names = names or next((result.class_names for result in self.contents.result.results), None)
        return [str(name) for name in names or []]

    def class_name(self, label: int) -> str:
        """The name of a class, or its number."""
        names = self.class_names
        return names[label] if 0 <= label < len(names) else str(label)

    def measure(self, where: Literal["features", "embeddings"], name: str) -> Measure | None:
        """A measure of the geometry, by the beginning of its name."""
        return self.geometry.measure(where, name)

    def simplex(self, where: Literal["features", "embeddings"]) -> dict[str, Any]:
        """The scalars of the simplex geometry; empty if they were not measured."""
        return self.geometry.simplex.get(where, {})


def read(path: Path) -> RunRecord:
    """Read the folder of a run.

    Raises:
        ValueError: It is not a run's folder.

    >>> read(Path("."))
    Traceback (most recent call last):
        ...
    ValueError: . is not a run's folder: it has no recipe.yaml. Use a folder that `kontrast train` wrote
    """
    return RunRecord(Run(path).read(strict=False))


def _has(line: MetricsLine, key: str) -> bool:
    return line.get(key) is not None


_DATA = re.compile(r"^data:\n(?:  .*\n)*?  name: (.*)$", re.MULTILINE)
_DIGEST = re.compile(r"^  digest: ['\"]?([0-9a-f]{8,})", re.MULTILINE)


def find_others(record: RunRecord) -> list[Other]:
    """Runs beside this one on the same data. Their recipes are searched as text, which is quicker than YAML."""
    data = record.contents.recipe_values.get("data")
    data = data if isinstance(data, Mapping) else {}
    here = record.path.resolve()
    others: list[Other] = []
    for folder in sorted(here.parent.iterdir()):
        run = Run(folder)
        if folder == here or not run.analysis_file.is_file() or len(others) == MOST_OTHERS:
            continue
        try:
            with open_regular(run.recipe_file) as file:
                text = file.read(MOST_BYTES).decode()
        except (OSError, ValueError):
            continue  # a damaged neighbour is left out
        name, digest = _DATA.search(text), _DIGEST.search(text)
        if (None if digest is None else digest[1]) != data.get("digest"):
            continue
        if name is not None and name[1].strip("'\"") == str(data.get("name")):
            geometry = (read_json_file(run.analysis_file, Analysis, []) or Analysis()).geometry or Geometry()
            u, t = geometry.measure("features", "uniformity"), geometry.measure("features", "tolerance")
            if u is not None and t is not None and u.value is not None and t.value is not None:
                others.append(Other(folder.name, float(u.value), float(t.value)))
    return others
